/**
 * What a rule file says of regions: which it is served in, and for a `scope: regional` rule what a region starts with or how the limit
 * is split. Every mistake is told at its place.
 */
import type { Limit } from '../core/decision.ts';
import { shareOf } from './place.ts';
import { type Path, type Report, show, suggestion } from './problem.ts';
import { isRegion, REGIONS, type Region } from './region.ts';
import type { Regional } from './ruleset.ts';
import { elements, type RateLimitNode, read } from './schema.ts';

/** A region that starts spends at most this much of the limit before it has heard from the whole. */
export const DEFAULT_START_CREDIT = 0.25;

/** Thirds and tenths do not add up to exactly 1. */
const SUM_ROUNDING = 1e-9;

const REGIONAL_FIELDS = ['start_credit', 'region_weights'] as const;

/** The regions that the file names; `undefined` where it names none, which is all of them. */
export function compileRegions(
  raw: readonly unknown[] | undefined,
  error: Report,
): readonly Region[] | undefined {
  if (raw === undefined) return undefined;
  const at: Path = ['regions'];
  if (raw.length === 0) error(at, 'is an empty list: leave it out to be served in all regions');
  const regions = new Set<Region>();
  for (const [index, item] of raw.entries()) {
    const region = read(elements.region, item, [...at, index], error);
    if (region === undefined) continue;
    if (regions.has(region)) error([...at, index], 'stands in this list already');
    regions.add(region);
  }
  return [...regions];
}

/** `limit` is what the node says, or `undefined` where that is wrong. `served` are the regions of the file. Paths are within the node. */
export function regionalOf(
  node: RateLimitNode,
  { limit, served }: { limit: Limit | undefined; served: readonly Region[] },
  report: Report,
): Regional | undefined {
  const isRegional = node.scope === 'regional';
  for (const field of REGIONAL_FIELDS) {
    if (node[field] === undefined) continue;
    if (!isRegional) report([field], 'belongs to "scope: regional"');
    else if (node.unlimited === true) report([field], 'has no meaning beside "unlimited: true"');
  }
  if (!isRegional) return undefined;
  if (node.start_credit !== undefined && node.region_weights !== undefined)
    report(['start_credit'], 'has no meaning beside "region_weights", which split the limit for good');
  const weights = node.region_weights && weightsOf(node.region_weights, { limit, served }, report);
  return { startCredit: node.start_credit ?? DEFAULT_START_CREDIT, ...(weights && { weights }) };
}

function weightsOf(
  raw: Readonly<Record<string, unknown>>,
  { limit, served }: { limit: Limit | undefined; served: readonly Region[] },
  report: Report,
): Regional['weights'] {
  const weights: Partial<Record<Region, number>> = {};
  let sum = 0;
  if (Object.keys(raw).length === 0) report(['region_weights'], 'is empty: name a region and its share');
  for (const [name, value] of Object.entries(raw)) {
    const at = ['region_weights', name];
    const weight = read(elements.share, value, at, report);
    if (!isRegion(name))
      report(at, `is no region${suggestion(name, REGIONS)}: there are ${REGIONS.join(', ')}`);
    else if (!served.includes(name)) report(at, 'is not among the "regions" of the file');
    else if (weight !== undefined) {
      if (limit !== undefined) checkPart(limit, weight, (message) => report(at, message));
      weights[name] = weight;
    }
    sum += weight ?? 0;
  }
  if (sum > 1 + SUM_ROUNDING)
    report(['region_weights'], `add up to ${show(Number(sum.toPrecision(6)))}, which is more than 1`);
  return weights;
}

/** A region whose part is less than one request would refuse every one. */
function checkPart(limit: Limit, weight: number, report: (message: string) => void): void {
  const { quota, burst } = shareOf(limit, weight);
  if (quota < 1) report(`leaves this region less than one of ${limit.quota}: give it more, or leave it out`);
  else if (burst < 1) report(`leaves this region a burst of less than one: raise "burst" or the share`);
}
