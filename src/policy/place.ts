/**
 * Where a counter of a `scope: regional` rule is kept: in its region's owner, which borrows from the owner of the whole (`region/`), or,
 * where the file splits the limit for good, in an owner of the region's part alone (`part/`).
 *
 * The place stands in front of the owner's name and of the counter's id. Owners' names begin with `own/` or `shared/` and ids with a
 * digit, so nothing in a value that is counted can pass for a place.
 */
import type { Limit } from '../core/decision.ts';
import type { OwnerRef, Winner } from './counter.ts';
import type { Match } from './match.ts';
import { isRegion, nearestOf, REGIONS, type Region } from './region.ts';
import type { Rule, Ruleset } from './ruleset.ts';

/** A name or an id in a region, and what it is without the place: the owner, or the counter, of the whole. */
export interface Place {
  readonly region: Region;
  readonly rest: string;
}

/** A share of a whole number that should be one may come out a little below it: 0.29 x 100 is 28.999999999999996. */
const ROUNDING = 1e-6;

/** The region's owner of what this winner is counted on, and the counter there. */
export function inRegion(winner: Winner, region: Region): Winner {
  return prefixed(winner, `region/${region}/`, { region, rule: winner.rule });
}

/** The region that a name or an id says it borrows in; `undefined` for the whole, for a part, and for anything else. */
export function placeOf(name: string): Place | undefined {
  const found = /^region\/([a-z]+)\/(.+)$/s.exec(name);
  return found !== null && isRegion(found[1]) ? { region: found[1], rest: found[2]! } : undefined;
}

/** A name or an id as it is without a place in front of it. */
export function withoutPlace(name: string): string {
  const found = PLACED.exec(name);
  return found === null ? name : name.slice(found[0].length);
}

/** The location hint of an owner of this name; `undefined` where it is made wherever it is first called from. */
export function hintOf(name: string): Region | undefined {
  return PLACED.exec(name)?.[1] as Region | undefined;
}

const PLACED = new RegExp(`^(?:region|part)/(${REGIONS.join('|')})/`);

/** A match as it is counted in a region: each winner of a `scope: regional` rule is moved there. */
export function matchIn(match: Match, region: Region): Match {
  const { enforced, shadow } = match;
  const isRegional = ({ rule }: Winner) => rule.regional !== undefined;
  if (!enforced.some(isRegional) && !shadow.some(isRegional)) return match;
  const place = (winner: Winner) => placedIn(winner, region);
  return { ...match, enforced: enforced.map(place), shadow: shadow.map(place) };
}

/** A winner as it is counted in a region; one of another scope as it is. */
export function placedIn(winner: Winner, region: Region): Winner {
  const { regional } = winner.rule;
  if (regional === undefined) return winner;
  if (regional.weights === undefined) return inRegion(winner, region);
  const part = partOf(winner.rule, region);
  return prefixed(winner, `part/${part.region}/`, part);
}

/** Everywhere that what this winner counts is kept: the whole and every region, or every part. */
export function placesOf(winner: Winner, regions: readonly Region[]): readonly Winner[] {
  const { regional } = winner.rule;
  if (regional === undefined) return [winner];
  if (regional.weights === undefined) return [winner, ...regions.map((region) => inRegion(winner, region))];
  return weighted(winner.rule).map((region) => placedIn(winner, region));
}

/** The owners of a caller beside that of the whole, where some rule is regional: all that has to be told of a clamp. */
export function regionalOwners(ruleset: Ruleset, { name }: OwnerRef): readonly string[] {
  const prefixes = ruleset.rules.flatMap((rule) => {
    if (rule.regional === undefined) return [];
    if (rule.regional.weights !== undefined) return weighted(rule).map((region) => `part/${region}/`);
    return regionsOf(ruleset).map((region) => `region/${region}/`);
  });
  return [...new Set(prefixes)].map((prefix) => prefix + name);
}

/** The region that a request from this one is counted in. */
export function servedRegion(ruleset: Pick<Ruleset, 'regions'>, region: Region): Region {
  return nearestOf(region, regionsOf(ruleset));
}

/** The regions that a ruleset is served in. */
export function regionsOf({ regions }: Pick<Ruleset, 'regions'>): readonly Region[] {
  return regions ?? REGIONS;
}

/** The numbers of a part of a limit; each of them 0 where the part is too small for one unit. */
export function shareOf(limit: Limit, weight: number): Limit {
  const share = (units: number) => Math.floor(units * weight + ROUNDING);
  return { ...limit, quota: share(limit.quota), burst: share(limit.burst) };
}

interface Part {
  readonly region: Region;
  readonly rule: Rule;
}

/** Made once, so that what is counted of a part has one rule to be counted by. */
const parts = new WeakMap<Rule, Map<Region, Part>>();

/** The part of a limit that requests of this region draw on: its own, else that of the nearest region that has one. */
function partOf(rule: Rule, region: Region): Part {
  const known = parts.get(rule) ?? new Map<Region, Part>();
  parts.set(rule, known);
  const part = known.get(region);
  if (part !== undefined) return part;
  const served = nearestOf(region, weighted(rule));
  const made = served === region ? newPart(rule, region) : partOf(rule, served);
  known.set(region, made);
  return made;
}

function newPart(rule: Rule, region: Region): Part {
  const limit = rule.limit && shareOf(rule.limit, rule.regional?.weights?.[region] ?? 0);
  return { region, rule: { ...rule, ...(limit && { limit }) } };
}

function weighted({ regional }: Rule): readonly Region[] {
  return Object.keys(regional?.weights ?? {}).filter(isRegion);
}

function prefixed({ counterId, owner, pairs }: Winner, prefix: string, { region, rule }: Part): Winner {
  return {
    rule,
    counterId: prefix + counterId,
    owner: { name: prefix + owner.name, shared: owner.shared, hint: region },
    pairs,
  };
}
