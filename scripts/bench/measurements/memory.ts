/**
 * The arithmetic and the packed table, against what they would replace. Each contender runs in a process of its own, so that none
 * inherits another's heap or compiled code.
 */
import { join } from 'node:path';
import { captureScript, PROJECT_ROOT } from '../../command.ts';
import type { Measurement } from '../figure.ts';
import { ROUNDS } from '../figure.ts';
import { ratios } from '../live.ts';
import type { ContenderName, TableResult } from '../micro.ts';

const MICRO = join(PROJECT_ROOT, 'scripts', 'bench', 'micro.ts');

export const core: Measurement = {
  name: 'core',
  about: 'nanoseconds of a token bucket decision, against a Map.get of a 40-character key',
  run: async (progress) => {
    const decide: number[] = [];
    const mapGet: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const result = JSON.parse(await captureScript(MICRO, ['core'])) as {
        decideNs: number;
        mapGetNs: number;
      };
      decide.push(result.decideNs);
      mapGet.push(result.mapGetNs);
      progress(
        `round ${round + 1}: decide ${result.decideNs.toFixed(1)} ns, Map.get ${result.mapGetNs.toFixed(1)} ns`,
      );
    }
    return [
      { name: 'core.of_map_get', unit: 'x', values: ratios(decide, mapGet) },
      { name: 'core.decide', unit: 'ns', values: decide },
      { name: 'core.map_get', unit: 'ns', values: mapGet },
    ];
  },
};

/** Memory and time of a million keys hardly vary. */
const TABLE_ROUNDS = 3;

export const table: Measurement = {
  name: 'table',
  about:
    'a million keys: bytes a key and decisions a second, against a Map of objects and rate-limiter-flexible',
  run: async (progress) => {
    const contenders: readonly ContenderName[] = ['table', 'map', 'flexible'];
    const results = Object.fromEntries(contenders.map((name) => [name, [] as TableResult[]])) as Record<
      ContenderName,
      TableResult[]
    >;
    for (let round = 0; round < TABLE_ROUNDS; round += 1) {
      for (const name of round % 2 === 0 ? contenders : contenders.toReversed()) {
        const result = JSON.parse(await captureScript(MICRO, [name])) as TableResult;
        results[name].push(result);
        const { bytesPerKey, decisionsPerSecond } = result;
        progress(
          `round ${round + 1}: ${name} ${bytesPerKey.toFixed(1)} bytes a key, ${Math.round(decisionsPerSecond)}/s`,
        );
      }
    }
    const rates = (name: ContenderName) => results[name].map((result) => result.decisionsPerSecond);
    const bytes = (name: ContenderName) => results[name].map((result) => result.bytesPerKey);
    return [
      { name: 'table.bytes_per_key', unit: 'bytes', values: bytes('table') },
      { name: 'table.map_bytes_per_key', unit: 'bytes', values: bytes('map') },
      { name: 'table.flexible_bytes_per_key', unit: 'bytes', values: bytes('flexible') },
      { name: 'table.of_map', unit: 'x', values: ratios(rates('table'), rates('map')) },
      { name: 'table.of_flexible', unit: 'x', values: ratios(rates('table'), rates('flexible')) },
      { name: 'table.rate', unit: 'per second', values: rates('table') },
    ];
  },
};
