/**
 * What a request costs: the most specific entry of `costs` that matches it, and 1 where none does.
 *
 * An entry about a route beats one that names none, by the order of routes; then one about a method beats one about all; then the
 * first in the file.
 */
import { compareRoutes, mustParse } from './route-pattern.ts';
import type { CostRule } from './ruleset.ts';

export const DEFAULT_COST = 1;

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
): number {
  for (const { route, method: wanted, cost } of sorted) {
    if (route !== undefined && !routes.includes(route)) continue;
    if (wanted === undefined || wanted === method) return cost;
  }
  return DEFAULT_COST;
}

function compareRoute(a: string | undefined, b: string | undefined): number {
  if (a !== undefined && b !== undefined) return compareRoutes(mustParse(a), mustParse(b));
  return Number(b !== undefined) - Number(a !== undefined);
}
