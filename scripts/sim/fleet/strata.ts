/**
 * Which keys of a fleet are looked at, and how many each of them stands for.
 *
 * Keys are cut into strata by how popular they are: the most popular one by itself, then so that the first of a stratum has at most twice
 * the requests of the last. Where a stratum has few keys all are taken, each for itself; else every n-th from one that is drawn, so
 * that each key is as likely to be taken as its neighbours and stands for about n. What it stands for exactly is set so that those taken
 * add up to the stratum in keys and in requests, both of which are known: whatever goes in proportion to requests, or is the
 * same for every key, then comes out without an error of sampling (a calibrated estimator; Deville and Särndal, 1992).
 */
import type { Random } from '../random.ts';
import { type Demand, lastRankAbove, type Ranks, rateOf, rateOfRanks } from './demand.ts';

export interface Stratum extends Ranks {
  readonly taken: readonly Taken[];
  /** Asked for so rarely that a request finds nothing of the one before: there is a formula for that. */
  readonly isLone: boolean;
}

export interface Taken {
  readonly rank: number;
  readonly requestsPerSecond: number;
  /** How many keys it stands for; 1 where all are taken. */
  readonly weight: number;
}

export interface Thinning {
  /** How many keys of a stratum are taken at most, given the requests a second of its most popular one. */
  readonly keysMax: (perSecond: number) => number;
  /** Keys that are asked for more rarely than this are `isLone`. */
  readonly lonePerSecond: number;
}

/** A formula costs next to nothing, so as many keys as its mean should be over. */
const LONE_KEYS_MAX = 1_000;

export function strataOf(demand: Demand, thinning: Thinning, random: Random): readonly Stratum[] {
  const lastBusy = lastRankAbove(demand, thinning.lonePerSecond);
  const strata: Stratum[] = [];
  for (let from = 1; from <= demand.keys; from = strata.at(-1)!.to + 1) {
    const isLone = from > lastBusy;
    const to = Math.min(lastOfStratum(from, demand.exponent), isLone ? demand.keys : lastBusy);
    const keysMax = isLone ? LONE_KEYS_MAX : thinning.keysMax(rateOf(demand, from));
    strata.push({ from, to, isLone, taken: take(demand, { from, to }, keysMax, random) });
  }
  return strata;
}

function lastOfStratum(from: number, exponent: number): number {
  return from === 1 ? 1 : Math.floor(from * 2 ** (1 / exponent));
}

function take(demand: Demand, ranks: Ranks, keysMax: number, random: Random): readonly Taken[] {
  const { from, to } = ranks;
  const keys = to - from + 1;
  const count = Math.min(keys, Math.max(1, Math.floor(keysMax)));
  const start = random.next();
  const drawn = Array.from({ length: count }, (_, at) => from + Math.floor(((at + start) * keys) / count));
  const taken = drawn.map((rank) => ({ rank, requestsPerSecond: rateOf(demand, rank) }));
  return calibrated(taken, { keys, requestsPerSecond: rateOfRanks(demand, ranks) });
}

/** Those that have more than the mean stand for a little more or less than the others, as it takes for the requests to add up. */
function calibrated(
  taken: readonly Omit<Taken, 'weight'>[],
  { keys, requestsPerSecond }: Omit<Demand, 'exponent'>,
): readonly Taken[] {
  const even = keys / taken.length;
  const mean = taken.reduce((sum, each) => sum + each.requestsPerSecond, 0) / taken.length;
  const spread = taken.reduce((sum, each) => sum + (each.requestsPerSecond - mean) ** 2, 0);
  const slope = even === 1 || spread === 0 ? 0 : (requestsPerSecond - keys * mean) / spread;
  return taken.map((each) => ({ ...each, weight: even + slope * (each.requestsPerSecond - mean) }));
}
