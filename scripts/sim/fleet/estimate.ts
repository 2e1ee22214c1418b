/**
 * A whole fleet from a sample of its keys: each total is the sum, over the strata, of what the keys taken came to times how many each of
 * them stands for.
 */
import { DOLLARS } from '../../../src/engine/price.ts';
import type { Winner } from '../../../src/policy/counter.ts';
import type { Plant } from '../plant.ts';
import { Random } from '../random.ts';
import { type Demand, rateOf } from './demand.ts';
import {
  exceeded,
  IDLE_MS,
  type Key,
  type KeyFigures,
  type KeysRunOptions,
  type MeasuredKey,
  objectSecondsOf,
  simulateKeys,
} from './keys.ts';
import { loneKeys } from './lone.ts';
import { type Stratum, strataOf, type Taken } from './strata.ts';

export interface Fleet {
  readonly demand: Demand;
  /** Each key's requests arrive at all of these alike. */
  readonly isolates: number;
  /** What limits the key of a rank. */
  readonly enforced: (owner: string) => readonly Winner[];
}

/** How much is simulated. */
export interface Effort {
  /** Requests of one stratum, about; fewer where its keys send less in the longest time, more where the fewest send more in the shortest. */
  readonly requests: number;
  readonly keys: { readonly min: number; readonly max: number };
  readonly measuredMs: { readonly min: number; readonly max: number };
  readonly lonePerSecond: number;
}

/** Of the whole fleet, in a second. */
export interface Estimate extends Omit<KeyFigures, 'callsOfOne'> {
  /** Of what was denied, to callers well within their limits. */
  readonly deniedWithin: number;
  /** In milliseconds, of the requests that are admitted. */
  readonly waitP50: number;
  readonly waitP99: number;
  /** The key whose object is asked most often. */
  readonly hottest: { readonly rank: number; readonly calls: number; readonly requests: number };
  /** Were each request one call. */
  readonly naive: Pick<KeyFigures, 'calls' | 'objectSeconds'> & { readonly hottest: number };
  readonly thinned: Thinned;
  readonly violations: readonly string[];
}

export interface Thinned {
  /** Keys that stand for themselves only: the most popular ones. */
  readonly oneByOne: number;
  /** Others that were simulated, in so many strata, and how many keys they stand for. */
  readonly sampled: { readonly keys: number; readonly strata: number; readonly standFor: number };
  /** Keys whose figures are formulas, and their part of all requests. */
  readonly byFormula: { readonly keys: number; readonly share: number };
}

export interface EstimateOptions {
  readonly seed: number;
  readonly plant?: Plant | undefined;
}

/** An owner's idea of a demand halves in five seconds; of a demand beyond the limit all is settled within one. */
const WARM_MS = IDLE_MS;
const WARM_EXCEEDED_MS = 1_000;

/** Near its limit a caller is denied now and then by any limiter: requests come at random. */
const WELL_WITHIN = 0.95;

interface Part {
  readonly stratum: Stratum;
  readonly keys: readonly EstimatedKey[];
  readonly violation: string | undefined;
}

/** What was measured of a key, and how many it stands for. */
interface EstimatedKey extends MeasuredKey, Taken {
  readonly key: Key;
}

export async function estimate(
  fleet: Fleet,
  effort: Effort,
  { seed: fleetSeed, plant }: EstimateOptions,
): Promise<Estimate> {
  const random = new Random(fleetSeed).fork('fleet');
  const { isolates } = fleet;
  const { requests, keys, measuredMs, lonePerSecond } = effort;
  // Keys of a stratum differ little, and a long time says more than many keys.
  const keysMax = (perSecond: number) =>
    Math.min(keys.max, Math.max(keys.min, (requests * 1_000) / (perSecond * measuredMs.max)));
  const parts: Part[] = [];
  for (const stratum of strataOf(fleet.demand, { keysMax, lonePerSecond }, random)) {
    const { taken, isLone } = stratum;
    // Each its own, or they would all have the same luck.
    const seed = random.below(2 ** 31);
    const its = taken.map((each) => keyOf(each, fleet));
    const measured = await (isLone
      ? loneKeys(its, { seed, plant, random })
      : simulateKeys(its, { isolates, seed, plant, ...durations(its, effort) }));
    const together = measured.keys.map((key, at) => ({ ...key, ...taken[at]!, key: its[at]! }));
    parts.push({ stratum, keys: together, violation: measured.violation });
  }
  return summedUp(parts, fleet.demand);
}

/** Dollars for a million requests: calls, rows and object time. */
export function dollarsPerMillion({
  requests,
  calls,
  rows,
  objectSeconds,
}: Pick<KeyFigures, 'requests' | 'calls' | 'rows' | 'objectSeconds'>): number {
  const aSecond = calls * DOLLARS.perCall + rows * DOLLARS.perRow + objectSeconds * DOLLARS.perObjectSecond;
  return (aSecond * 1e6) / requests;
}

function keyOf({ rank, requestsPerSecond }: Taken, { enforced }: Fleet): Key {
  const name = `key ${rank}`;
  return { name, requestsPerSecond, enforced: enforced(name) };
}

function durations(
  keys: readonly Key[],
  { requests, measuredMs }: Effort,
): Pick<KeysRunOptions, 'warmMs' | 'isEased' | 'measuredMs'> {
  const perSecond = keys.reduce((sum, key) => sum + key.requestsPerSecond, 0);
  const wantedMs = (requests * 1_000) / perSecond;
  const isEased = exceeded(keys.at(-1)!).length > 0;
  return {
    warmMs: isEased ? WARM_EXCEEDED_MS : WARM_MS,
    isEased,
    measuredMs: Math.round(Math.min(measuredMs.max, Math.max(measuredMs.min, wantedMs))),
  };
}

function summedUp(parts: readonly Part[], demand: Demand): Estimate {
  const all = parts.flatMap(({ keys }) => keys);
  const within = all.filter(({ key }) => exceeded(key, WELL_WITHIN).length === 0);
  const sum = (figure: keyof KeyFigures, keys = all) =>
    keys.reduce((total, { weight, figures }) => total + weight * figures[figure], 0);
  const waits = all.flatMap(({ weight, waits: { ms, requestsPerSecond } }) =>
    ms.map((each): Weighed => ({ ms: each, weight: weight * requestsPerSecond })),
  );
  const naiveSeconds = all.reduce(
    (total, { weight, requestsPerSecond: calls }) => total + weight * objectSecondsOf({ calls, rows: 0 }),
    0,
  );
  const hottest = all.reduce((most, each) =>
    each.figures.callsOfOne > most.figures.callsOfOne ? each : most,
  );
  return {
    requests: sum('requests'),
    denied: sum('denied'),
    calls: sum('calls'),
    rows: sum('rows'),
    objectSeconds: sum('objectSeconds'),
    bytesAtRest: sum('bytesAtRest'),
    deniedCold: sum('deniedCold', within),
    deniedWithin: sum('denied', within),
    ...quantilesOf(waits),
    hottest: { rank: hottest.rank, calls: hottest.figures.callsOfOne, requests: hottest.requestsPerSecond },
    naive: { calls: demand.requestsPerSecond, objectSeconds: naiveSeconds, hottest: rateOf(demand, 1) },
    thinned: thinnedOf(parts, demand),
    violations: parts.flatMap(({ violation }) => violation ?? []),
  };
}

interface Weighed {
  readonly ms: number;
  readonly weight: number;
}

function quantilesOf(waits: readonly Weighed[]): Pick<Estimate, 'waitP50' | 'waitP99'> {
  const sorted = waits.toSorted((one, other) => one.ms - other.ms);
  const all = sorted.reduce((sum, { weight }) => sum + weight, 0);
  const at = (part: number) => {
    let passed = 0;
    for (const { ms, weight } of sorted) {
      passed += weight;
      if (passed >= all * part) return ms;
    }
    return 0;
  };
  return { waitP50: at(0.5), waitP99: at(0.99) };
}

function thinnedOf(parts: readonly Part[], { requestsPerSecond }: Demand): Thinned {
  const sum = (some: readonly Part[], of: (part: Part) => number) =>
    some.reduce((total, part) => total + of(part), 0);
  const sizeOf = ({ stratum: { from, to } }: Part) => to - from + 1;
  const isWhole = (part: Part) => part.keys.length === sizeOf(part);
  const simulated = parts.filter(({ stratum }) => !stratum.isLone);
  const sampled = simulated.filter((part) => !isWhole(part));
  const lone = parts.filter(({ stratum }) => stratum.isLone);
  const loneRequests = sum(lone, ({ keys }) =>
    keys.reduce((total, key) => total + key.weight * key.requestsPerSecond, 0),
  );
  return {
    oneByOne: sum(simulated.filter(isWhole), sizeOf),
    sampled: {
      keys: sum(sampled, ({ keys }) => keys.length),
      strata: sampled.length,
      standFor: sum(sampled, sizeOf),
    },
    byFormula: { keys: sum(lone, sizeOf), share: loneRequests / requestsPerSecond },
  };
}
