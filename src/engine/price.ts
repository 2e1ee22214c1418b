/**
 * What the owners of one caller cost for a million requests, at Cloudflare's list prices of late 2026.
 *
 * The caller is taken to use its limit: it sends as many requests as the tightest of its enforced rules admits, at random, each at the same
 * cost and over a number of isolates alike, and nobody else is counted with it. Calls are those of steady demand while all is well; rows
 * and time are what an owner takes at most, where a counter is not at rest within five seconds. The Worker's own requests and CPU time are
 * not in it. `docs/operating.md` has the arithmetic.
 */
import { capacity, countsSlots } from '../core/decision.ts';
import type { PolicyExplanation } from '../policy/explain.ts';
import type { Rule } from '../policy/ruleset.ts';
import { isLeasedAt } from './leases.ts';

export const DOLLARS = {
  perCall: 0.15 / 1e6,
  perRow: 1 / 1e6,
  /** $12.50 a million GB-s, of an object that is billed as 128 MB. */
  perObjectSecond: (12.5 * 0.128) / 1e6,
};

/** A call and a write, of an object that is asked for nothing else: an assumption. */
export const LONE_REQUEST_SECONDS = 0.05;

/** A holder that has enough renews its lease twice a second. */
const RENEWALS_PER_SECOND = 2;

/** Where no enforced rule says how many requests there may be, as of requests in progress. */
const UNKNOWN_RATE = 1;

export interface PriceOptions {
  /** Whole, >= 1: where the caller's requests arrive, as many at each. */
  readonly isolates: number;
  /** Units a request. */
  readonly cost: number;
  /** The largest cost that the ruleset gives any request: a counter that could not lend so much is not leased. */
  readonly largestCost: number;
}

export interface Price {
  readonly requestsPerSecond: number;
  readonly owners: readonly OwnerPrice[];
}

export interface OwnerPrice {
  readonly owner: string;
  /** The policies that it counts, asked of it together; `shadow` ones decide nothing. */
  readonly policies: readonly { readonly policy: string; readonly shadow: boolean }[];
  /** Whether isolates spend by themselves at that rate. */
  readonly isLeased: boolean;
  /** Each for a million requests. */
  readonly calls: number;
  readonly rows: number;
  readonly objectSeconds: number;
  readonly dollars: number;
}

type Priced = Pick<PolicyExplanation, 'policy' | 'shadow' | 'rule' | 'counted'>;

/** `undefined` when no such request is ever admitted. */
export function priceOf(policies: readonly Priced[], options: PriceOptions): Price | undefined {
  const { isolates, cost } = options;
  const counting = policies.filter(({ counted }) => counted !== undefined);
  const enforced = counting.filter(({ shadow }) => !shadow).map(({ rule }) => rule);
  if (enforced.some(({ limit }) => limit!.quota === 0 || cost > capacity(limit!))) return undefined;
  const rates = enforced
    .filter(({ limit }) => !countsSlots(limit!))
    .map((rule) => requestsPerSecondOf(rule, { isolates, cost }));
  const requestsPerSecond = rates.length === 0 ? UNKNOWN_RATE : Math.min(...rates);
  const asked = counting.filter(({ rule }) => rule.scope !== 'local');
  const owners = Map.groupBy(asked, ({ counted }) => counted!.owner.name);
  return {
    requestsPerSecond,
    owners: [...owners].map(([owner, its]) => ({
      owner,
      policies: its.map(({ policy, shadow }) => ({ policy, shadow })),
      ...ownerPriceOf(its, { ...options, requestsPerSecond }),
    })),
  };
}

function requestsPerSecondOf(
  { limit, scope }: Rule,
  { isolates, cost }: Pick<PriceOptions, 'isolates' | 'cost'>,
): number {
  const perSecond = (limit!.quota * 1_000) / (limit!.windowMs * Math.max(1, cost));
  return scope === 'local' ? isolates * perSecond : perSecond;
}

function ownerPriceOf(
  policies: readonly Priced[],
  { requestsPerSecond, isolates, cost, largestCost }: PriceOptions & Pick<Price, 'requestsPerSecond'>,
): Omit<OwnerPrice, 'owner' | 'policies'> {
  const enforced = policies.filter(({ shadow }) => !shadow).map(({ rule }) => rule);
  const demand = { requestsPerSecond: requestsPerSecond / isolates, cost, largestCost };
  const isLeased = enforced.length > 0 && enforced.every((rule) => isLeasedAt(rule, demand));
  const hasSlots = policies.some(({ rule }) => countsSlots(rule.limit!));
  const callsPerSecond = isLeased ? RENEWALS_PER_SECOND * isolates : (hasSlots ? 2 : 1) * requestsPerSecond;
  const millionTakesSeconds = 1e6 / requestsPerSecond;
  const calls = callsPerSecond * millionTakesSeconds;
  const isPeek = cost === 0 && !hasSlots;
  const rows = isPeek ? 0 : Math.min(1e6, millionTakesSeconds);
  // One that comes within a second of the last has to be written when that second is over, and keeps its owner until then.
  const aloneSeconds = (LONE_REQUEST_SECONDS + (isPeek ? 0 : requestsPerSecond)) * 1e6;
  const objectSeconds = Math.min(millionTakesSeconds, aloneSeconds);
  const dollars = calls * DOLLARS.perCall + rows * DOLLARS.perRow + objectSeconds * DOLLARS.perObjectSecond;
  return { isLeased, calls, rows, objectSeconds, dollars };
}
