/**
 * Why a request is decided by the rules that it is: for each policy the winner, what it beat and by which sentence of the order, and
 * the counter and owner that it leads to.
 *
 * Plain data for a command or an API to print. It asks the same matcher that decides requests, so it cannot tell another story.
 */
import { countsSlots, type Limit } from '../core/decision.ts';
import type { OwnerRef, Pairs, Winner } from './counter.ts';
import type { Contest, Facts, Matcher } from './match.ts';
import { placedIn, regionsOf, servedRegion } from './place.ts';
import type { Region } from './region.ts';
import type { Estimate, Rule, RuleNode } from './ruleset.ts';
import { type Placed, type Reason, reasonOver } from './specificity.ts';

export interface Explanation {
  readonly domain: string;
  /** The region that the request is counted in, where a rule asks. */
  readonly region: Region;
  readonly route: string | undefined;
  readonly cost: number;
  /** Where the cost is an estimate: how to learn better. */
  readonly estimate: Estimate | undefined;
  readonly unmatched: boolean;
  /** One for each policy with a match, enforced and shadow apart. */
  readonly policies: readonly PolicyExplanation[];
}

export interface PolicyExplanation {
  readonly policy: string;
  readonly shadow: boolean;
  readonly rule: Rule;
  /** Where the winner stands among the rules of the ruleset, which are in the order of the file. */
  readonly ruleIndex: number;
  readonly title: string;
  readonly beaten: readonly Beaten[];
  /** Absent for an `unlimited` rule, which counts nothing. */
  readonly counted: Counted | undefined;
}

export interface Beaten {
  readonly ruleIndex: number;
  readonly title: string;
  /** What the winner is or has that this rule is not or has not. */
  readonly because: Reason;
}

export interface Counted {
  readonly pairs: Pairs;
  readonly counterId: string;
  readonly owner: OwnerRef;
  /** Where the rule is counted by regions: what a request of the region is counted on there. */
  readonly inRegion?: CountedInRegion;
}

export interface CountedInRegion {
  /** Of a limit that is split, the region whose part it is. */
  readonly region: Region;
  readonly counterId: string;
  readonly owner: OwnerRef;
  /** The part of the region, of a limit that is split; else the whole, which the regions borrow from. */
  readonly limit: Limit;
  readonly isSplit: boolean;
}

/** `from` is where the request comes from; where it is not said, the first region of the file. */
export function explain(matcher: Matcher, facts: Facts, from?: Region): Explanation {
  const { cost, estimate, route, unmatched } = matcher.match(facts);
  const { ruleset } = matcher;
  const region = from === undefined ? regionsOf(ruleset)[0]! : servedRegion(ruleset, from);
  const policies = matcher.contests(facts).map((contest) => explainContest(contest, region));
  return { domain: ruleset.domain, region, route, cost, estimate, unmatched, policies };
}

function explainContest({ winner, beaten, counted }: Contest, region: Region): PolicyExplanation {
  const { rule, index } = winner;
  return {
    policy: rule.policy,
    shadow: rule.shadow,
    rule,
    ruleIndex: index,
    title: titleOf(rule),
    beaten: beaten.map((loser) => explainBeaten(winner, loser)),
    counted: counted && countedIn(counted, region),
  };
}

function countedIn(winner: Winner, region: Region): Counted {
  const { rule, pairs, counterId, owner } = winner;
  const counted = { pairs, counterId, owner };
  if (rule.regional === undefined) return counted;
  const placed = placedIn(winner, region);
  const inRegion: CountedInRegion = {
    region: placed.owner.hint!,
    counterId: placed.counterId,
    owner: placed.owner,
    limit: placed.rule.limit!,
    isSplit: rule.regional.weights !== undefined,
  };
  return { ...counted, inRegion };
}

/** The rule as a request is counted by it: of a limit that is split, with the numbers of the part. */
export function countedRule({ rule, counted }: Pick<PolicyExplanation, 'rule' | 'counted'>): Rule {
  const limit = counted?.inRegion?.limit;
  return limit === undefined ? rule : { ...rule, limit };
}

function explainBeaten(winner: Placed, loser: Placed): Beaten {
  return { ruleIndex: loser.index, title: titleOf(loser.rule), because: reasonOver(winner, loser) };
}

/** `tier=free > route=/v1/search: 30 per 1m, burst 10`. */
export function titleOf(rule: Rule): string {
  return `${rule.path.map(nodeTitle).join(' > ')}: ${numbersOf(rule.limit)}`;
}

function nodeTitle(node: RuleNode): string {
  return node.match === 'any' ? node.key : `${node.key}=${node.value}`;
}

/** `30 per 1m, burst 10`. */
export function numbersOf(limit: Limit | undefined): string {
  if (limit === undefined) return 'unlimited';
  if (countsSlots(limit)) return `${limit.quota} at once, slots of ${windowTitle(limit.windowMs)}`;
  const burst = limit.burst === limit.quota ? '' : `, burst ${limit.burst}`;
  const algorithm = limit.algorithm === 'token_bucket' ? '' : `, ${limit.algorithm}`;
  return `${limit.quota} per ${windowTitle(limit.windowMs)}${burst}${algorithm}`;
}

function windowTitle(windowMs: number): string {
  const units = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['m', 60_000],
    ['s', 1000],
  ] as const;
  for (const [name, ms] of units) if (windowMs % ms === 0) return `${windowMs / ms}${name}`;
  return `${windowMs}ms`;
}
