/**
 * What a request costs: the most specific entry of `costs` that matches it, and 1 where none does.
 *
 * An entry about a route beats one that names none, by the order of routes; then one about a method beats one about all; then the
 * first in the file.
 */
import { compareRoutes, mustParse } from './route-pattern.ts';
import type { CostRule } from './ruleset.ts';

const DEFAULT: Units = { cost: 1 };

type Units = Pick<CostRule, 'cost' | 'estimate'>;

/** Entries in the order in which they are to be tried. */
export function sortCosts(costs: readonly CostRule[]): readonly CostRule[] {
  return costs.toSorted(
    (a, b) =>
      compareRoute(a.route, b.route) || Number(b.method !== undefined) - Number(a.method !== undefined),
  );
}

/** `routes`: all the patterns that the request's path matches. `method` in its one spelling. */
export function costOf(
  sorted: readonly CostRule[],
  routes: readonly string[],
  method: string | undefined,
): Units {
  for (const rule of sorted) {
    if (rule.route !== undefined && !routes.includes(rule.route)) continue;
    if (rule.method === undefined || rule.method === method) return rule;
  }
  return DEFAULT;
}

function compareRoute(a: string | undefined, b: string | undefined): number {
  if (a !== undefined && b !== undefined) return compareRoutes(mustParse(a), mustParse(b));
  return Number(b !== undefined) - Number(a !== undefined);
}
