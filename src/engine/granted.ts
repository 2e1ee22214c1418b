/**
 * What a holder may be going by: a reply with a newer grant may never reach it, so until it says so, every grant that it may have.
 */

import type { LeaseReport } from './lease.ts';

/** An isolate has one question in flight that may bring a grant, or a few (`engine/owners`); what is beyond is taken together. */
const GRANTS_MAX = 8;

/** A part of the counter that is lent until it ends, on the owner's logical clock. */
export interface Part {
  readonly key: string;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
}

export interface Granted {
  readonly number: number;
  readonly units: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly grantedAtMs: number;
  /** The holder goes by it no longer than this. */
  readonly endsAtMs: number;
}

/** From the one that the holder has last said it goes by to the newest, in order. */
export type Grants = readonly [Granted, ...Granted[]];

/** What the holder goes by of this grant from now on, as it says: for so long at most, unless it is granted another, and at most at that rate. */
export function keptOf(
  { patienceMs, unitsPerMs = Number.POSITIVE_INFINITY }: Pick<LeaseReport, 'patienceMs' | 'unitsPerMs'>,
  grant: Granted,
  nowMs: number,
): Granted {
  return {
    ...grant,
    unitsPerMs: Math.min(grant.unitsPerMs, unitsPerMs),
    endsAtMs: Math.min(grant.endsAtMs, nowMs + patienceMs),
  };
}

/** How much more than the newest grant lends the holder may be going by; `undefined` when it is nothing. */
export function surplusOf(grants: Grants, part: Part, nowMs: number): Part | undefined {
  const surplus = { key: part.key, unitsPerMs: 0, capacity: 0, endsAtMs: nowMs };
  for (const { unitsPerMs, capacity, endsAtMs } of grants) {
    const [moreUnitsPerMs, moreCapacity] = [unitsPerMs - part.unitsPerMs, capacity - part.capacity];
    if (endsAtMs <= nowMs || (moreUnitsPerMs <= 0 && moreCapacity <= 0)) continue;
    surplus.unitsPerMs = Math.max(surplus.unitsPerMs, moreUnitsPerMs);
    surplus.capacity = Math.max(surplus.capacity, moreCapacity);
    surplus.endsAtMs = Math.max(surplus.endsAtMs, endsAtMs);
  }
  return surplus.endsAtMs > nowMs ? surplus : undefined;
}

/** The oldest two as one, if there are too many: as much as either, for as long. */
export function bounded(grants: Grants): Grants {
  const [oldest, next] = grants;
  if (grants.length < GRANTS_MAX || next === undefined) return grants;
  const both = {
    number: next.number,
    units: oldest.units + next.units,
    unitsPerMs: Math.max(oldest.unitsPerMs, next.unitsPerMs),
    capacity: Math.max(oldest.capacity, next.capacity),
    grantedAtMs: oldest.grantedAtMs,
    endsAtMs: Math.max(oldest.endsAtMs, next.endsAtMs),
  };
  return [both, ...grants.slice(2)];
}
