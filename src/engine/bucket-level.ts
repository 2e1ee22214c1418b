/**
 * A token bucket's level, read and set as a number of units: for whoever moves units between buckets, and changes their size.
 *
 * A bucket's state is the instant at which it would be full. A level below 0 is a debt.
 */
import type { CounterState } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Limit } from '../core/decision.ts';

interface Bucket {
  limit: Limit;
  state: CounterState | undefined;
}

export function levelOf({ limit, state }: Bucket, { logicalMs }: LogicalClock): number {
  return limit.burst - Math.max(0, fullAtMsOf(state) - logicalMs) / unitMsOf(limit);
}

/** Puts the bucket under a limit of other numbers, at this level; what does not fit is gone. */
export function refit(bucket: Bucket, limit: Limit, level: number, { logicalMs }: LogicalClock): void {
  bucket.limit = limit;
  const missing = Math.max(0, limit.burst - level);
  bucket.state = missing === 0 ? undefined : (logicalMs + missing * unitMsOf(limit)) * 1_000;
}

/** The time in which one unit comes back. */
export function unitMsOf({ windowMs, quota }: Limit): number {
  return windowMs / quota;
}

export function fullAtMsOf(state: CounterState | undefined): number {
  return typeof state === 'number' ? state / 1_000 : Number.NEGATIVE_INFINITY;
}
