/** Whether what a middle owner has in hand may not last until the root has answered. */
import type { Advance } from './advance.ts';
import type { MiddleDemand } from './middle-demand.ts';
import type { MiddleLease } from './middle-lease.ts';

/** So many units say enough of how fast they come. */
const TELLING_UNITS = 16;

/** On credit: half of it is gone, or it is known how fast it goes. */
export function isCreditGoing(advance: Advance, demand: MiddleDemand, level: number): boolean {
  const { sinceReport } = demand;
  return sinceReport >= TELLING_UNITS || (sinceReport > 0 && level < advance.capacity / 2);
}

/** With a lease: `spare` units of it are left, and `aheadMs` is the time that they have to last. Of what is scarce there is no more. */
export function isLeaseGoing(
  lease: MiddleLease,
  demand: MiddleDemand,
  { spare, aheadMs, nowMs }: { spare: number; aheadMs: number; nowMs: number },
): boolean {
  return !lease.isScarce && spare < (demand.unitsPerMs(nowMs) - lease.unitsPerMs) * aheadMs;
}
