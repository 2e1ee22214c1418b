/** Whether what a middle owner has in hand may not last until the root has answered. */
import { type Advance, advanceAt } from './advance.ts';
import type { MiddleDemand } from './middle-demand.ts';
import type { MiddleLease } from './middle-lease.ts';
import type { Mode } from './stored-upstream.ts';

/** So many units say enough of how fast they come. */
const TELLING_UNITS = 16;

export interface InHand {
  readonly mode: Mode;
  readonly lease: MiddleLease;
  readonly advance: Advance;
  /** Units, those of the advance among them. */
  readonly level: number;
}

/** `aheadMs` is the time that it has to last. Whoever is cut off has what it has. */
export function isRunningLow(
  { mode, lease, advance, level }: InHand,
  demand: MiddleDemand,
  { aheadMs, nowMs }: { aheadMs: number; nowMs: number },
): boolean {
  if (mode === 'credit') return isCreditGoing(advance, demand, level);
  const spare = level - advanceAt(advance, nowMs).units;
  return mode === 'leased' && isLeaseGoing(lease, demand, { spare, aheadMs, nowMs });
}

/** On credit: half of it is gone, or it is known how fast it goes. */
function isCreditGoing(advance: Advance, demand: MiddleDemand, level: number): boolean {
  const { sinceReport } = demand;
  return sinceReport >= TELLING_UNITS || (sinceReport > 0 && level < advance.capacity / 2);
}

/** With a lease: `spare` units of it are left. Of what is scarce there is no more. */
function isLeaseGoing(
  lease: MiddleLease,
  demand: MiddleDemand,
  { spare, aheadMs, nowMs }: { spare: number; aheadMs: number; nowMs: number },
): boolean {
  return !lease.isScarce && spare < (demand.unitsPerMs(nowMs) - lease.unitsPerMs) * aheadMs;
}
