/**
 * What a middle owner has beside a lease of its root, as a bucket: so many units at an instant, refilling up to a capacity.
 *
 * It is the credit that a region starts with, or the share of a region that is cut off. What is missing in it is owed.
 */
import type { Limit } from '../core/decision.ts';

export interface Advance {
  readonly units: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly atMs: number;
}

export const NO_ADVANCE: Advance = { units: 0, unitsPerMs: 0, capacity: 0, atMs: 0 };

export interface AdvanceOptions {
  /** Of the limit, 0 to 1. */
  readonly share: number;
  /** How many times the share it refills. */
  readonly margin?: number;
  /** There is room for a request at least. */
  readonly largestCost: number;
  /** What it begins with, as far as there is room. */
  readonly units: number;
}

export function newAdvance(limit: Limit, options: AdvanceOptions, nowMs: number): Advance {
  const { share, margin = 1, largestCost, units } = options;
  const { quota, windowMs, burst } = limit;
  const capacity = share === 0 ? 0 : Math.min(burst, Math.max(share * burst, largestCost));
  return {
    units: Math.min(units, capacity),
    unitsPerMs: (margin * share * quota) / windowMs,
    capacity,
    atMs: nowMs,
  };
}

/** Brought forward to now. One that stands below 0 is owed more than it ever held, and refills as well. */
export function advanceAt(advance: Advance, nowMs: number): Advance {
  const { units, unitsPerMs, capacity, atMs } = advance;
  if (unitsPerMs === 0) return advance;
  const refilled = Math.max(units, Math.min(capacity, units + (nowMs - atMs) * unitsPerMs));
  return { ...advance, units: refilled, atMs: nowMs };
}

/** So many units less, or more, from now on. */
export function moved(advance: Advance, units: number, nowMs: number): Advance {
  const now = advanceAt(advance, nowMs);
  return { ...now, units: now.units + units };
}

/** It refills no more, and keeps what is in it. */
export function stopped(advance: Advance, nowMs: number): Advance {
  return { ...NO_ADVANCE, units: advanceAt(advance, nowMs).units, atMs: nowMs };
}
