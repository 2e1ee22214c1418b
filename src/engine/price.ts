/**
 * What the owner of some of a caller's counters costs for a million requests, at Cloudflare's list prices of late 2026.
 *
 * The caller is taken to use its limit: as many requests as the tightest of these rules admits, at the ruleset's cost, over a number of isolates
 * alike. Never more calls than that while all is well; rows and time are what an owner takes at most, once a caller is not at rest
 * within five seconds. The Worker's own requests, and CPU time, are not in it. `docs/operating.md` has the arithmetic.
 */
import { countsSlots } from '../core/decision.ts';
import type { PolicyExplanation } from '../policy/explain.ts';
import type { Rule } from '../policy/ruleset.ts';
import { isLeasedAt } from './leases.ts';

const DOLLARS = {
  perCall: 0.15 / 1e6,
  perRow: 1 / 1e6,
  /** $12.50 a million GB-s, of an object that is billed as 128 MB. */
  perObjectSecond: (12.5 * 0.128) / 1e6,
};

/** A call and a write, of an object that is asked for nothing else: an assumption. */
const LONE_REQUEST_SECONDS = 0.05;

/** A holder that has enough renews its lease twice a second. */
const RENEWALS_PER_SECOND = 2;

/** Of requests in progress no rule says how many there are: priced as one a second. */
const UNKNOWN_RATE = 1;

export interface PriceOptions {
  /** Whole, >= 1: where the caller's requests arrive, as many at each. */
  readonly isolates: number;
  /** Units a request. */
  readonly cost: number;
}

export interface Price {
  /** Whether isolates spend by themselves at that rate. */
  readonly isLeased: boolean;
  readonly requestsPerSecond: number;
  /** Each for a million requests. */
  readonly calls: number;
  readonly rows: number;
  readonly objectSeconds: number;
  readonly dollars: number;
}

export interface OwnerPrice extends Price {
  readonly owner: string;
  readonly policies: readonly string[];
}

/** One for each owner that a request with these policies asks; the policies of one owner are asked of it together. */
export function pricesOf(
  policies: readonly Pick<PolicyExplanation, 'policy' | 'rule' | 'counted'>[],
  options: PriceOptions,
): readonly OwnerPrice[] {
  const asked = policies.filter(({ counted, rule }) => counted !== undefined && rule.scope !== 'local');
  const owners = Map.groupBy(asked, ({ counted }) => counted!.owner.name);
  return [...owners].flatMap(([owner, its]) => {
    const price = priceOf(
      its.map(({ rule }) => rule),
      options,
    );
    return price === undefined ? [] : { owner, policies: its.map(({ policy }) => policy), ...price };
  });
}

/** `rules` count at one owner. Local and unlimited ones, and a quota of 0, cost nothing: `undefined` if there are no others. */
export function priceOf(rules: readonly Rule[], { isolates, cost }: PriceOptions): Price | undefined {
  const counted = rules.filter(
    ({ limit, scope }) => limit !== undefined && limit.quota > 0 && scope !== 'local',
  );
  if (counted.length === 0) return undefined;
  const units = Math.max(1, cost);
  const rates = counted
    .filter(({ limit }) => !countsSlots(limit!))
    .map(({ limit }) => (limit!.quota * 1_000) / (limit!.windowMs * units));
  const requestsPerSecond = rates.length === 0 ? UNKNOWN_RATE : Math.min(...rates);
  const unitsPerIsolate = (requestsPerSecond * units) / isolates;
  const isLeased = counted.every((rule) => isLeasedAt(rule, unitsPerIsolate, units));
  const perRequest = counted.some(({ limit }) => countsSlots(limit!)) ? 2 : 1;
  const callsPerSecond = isLeased ? RENEWALS_PER_SECOND * isolates : perRequest * requestsPerSecond;
  const millionTakesSeconds = 1e6 / requestsPerSecond;
  const calls = callsPerSecond * millionTakesSeconds;
  const rows = Math.min(1e6, millionTakesSeconds);
  const objectSeconds = requestsPerSecond >= 1 ? millionTakesSeconds : LONE_REQUEST_SECONDS * 1e6;
  const dollars = calls * DOLLARS.perCall + rows * DOLLARS.perRow + objectSeconds * DOLLARS.perObjectSecond;
  return { isLeased, requestsPerSecond, calls, rows, objectSeconds, dollars };
}
