/**
 * What a valid rule file asks of a single object that this cannot give: each request of a rule that isolates cannot lease is one call of the
 * object that holds the counter, and a strict rule does not split over several.
 */
import { countsSlots, type Limit } from '../core/decision.ts';
import type { PlacedRule } from './compile-descriptors.ts';
import type { Problem } from './problem.ts';
import type { Rule, Ruleset } from './ruleset.ts';

/** What one object serves in a second with room to spare; a single counter for everybody meets it first. */
const CALLS_PER_SECOND_AT_EASE = 500;
/** What one object answers at most. */
const CALLS_PER_SECOND_MAX = 1_000;
/** A burst that lasts less cannot be lent: a lease would be over before it arrives. */
const LEASABLE_BURST_MS_MIN = 100;
/** A lower limit that says `auto` is never hot enough to be leased. */
const AUTO_UNITS_PER_SECOND = 34;

type Costs = Pick<Ruleset, 'costs'>;

export function objectWarnings(ruleset: Costs, item: PlacedRule): readonly Problem[] {
  return [...moreThanOneObject(ruleset, item), ...oneObjectForAll(ruleset, item), ...tooSmallToLease(item)];
}

function moreThanOneObject(ruleset: Costs, { rule, at }: PlacedRule): readonly Problem[] {
  if (!exceedsOneObject(ruleset, rule)) return [];
  const object = rule.regional === undefined ? 'one object' : 'one object in each region';
  const remedy =
    rule.consistency === 'strict' && isLent(ruleset, rule) ? '; "leased" or "auto" can carry it' : '';
  const message =
    `allows ${Math.round(objectUnitsPerSecond(rule)).toLocaleString('en')} units a second, and ${object} decides every request, about ` +
    `${CALLS_PER_SECOND_MAX.toLocaleString('en')} a second (${whyForEach(ruleset, rule)}): past that they fall back${remedy}`;
  return [{ path: at, message }];
}

function oneObjectForAll(ruleset: Costs, { rule, at }: PlacedRule): readonly Problem[] {
  if (rule.per.length > 0 || rule.scope === 'local' || rule.unlimited) return [];
  if (isEverLeased(ruleset, rule) || exceedsOneObject(ruleset, rule)) return [];
  const whose = rule.scope === 'regional' ? 'all requests of a region' : 'all requests';
  const message =
    `counts ${whose} in one object ("per: []"), which is asked for each of them: past about ` +
    `${CALLS_PER_SECOND_AT_EASE} a second they fall back`;
  return [{ path: at, message }];
}

function tooSmallToLease({ rule, at }: PlacedRule): readonly Problem[] {
  const { limit } = rule;
  // Regions borrow from the whole, however their own isolates ask.
  const isBorrowed = rule.regional !== undefined && rule.regional.weights === undefined;
  if (limit?.algorithm !== 'token_bucket' || rule.scope === 'local') return [];
  if (rule.consistency === 'strict' && !isBorrowed) return [];
  if (!(burstMsOf(limit) < LEASABLE_BURST_MS_MIN)) return [];
  const outcome = isBorrowed
    ? 'regions will refuse requests that the whole has room for'
    : 'it will be strict';
  const message = `has a burst that lasts ${Math.floor(burstMsOf(limit))} ms, too little to lease (${LEASABLE_BURST_MS_MIN} ms): ${outcome}`;
  return [{ path: at, message }];
}

function exceedsOneObject(ruleset: Costs, rule: Rule): boolean {
  if (rule.scope === 'local' || rule.limit === undefined || countsSlots(rule.limit)) return false;
  return objectUnitsPerSecond(rule) > CALLS_PER_SECOND_MAX && !isEverLeased(ruleset, rule);
}

/** What the busiest object of the rule has to count: the whole limit, or the largest part of one that is split. */
function objectUnitsPerSecond({ limit, regional }: Rule): number {
  const largestPart = Math.max(...Object.values(regional?.weights ?? { whole: 1 }));
  return (largestPart * limit!.quota * 1_000) / limit!.windowMs;
}

/** Whether isolates ever decide by themselves, once the demand is there. */
function isEverLeased(ruleset: Costs, rule: Rule): boolean {
  if (rule.consistency === 'strict' || !isLent(ruleset, rule)) return false;
  return rule.consistency === 'leased' || objectUnitsPerSecond(rule) >= AUTO_UNITS_PER_SECOND;
}

/** Whether the numbers allow leases, whatever `consistency` says. */
function isLent(ruleset: Costs, { limit }: Rule): boolean {
  return limit !== undefined && whyNotLent(ruleset, limit) === undefined;
}

function whyForEach(ruleset: Costs, { consistency, limit }: Rule): string {
  return consistency === 'strict' ? 'strict' : (whyNotLent(ruleset, limit!) ?? 'too low to be leased');
}

function whyNotLent({ costs }: Costs, limit: Limit): string | undefined {
  const { algorithm, burst } = limit;
  if (algorithm !== 'token_bucket' && algorithm !== 'fixed_window') return `${algorithm} is never leased`;
  if (algorithm === 'token_bucket' && burstMsOf(limit) < LEASABLE_BURST_MS_MIN)
    return 'too small a burst to lease';
  const largestCost = Math.max(1, ...costs.map(({ cost }) => cost));
  return largestCost * 2 > burst ? 'a request may cost half the burst' : undefined;
}

function burstMsOf({ burst, windowMs, quota }: Limit): number {
  return (burst * windowMs) / quota;
}
