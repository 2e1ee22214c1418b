/**
 * What applies to a browser's preflight: no rule but the flood tier, or a built-in one where the file has none. Counting preflights
 * would halve a browser's quota; counting them nowhere would make two headers an unlimited pass to the origin.
 */
import type { Winner } from '../policy/counter.ts';
import { type Facts, type Match, Matcher } from '../policy/match.ts';
import type { Rule, Ruleset } from '../policy/ruleset.ts';

/** 100 a second: more than any page sends, and little for an origin. */
const PREFLIGHTS_PER_MINUTE = 6_000;

const RULE: Rule = {
  path: [],
  policy: 'preflight',
  shadow: false,
  unlimited: false,
  limit: {
    algorithm: 'token_bucket',
    quota: PREFLIGHTS_PER_MINUTE,
    windowMs: 60_000,
    burst: PREFLIGHTS_PER_MINUTE,
    maxDelayMs: 0,
  },
  scope: 'local',
  consistency: 'strict',
  failureMode: 'open',
  blindShare: 1,
  per: ['remote_address'],
};

/** Finds the built-in rule's counter for a caller of this ruleset. */
export function preflightMatcher(ruleset: Ruleset): Matcher {
  return new Matcher({ ...ruleset, rules: [RULE], costs: [] }, { seed: 0 });
}

/** `match` is what the request's facts match among all rules. */
export function preflightMatch(match: Match, facts: Facts, builtIn: Matcher): Match {
  const { clamped: _, ...unclamped } = match;
  const flood = match.enforced.filter(({ rule }) => rule.scope === 'local');
  const isBounded = flood.some(isByAddress);
  return {
    ...unclamped,
    cost: 1,
    estimate: undefined,
    shadow: [],
    enforced: isBounded ? flood : [...flood, ...builtIn.match(facts).enforced],
  };
}

/** Counted by what no client writes: one that invents a header each time would have a new counter each time. */
function isByAddress({ pairs }: Winner): boolean {
  return pairs.every(([attribute]) => attribute === 'remote_address');
}
