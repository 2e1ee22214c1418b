/** What the measurements on `serve` share: a server with its baselines, loads that are checked, and rounds that alternate. */
import { join } from 'node:path';
import { FailureError, PROJECT_ROOT } from '../command.ts';
import type { BesideName } from '../serve/beside.ts';
import { startServe } from '../serve/child.ts';
import { freePorts } from '../serve/ports.ts';
import { rawRequest } from './connection.ts';
import { ROUNDS } from './figure.ts';
import { type FullLoadResult, fullLoad } from './load.ts';
import { mean } from './statistics.ts';

/** As many as the figures of comparable limiters were taken with: enough to keep one thread busy, too few to queue for long. */
export const CONNECTIONS = 16;

/** A slice is some two thousand requests; four of them, a second for each contender, make a round. */
const SLICE_SECONDS = 0.25;
const SLICES = 4;

/** By then the runtime has compiled what it will compile, in one isolate, and every owner exists. */
const WARM_UP_SECONDS = 3;

/** The callers that the bench's rule files know, `k_bench_00` to `k_bench_15`. */
const KEYS = Array.from({ length: 16 }, (_, index) => `k_bench_${String(index).padStart(2, '0')}`);

export const MANY_CALLERS = manyCallers('/v1/items/42');
export const ONE_CALLER = oneCaller(0);

/** The request of one of the sixteen: measurements that must not meet in an owner have a caller each. */
export function oneCaller(index: number): readonly Buffer[] {
  return [MANY_CALLERS[index]!];
}

export function manyCallers(path: string): readonly Buffer[] {
  return KEYS.map((key) => requestOf(key, path));
}

/** The callers that `rules/regional.yaml` counts with a single owner each. */
export const SINGLE_CALLERS = KEYS.slice(0, 8).map((key) => requestOf(key, '/v1/items/42'));

/** Those that it counts in their regions: each sends from both in turn, so that one of the two is away from the owner of the whole. */
export const REGIONAL_CALLERS = KEYS.slice(8).flatMap((key) =>
  [
    { continent: 'EU', country: 'FR' },
    { continent: 'NA', country: 'US', longitude: '-74' },
  ].map((cf) => requestOf(key, '/v1/items/42', { 'cf-blob': JSON.stringify(cf) })),
);

function requestOf(key: string, path: string, more: Readonly<Record<string, string>> = {}): Buffer {
  return rawRequest({
    path,
    headers: { 'x-api-key': key, 'cf-connecting-ip': '192.0.2.1', 'user-agent': 'bench', ...more },
  });
}

/** Of a server on loopback that lives as long as a measurement. */
export const ADMIN_TOKEN = 'bench';

export interface LivePorts<Name extends BesideName> {
  readonly gateways: readonly number[];
  readonly beside: Readonly<Record<Name, readonly number[]>>;
  /** The test control; nothing listens there unless calls are counted. */
  readonly faults: number;
}

export interface LiveOptions<Name extends BesideName> {
  /** A file of `scripts/bench/rules`. */
  readonly rules: 'local-only' | 'strict' | 'flood' | 'hot' | 'hot-limit' | 'peers' | 'regional';
  readonly gateways?: number;
  /** What stands beside the limiter, each with an isolate of its own; a name may stand there several times. */
  readonly beside?: readonly Name[];
  /** With the test control, which counts owner calls and costs a little: not for measurements of speed. */
  readonly counted?: boolean;
  /** How far apart the regions are: what a call and its answer take. */
  readonly regionLatencyMs?: number;
}

export async function withServe<T, Name extends BesideName = never>(
  { rules, gateways = 1, beside = [], counted, regionLatencyMs }: LiveOptions<Name>,
  work: (ports: LivePorts<Name>) => Promise<T>,
): Promise<T> {
  const first = await freePorts(gateways + beside.length + 1);
  const besidePorts = beside.map((name, index) => [name, first + gateways + index] as const);
  const faults = first + gateways + beside.length;
  const server = await startServe(
    ...['--port', String(first), '--gateways', String(gateways)],
    ...['--rules', join(PROJECT_ROOT, 'scripts', 'bench', 'rules', `${rules}.yaml`)],
    ...['--admin-token', ADMIN_TOKEN],
    ...besidePorts.flatMap(([name, port]) => ['--beside', `${name}=${port}`]),
    ...(counted ? ['--faults', String(faults)] : []),
    ...(regionLatencyMs === undefined ? [] : ['--region-latency', String(regionLatencyMs)]),
  );
  try {
    return await work({
      gateways: Array.from({ length: gateways }, (_, index) => first + index),
      beside: portsByName(besidePorts),
      faults,
    });
  } finally {
    await server.stop();
  }
}

function portsByName<Name extends string>(
  places: readonly (readonly [Name, number])[],
): Record<Name, readonly number[]> {
  const grouped = Object.groupBy(places, ([name]) => name);
  const ports = Object.entries<typeof places>(grouped as Record<Name, typeof places>).map(([name, group]) => [
    name,
    group.map(([, port]) => port),
  ]);
  return Object.fromEntries(ports) as Record<Name, readonly number[]>;
}

export interface Contender {
  /** The load is spread over them evenly. */
  readonly ports: readonly number[];
  readonly requests: readonly Buffer[];
  /** What nearly every response must be: a measurement of errors measures nothing. */
  readonly status: number;
  /** Loaded for a moment before each slice: its leases have lapsed while others had their turn, and a hot key stays hot. */
  readonly leadIn?: true;
}

/** Longer than a lease takes to come, grow to what the load needs and be renewed once. */
const LEAD_IN_SECONDS = 0.2;

/**
 * Requests per second of each contender in each round. Within a round they take turns in short slices, in alternating order:
 * whatever else the machine does meanwhile then falls on all of them alike.
 */
export async function alternate<Name extends string>(
  contenders: Readonly<Record<Name, Contender>>,
  progress: (line: string) => void,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (const name of names) await warmUp(contenders[name]);
  for (let round = 0; round < ROUNDS; round += 1) {
    const slices = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
    for (let slice = 0; slice < SLICES; slice += 1) {
      for (const name of slice % 2 === 0 ? names : names.toReversed()) {
        const contender = contenders[name];
        if (contender.leadIn) await load(contender, LEAD_IN_SECONDS);
        slices[name].push((await checkedLoad(contender, SLICE_SECONDS)).requestsPerSecond);
      }
    }
    for (const name of names) rates[name].push(mean(slices[name]));
    progress(
      `round ${round + 1}: ${names.map((name) => `${name} ${Math.round(rates[name][round]!)}/s`).join(', ')}`,
    );
  }
  return rates;
}

/** A hundred a minute trickle through a flood; more responses of another kind than this are a fault. */
const OTHER_SHARE_MAX = 0.01;

export async function checkedLoad(contender: Contender, seconds: number): Promise<FullLoadResult> {
  const result = await load(contender, seconds);
  expectStatus(result.statuses, contender.status);
  return result;
}

/** Each isolate compiles for itself, and gets its part of the load only. */
export async function warmUp(contender: Contender): Promise<void> {
  await load(contender, WARM_UP_SECONDS * contender.ports.length);
}

function load({ ports, requests }: Contender, seconds: number): Promise<FullLoadResult> {
  return fullLoad({ ports, connections: CONNECTIONS, seconds, requests });
}

export function expectStatus(statuses: ReadonlyMap<number, number>, expected: number): void {
  const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  const other = total - (statuses.get(expected) ?? 0);
  if (total === 0 || other > total * OTHER_SHARE_MAX) {
    throw new FailureError(`expected ${expected} from the server, got ${JSON.stringify([...statuses])}`);
  }
}

export function ratios(of: readonly number[], to: readonly number[]): number[] {
  return of.map((value, round) => value / to[round]!);
}

/** A count hardly varies: three show that, and that the calls do not grow with time. */
const COUNT_ROUNDS = 3;
const COUNT_SECONDS = 1;

export interface CountOptions {
  /** Where the server's test control listens. */
  readonly faults: number;
  readonly progress: (line: string) => void;
}

/** Owner calls for each thousand requests of a server that counts them, after a warm-up. */
export async function ownerCallsPerThousand(
  contender: Contender,
  { faults, progress }: CountOptions,
): Promise<number[]> {
  const counts = `http://127.0.0.1:${faults}/counts`;
  await warmUp(contender);
  const values: number[] = [];
  for (let round = 0; round < COUNT_ROUNDS; round += 1) {
    await fetch(counts, { method: 'DELETE' });
    const { statuses } = await checkedLoad(contender, COUNT_SECONDS);
    const { ownerCalls } = (await (await fetch(counts)).json()) as { ownerCalls: number };
    const requests = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    values.push((ownerCalls / requests) * 1_000);
    progress(`count ${round + 1}: ${ownerCalls} owner calls for ${requests} requests`);
  }
  return values;
}
