/**
 * How many requests the objects of a rule can carry, in a sentence: one object decides each, or lends to isolates that decide by themselves.
 *
 * A strict rule never splits: it has one object, whatever that can answer.
 */
import { capacity, type Limit } from '../core/decision.ts';
import type { Rule } from '../policy/ruleset.ts';
import { isLendable } from './lease-terms.ts';
import { isLeasedAt } from './leases.ts';
import { SPLIT_CALLS_PER_SECOND, SPLIT_HOLDERS, slicesFor } from './slices.ts';

/** What an object answers at most, so what it can charge before it has to write. */
export const OWNER_REQUESTS_PER_SECOND = 1_000;

/** Half of that: with room for a burst, and for requests that cost it more than most. */
const REQUESTS_PER_SECOND_AT_EASE = OWNER_REQUESTS_PER_SECOND / 2;

/** A holder that has enough renews its lease twice a second. */
export const RENEWALS_PER_SECOND = 2;

const HOLDERS_OF_ONE = OWNER_REQUESTS_PER_SECOND / RENEWALS_PER_SECOND;

export interface Carried {
  readonly largestCost: number;
  /** The owner counts for many callers, and has others beside it that do. */
  readonly isShared?: boolean | undefined;
}

/** `undefined` for a rule that each isolate counts by itself. */
export function carriedSentence(
  rule: Rule,
  limit: Limit,
  { largestCost, isShared }: Carried,
): string | undefined {
  if (rule.scope === 'local') return undefined;
  const isBorrowed = rule.regional !== undefined && rule.regional.weights === undefined;
  const object = isBorrowed ? 'one object in each region' : 'one object';
  const why = whyAskedForEach(rule, limit, largestCost);
  if (why !== undefined) {
    return (
      `${why}: ${object} decides every request, about ${OWNER_REQUESTS_PER_SECOND} a second ` +
      `(${REQUESTS_PER_SECOND_AT_EASE} with room to spare); above that as with a silent owner`
    );
  }
  const isSplit = limit.algorithm === 'token_bucket' && !isBorrowed && isShared !== true;
  return isSplit
    ? `leased when hot: one object lends to isolates; where more than ${SPLIT_HOLDERS} of them ask it more than ` +
        `${SPLIT_CALLS_PER_SECOND} times a second, the key is split over ${slicesFor([limit])} slices`
    : `leased when hot: ${object} lends to isolates, to about ${HOLDERS_OF_ONE} of them`;
}

/** Why isolates never decide by themselves; `undefined` where they do, once the demand is there. */
function whyAskedForEach(rule: Rule, limit: Limit, largestCost: number): string | undefined {
  if (rule.consistency === 'strict') return 'strict';
  const { algorithm } = limit;
  if (algorithm !== 'token_bucket' && algorithm !== 'fixed_window') return `${algorithm} is never leased`;
  if (!isLendable(limit)) return 'too small a burst to lease';
  if (largestCost * 2 > capacity(limit)) return 'too dear a request to lease';
  // The demand may be anything; of a rule that says `auto`, the limit has to be high enough as well.
  const perSecond = (limit.quota * 1_000) / limit.windowMs;
  const requestsPerSecond = rule.consistency === 'leased' ? Number.POSITIVE_INFINITY : perSecond;
  const isEverHot = isLeasedAt({ ...rule, limit }, { requestsPerSecond, cost: 1, largestCost });
  return isEverHot ? undefined : 'too low a limit to lease';
}
