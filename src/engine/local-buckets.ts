/**
 * Token buckets in the isolate's own packed table, taken from together: all of them, or none.
 *
 * The local rules and the fallback both decide here; neither makes a network call.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import type { Decision, Limit } from '../core/decision.ts';
import type { PolicyReport } from './verdict.ts';

export interface LocalBucket {
  readonly key: string;
  /** A token bucket; its numbers may be fractions of a rule's. */
  readonly limit: Limit;
}

export interface Taken {
  readonly isAdmitted: boolean;
  /** In the order of the buckets. */
  readonly decisions: readonly Decision[];
}

export function takeAll(
  table: BucketTable,
  buckets: readonly LocalBucket[],
  cost: number,
  nowMs: number,
): Taken {
  const decisions = buckets.map(({ key, limit }) => table.decide(key, limit, cost, nowMs));
  const isAdmitted = decisions.every(({ outcome }) => outcome === 'allowed');
  if (!isAdmitted) {
    const taken = buckets.filter((_, at) => decisions[at]?.outcome === 'allowed');
    giveBackAll(table, taken, cost, nowMs);
  }
  return { isAdmitted, decisions };
}

export function giveBackAll(
  table: BucketTable,
  buckets: readonly LocalBucket[],
  cost: number,
  nowMs: number,
): void {
  for (const { key, limit } of buckets) table.giveBack(key, limit, { cost, chargedAtMs: nowMs }, nowMs);
}

/** What came of a bucket, for whoever reports it. */
export function bucketReport(
  table: BucketTable,
  { key, limit }: LocalBucket,
  decision: Decision,
  nowMs: number,
): Pick<PolicyReport, 'outcome' | 'waitMs' | 'level'> {
  const remaining = Math.max(0, Math.floor(table.available(key, limit, nowMs)));
  const waitMs = decision.outcome === 'denied' ? decision.retryAfterMs : 0;
  const refillMs = limit.quota === 0 ? 0 : ((limit.burst - remaining) * limit.windowMs) / limit.quota;
  return { outcome: decision.outcome, waitMs, level: { remaining, resetMs: waitMs > 0 ? waitMs : refillMs } };
}
