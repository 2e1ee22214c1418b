/**
 * From a request to the rules that apply to it: in each policy the most specific match, enforced and shadow apart.
 *
 * A `Matcher` is built once from a ruleset and then asked for every request. It keeps the rules of each (policy, enforced or
 * shadow) in steps of equal static specificity, the most specific first, so a search ends at the first step that matches; and
 * within a step finds rules by a value that they name, so thousands of overrides of single callers cost one look-up. It never throws
 * on what a request holds.
 */
import { isInNetwork, parseNetwork } from './address.ts';
import { CALLER_ATTRIBUTES } from './attributes.ts';
import type { Clamped, ClampTable } from './clamp.ts';
import { costOf, sortCosts } from './cost.ts';
import { counterId, type OwnerRef, ownerOf, type Pairs, rulePrefix, type Winner } from './counter.ts';
import { compileGlob } from './glob.ts';
import { type Facts, type Pair, RequestView } from './request-view.ts';
import { type RouteTable, routeTable } from './route-pattern.ts';
import type { CostRule, Estimate, Rule, RuleNode, Ruleset } from './ruleset.ts';
import { breakTie, compareStatic, type Placed, place } from './specificity.ts';

export type { Facts } from './request-view.ts';

export interface Match {
  /** One winner at most of each policy, in the order in which the file first names the policies. Without `unlimited` ones. */
  readonly enforced: readonly Winner[];
  readonly shadow: readonly Winner[];
  readonly cost: number;
  /** Where the cost is an estimate: how to learn better. */
  readonly estimate: Estimate | undefined;
  /** The most specific pattern of the file that the path matches. */
  readonly route: string | undefined;
  /** No rule at all matched: neither enforced, nor shadow, nor unlimited. */
  readonly unmatched: boolean;
  /** An operator's word about this caller, which comes before the rules. */
  readonly clamped?: Clamped;
}

/** The clamps of the ruleset's domain at an instant. */
export interface ClampsNow {
  readonly table: ClampTable;
  readonly nowMs: number;
}

/** All the rules of one policy that match a request, and which of them wins. */
export interface Contest {
  readonly winner: Placed;
  readonly beaten: readonly Placed[];
  /** Absent for an `unlimited` winner. */
  readonly counted: Winner | undefined;
}

export interface MatcherOptions {
  /** Spreads invented values over the shared owners: the same in every isolate. */
  readonly seed: number;
}

type Check = (view: RequestView) => boolean;

/** A rule made ready: its checks from the root to the leaf, and the part of its counters' identity that never changes. */
interface Ready extends Placed {
  readonly checks: readonly Check[];
  readonly prefix: string;
}

/** Rules of equal static specificity. `byValue` finds those that name a value: attribute, then value. */
interface Step {
  readonly byValue: ReadonlyMap<string, ReadonlyMap<string, readonly Ready[]>>;
  readonly others: readonly Ready[];
}

/** The rules of one policy that compete with each other. */
interface Competition {
  readonly shadow: boolean;
  readonly steps: readonly Step[];
}

export class Matcher {
  readonly ruleset: Ruleset;
  readonly #seed: number;
  readonly #routes: RouteTable;
  readonly #competitions: readonly Competition[];
  readonly #costs: readonly CostRule[];

  constructor(ruleset: Ruleset, options: MatcherOptions) {
    this.ruleset = ruleset;
    this.#seed = options.seed;
    this.#routes = routeTable(ruleset.routes);
    this.#competitions = competitionsOf(ruleset);
    this.#costs = sortCosts(ruleset.costs);
  }

  match(facts: Facts, clamps?: ClampsNow): Match {
    const view = new RequestView(this.ruleset, this.#routes, facts);
    const enforced: Winner[] = [];
    const shadow: Winner[] = [];
    let unmatched = true;
    for (const competition of this.#competitions) {
      const ready = winnerOf(competition, view);
      if (ready === undefined) continue;
      unmatched = false;
      if (!ready.rule.unlimited) (competition.shadow ? shadow : enforced).push(this.#count(ready, view));
    }
    const { cost, estimate } = costOf(this.#costs, view.routes, view.method);
    const match = { enforced, shadow, cost, estimate, route: view.routes[0], unmatched };
    if (clamps === undefined || clamps.table.isEmpty) return match;
    const clamped = clamps.table.find(view, { seed: this.#seed, nowMs: clamps.nowMs });
    return clamped === undefined ? match : underClamp(match, clamped);
  }

  /** The pairs that name the caller whom these attributes of the request name; `undefined` when it lacks one of them. */
  pairsOf(facts: Facts, attributes: readonly string[]): Pairs | undefined {
    const view = new RequestView(this.ruleset, this.#routes, facts);
    const pairs = attributes.toSorted().map((attribute): Pair | undefined => {
      const value = view.counted(attribute);
      return value === undefined ? undefined : [attribute, value];
    });
    return pairs.every((pair) => pair !== undefined) ? pairs : undefined;
  }

  /** Who owns the counters that these pairs name. */
  ownerOf(pairs: Pairs): OwnerRef {
    return ownerOf(this.ruleset.domain, pairs, this.#seed);
  }

  /** What `match` decides, with everything that it weighed: for explaining, not for the way of a request. */
  contests(facts: Facts): readonly Contest[] {
    const view = new RequestView(this.ruleset, this.#routes, facts);
    return this.#competitions.flatMap((competition) => {
      const winner = winnerOf(competition, view);
      if (winner === undefined) return [];
      const matching = competition.steps.flatMap((step) => matchesIn(step, view));
      const beaten = matching.filter((ready) => ready !== winner);
      return [{ winner, beaten, counted: winner.rule.unlimited ? undefined : this.#count(winner, view) }];
    });
  }

  #count(ready: Ready, view: RequestView): Winner {
    const pairs = countedPairs(ready.rule, view);
    return {
      rule: ready.rule,
      counterId: counterId(ready.prefix, pairs),
      owner: ownerOf(this.ruleset.domain, pairs, this.#seed),
      pairs,
    };
  }
}

/** `deny` is decided without counters, and `unlimited` counts nothing. */
function underClamp(match: Match, clamped: Clamped): Match {
  if (clamped.clamp.action === 'limit')
    return { ...match, clamped, enforced: [...match.enforced, ...clamped.winners] };
  return { ...match, clamped, enforced: [], shadow: [], estimate: undefined };
}

/**
 * The pairs that a rule's counter is named by, sorted by attribute. An attribute that the request lacks falls to the subject; an
 * attribute that is then there twice is counted once.
 */
export function countedPairs(rule: Rule, view: RequestView): Pairs {
  const pairs: Pair[] = [];
  for (const attribute of rule.per) {
    const pair = countedPair(rule, attribute, view);
    if (!pairs.some(([known]) => known === pair[0])) pairs.push(pair);
  }
  return pairs.length < 2 ? pairs : pairs.sort(([a], [b]) => (a < b ? -1 : 1));
}

function countedPair(rule: Rule, attribute: string, view: RequestView): Pair {
  const value = attribute === 'route' ? countedRoute(rule, view) : view.counted(attribute);
  return attribute === 'subject' || value === undefined ? view.subject() : [attribute, value];
}

/** The rule's own pattern (the one nearest to its leaf), else the most specific one of the file. */
function countedRoute(rule: Rule, view: RequestView): string | undefined {
  const own = rule.path.findLast((node) => node.key === 'route' && node.match !== 'any');
  return own !== undefined && own.match !== 'any' ? own.value : view.routes[0];
}

function winnerOf(competition: Competition, view: RequestView): Ready | undefined {
  for (const step of competition.steps) {
    const found = matchesIn(step, view);
    if (found.length > 0) return found.length === 1 ? found[0] : breakTie(found);
  }
  return undefined;
}

function matchesIn(step: Step, view: RequestView): readonly Ready[] {
  const found = step.others.filter((ready) => matches(ready, view));
  for (const [key, byValue] of step.byValue) {
    const value = view.compared(key);
    if (value === undefined) continue;
    for (const ready of byValue.get(value) ?? []) if (matches(ready, view)) found.push(ready);
  }
  return found;
}

function matches(ready: Ready, view: RequestView): boolean {
  for (const check of ready.checks) if (!check(view)) return false;
  return true;
}

function competitionsOf(ruleset: Ruleset): readonly Competition[] {
  const groups = new Map<string, Ready[]>();
  for (const [index, rule] of ruleset.rules.entries()) {
    const ready = {
      ...place(rule, index),
      checks: rule.path.map(checkOf),
      prefix: rulePrefix(ruleset.domain, rule),
    };
    const name = `${rule.shadow ? 'shadow' : 'enforced'} ${rule.policy}`;
    const group = groups.get(name);
    if (group === undefined) groups.set(name, [ready]);
    else group.push(ready);
  }
  return [...groups.values()].map((rules) => ({
    shadow: rules[0]?.rule.shadow ?? false,
    steps: stepsOf(rules),
  }));
}

function stepsOf(rules: readonly Ready[]): readonly Step[] {
  const runs: Ready[][] = [];
  for (const ready of rules.toSorted((a, b) => compareStatic(a.rule, b.rule))) {
    const run = runs.at(-1);
    const isEqual = run?.[0] !== undefined && compareStatic(run[0].rule, ready.rule) === 0;
    if (isEqual) run.push(ready);
    else runs.push([ready]);
  }
  return runs.map(stepOf);
}

function stepOf(rules: readonly Ready[]): Step {
  const byValue = new Map<string, Map<string, Ready[]>>();
  const others: Ready[] = [];
  for (const ready of rules) {
    const node = indexedNode(ready.rule);
    if (node === undefined) {
      others.push(ready);
      continue;
    }
    const values = byValue.get(node.key) ?? new Map<string, Ready[]>();
    byValue.set(node.key, values);
    const sameValue = values.get(node.value) ?? [];
    values.set(node.value, sameValue);
    sameValue.push(ready);
  }
  return { byValue, others };
}

/**
 * The exact value to find a rule by: a caller's where there is one, since those are many; else the one nearest to the leaf. An
 * exact route that matches is always the most specific one, so routes can be found like other values.
 */
function indexedNode(rule: Rule): { readonly key: string; readonly value: string } | undefined {
  const exact = rule.path.flatMap((node) => (node.match === 'exact' ? [node] : []));
  return exact.find((node) => CALLER_ATTRIBUTES.has(node.key)) ?? exact.at(-1);
}

function checkOf(node: RuleNode): Check {
  const { key } = node;
  if (node.match === 'any')
    return key === 'subject' ? () => true : (view) => view.compared(key) !== undefined;
  const { value } = node;
  if (key === 'route') return (view) => view.routes.includes(value);
  switch (node.match) {
    case 'exact':
      return (view) => view.compared(key) === value;
    case 'cidr':
      return networkCheck(value);
    default:
      return globCheck(key, value);
  }
}

function globCheck(key: string, pattern: string): Check {
  const glob = compileGlob(pattern);
  return (view) => {
    const value = view.compared(key);
    return value !== undefined && glob(value);
  };
}

function networkCheck(text: string): Check {
  const network = parseNetwork(text);
  if (network === undefined)
    throw new Error(`The ruleset holds the network ${JSON.stringify(text)}, which is none.`);
  return ({ address }) => address !== undefined && isInNetwork(address, network);
}
