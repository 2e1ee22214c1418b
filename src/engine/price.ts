/**
 * What the owners of one caller cost for a million requests, at Cloudflare's list prices of late 2026.
 *
 * The caller is taken to use its limit: it sends as many requests as the tightest of its enforced rules admits, at random, each at the same
 * cost and over a number of isolates alike, and nobody else is counted with it. Calls are those of steady demand while all is well; rows
 * and time are what an owner takes at most, where a counter is not at rest within five seconds. The Worker's own requests and CPU time are
 * not in it.
 *
 * A rule of regions is used in one of them: of a limit that is split, its part; of one that is shared, the whole, by way of the region's owner
 * and of the owner of the whole, to which the first talks 1.4 times a second while it is in use. `docs/operating.md` has the arithmetic.
 */
import { capacity, countsSlots } from '../core/decision.ts';
import { countedRule, type PolicyExplanation } from '../policy/explain.ts';
import type { Rule } from '../policy/ruleset.ts';
import { RENEWALS_PER_SECOND } from './bound-objects.ts';
import { isLeasedAt } from './leases.ts';

export const DOLLARS = {
  perCall: 0.15 / 1e6,
  perRow: 1 / 1e6,
  /** $12.50 a million GB-s, of an object that is billed as 128 MB. */
  perObjectSecond: (12.5 * 0.128) / 1e6,
};

/** A call and a write, of an object that is asked for nothing else: an assumption. */
export const LONE_REQUEST_SECONDS = 0.05;

/** A region that has enough asks the root again 700 ms after an answer, which is a few or 150 ms away. */
export const ROOT_CALLS_PER_SECOND = 1.4;

/** What a region tells the root about a lone request: that it starts, what it was lent and owes, and that it rests. */
const LONE_ROOT_CALLS = 7;

/** After a lone request a region and its root are busy until it rests: two seconds without a request, and the way. */
const LONE_VISIT_SECONDS = 3;

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
  /** The policies of which it is the whole that a region borrows from: the region's owner tells it now and then, and asks for no request. */
  readonly lent: OwnerPrice['policies'];
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
  const counting = policies
    .filter(({ counted }) => counted !== undefined)
    .map((policy) => ({ ...policy, rule: countedRule(policy) }));
  const enforced = counting.filter(({ shadow }) => !shadow).map(({ rule }) => rule);
  if (enforced.some(({ limit }) => limit!.quota === 0 || cost > capacity(limit!))) return undefined;
  const rates = enforced
    .filter(({ limit }) => !countsSlots(limit!))
    .map((rule) => requestsPerSecondOf(rule, { isolates, cost }));
  const requestsPerSecond = rates.length === 0 ? UNKNOWN_RATE : Math.min(...rates);
  const owned = counting.filter(({ rule }) => rule.scope !== 'local');
  const asked = Map.groupBy(owned, ({ counted }) => (counted!.inRegion ?? counted!).owner.name);
  const roots = Map.groupBy(owned.filter(isBorrowed), ({ counted }) => counted!.owner.name);
  const names = [...new Set([...asked.keys(), ...roots.keys()])];
  return {
    requestsPerSecond,
    owners: names.map((owner) => {
      const its = { asked: asked.get(owner) ?? [], lent: roots.get(owner) ?? [] };
      return {
        owner,
        policies: its.asked.map(named),
        lent: its.lent.map(named),
        ...ownerPriceOf(its, { ...options, requestsPerSecond }),
      };
    }),
  };
}

function named({ policy, shadow }: Priced): OwnerPrice['policies'][number] {
  return { policy, shadow };
}

function isBorrowed({ counted }: Priced): boolean {
  return counted?.inRegion?.isSplit === false;
}

function requestsPerSecondOf(
  { limit, scope }: Rule,
  { isolates, cost }: Pick<PriceOptions, 'isolates' | 'cost'>,
): number {
  const perSecond = (limit!.quota * 1_000) / (limit!.windowMs * Math.max(1, cost));
  return scope === 'local' ? isolates * perSecond : perSecond;
}

interface Use {
  readonly asked: readonly Priced[];
  readonly lent: readonly Priced[];
}

function ownerPriceOf(
  { asked, lent }: Use,
  options: PriceOptions & Pick<Price, 'requestsPerSecond'>,
): Omit<OwnerPrice, 'owner' | 'policies' | 'lent'> {
  const millionTakesSeconds = 1e6 / options.requestsPerSecond;
  const { isLeased, ...use } = useByIsolates(asked, options);
  // The root and the region's owner talk to each other, and each is busy with that.
  const isMiddle = asked.some(isBorrowed);
  const visitSeconds = lent.length > 0 || isMiddle ? LONE_VISIT_SECONDS * 1e6 : 0;
  const rootCalls =
    lent.length > 0 ? Math.min(ROOT_CALLS_PER_SECOND * millionTakesSeconds, LONE_ROOT_CALLS * 1e6) : 0;
  const calls = use.calls + rootCalls;
  const rows = Math.min(millionTakesSeconds, Math.max(use.rows, visitSeconds));
  const objectSeconds = Math.min(millionTakesSeconds, Math.max(use.objectSeconds, visitSeconds));
  const dollars = calls * DOLLARS.perCall + rows * DOLLARS.perRow + objectSeconds * DOLLARS.perObjectSecond;
  return { isLeased, calls, rows, objectSeconds, dollars };
}

function useByIsolates(
  policies: readonly Priced[],
  { requestsPerSecond, isolates, cost, largestCost }: PriceOptions & Pick<Price, 'requestsPerSecond'>,
): Pick<OwnerPrice, 'isLeased' | 'calls' | 'rows' | 'objectSeconds'> {
  if (policies.length === 0) return { isLeased: false, calls: 0, rows: 0, objectSeconds: 0 };
  const enforced = policies.filter(({ shadow }) => !shadow).map(({ rule }) => rule);
  const demand = { requestsPerSecond: requestsPerSecond / isolates, cost, largestCost };
  const isLeased = enforced.length > 0 && enforced.every((rule) => isLeasedAt(rule, demand));
  const hasSlots = policies.some(({ rule }) => countsSlots(rule.limit!));
  const callsPerSecond = isLeased ? RENEWALS_PER_SECOND * isolates : (hasSlots ? 2 : 1) * requestsPerSecond;
  const millionTakesSeconds = 1e6 / requestsPerSecond;
  const isPeek = cost === 0 && !hasSlots;
  const rows = isPeek ? 0 : Math.min(1e6, millionTakesSeconds);
  // One that comes within a second of the last has to be written when that second is over, and keeps its owner until then.
  const aloneSeconds = (LONE_REQUEST_SECONDS + (isPeek ? 0 : requestsPerSecond)) * 1e6;
  const objectSeconds = Math.min(millionTakesSeconds, aloneSeconds);
  return { isLeased, calls: callsPerSecond * millionTakesSeconds, rows, objectSeconds };
}
