/**
 * The worst cases of a limit that regions share: what they admit above it at a cold start, cut off from one another, and when memory is lost.
 *
 * While all is well nothing is above the limit but the credit: a region that starts does not wait for the root, so each that starts admits its
 * credit, whatever others have used. All of it is owed, and paid back out of the rate.
 */
import { capacity, type Limit } from '../core/decision.ts';
import type { Rule } from '../policy/ruleset.ts';
import type { Envelope } from './bound.ts';
import { FALLBACK_MARGIN } from './fallback.ts';
import { LEASE_MS } from './middle-terms.ts';

/**
 * For how long a credit refills: until the root has answered a few times, while it has nothing to lend; and what isolates were lent of it goes
 * on for a second after that.
 */
const CREDIT_SECONDS = 3;

export interface RegionBound {
  readonly regions: number;
  /** Above the limit, when all regions start at once. */
  readonly coldStartUnits: number;
  /** All sides together, however long regions are cut off from the root. */
  readonly partition: Envelope & { readonly rateFactor: number };
  /** The root loses its memory, and is full again; what it had lent goes on beside that, as long as it is not told. */
  readonly rootCrashUnits: number;
  /** A region's owner loses its memory: it charges again what it has not written or, where nothing was written, begins on a new credit. */
  readonly regionCrashUnits: number;
}

export interface RegionTopology {
  readonly regions: number;
  readonly largestCost: number;
  /** What an owner that loses its memory forgets. */
  readonly crashUnits: number;
}

/** `undefined` for a rule whose regions do not share a limit. */
export function regionBoundOf(
  { regional }: Rule,
  limit: Limit,
  { regions, largestCost, crashUnits }: RegionTopology,
): RegionBound | undefined {
  if (regional === undefined || regional.weights !== undefined) return undefined;
  const burst = capacity(limit);
  const unitsPerSecond = (limit.quota * 1_000) / limit.windowMs;
  const { startCredit } = regional;
  const room = Math.min(burst, Math.max(startCredit * burst, largestCost));
  const creditUnits = room + startCredit * unitsPerSecond * CREDIT_SECONDS;
  const coldStartUnits = regions * creditUnits;
  // The regions that are cut off were told shares that add up to one at most, or nothing yet; who is not cut off has the limit.
  const rateFactor = 1 + FALLBACK_MARGIN + (regions - 1) * startCredit;
  return {
    regions,
    coldStartUnits,
    partition: {
      burstUnits: 2 * burst + (regions - 1) * Math.min(burst, largestCost) + coldStartUnits,
      unitsPerSecond: rateFactor * unitsPerSecond,
      rateFactor,
    },
    rootCrashUnits: burst + (unitsPerSecond * LEASE_MS) / 1_000,
    regionCrashUnits: Math.max(crashUnits, creditUnits),
  };
}
