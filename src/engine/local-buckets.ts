/**
 * Token buckets in the isolate's own packed table, taken from together: all of them, or none.
 *
 * The local rules and the fallback both decide here; neither makes a network call.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import type { Limit, Step } from '../core/decision.ts';
import { tokenBucket } from '../core/token-bucket.ts';
import type { PolicyReport } from './verdict.ts';

export interface LocalBucket {
  readonly key: string;
  /** A token bucket; its numbers may be fractions of a rule's. */
  readonly limit: Limit;
}

/** What came of a bucket, for whoever reports it. */
export type BucketReport = Pick<PolicyReport, 'outcome' | 'waitMs' | 'level'>;

/** One report for each bucket, in their order. Nothing is charged unless all of them admit. */
export function takeAll(
  table: BucketTable,
  buckets: readonly LocalBucket[],
  cost: number,
  nowMs: number,
): readonly BucketReport[] {
  const reports: BucketReport[] = [];
  let isAdmitted = true;
  for (const { key, limit } of buckets) {
    const report = reportOf(table.step(key, limit, cost, nowMs), limit, nowMs);
    if (report.outcome !== 'allowed') isAdmitted = false;
    reports.push(report);
  }
  return isAdmitted ? reports : reports.map((report, at) => undone(table, buckets[at]!, report, cost, nowMs));
}

/** Another bucket denied, so this one gets back what was taken from it, and is reported as it then is. */
function undone(
  table: BucketTable,
  bucket: LocalBucket,
  report: BucketReport,
  cost: number,
  nowMs: number,
): BucketReport {
  if (report.outcome !== 'allowed') return report;
  giveBackAll(table, [bucket], cost, nowMs);
  return reportOf(table.step(bucket.key, bucket.limit, 0, nowMs), bucket.limit, nowMs);
}

export function giveBackAll(
  table: BucketTable,
  buckets: readonly LocalBucket[],
  cost: number,
  nowMs: number,
): void {
  for (const { key, limit } of buckets) table.giveBack(key, limit, { cost, chargedAtMs: nowMs }, nowMs);
}

function reportOf({ decision, state }: Step<number>, limit: Limit, nowMs: number): BucketReport {
  const { outcome } = decision;
  const remaining = Math.max(0, Math.floor(tokenBucket.available(limit, state, nowMs)));
  const waitMs = decision.outcome === 'denied' ? decision.retryAfterMs : 0;
  const refillMs = limit.quota === 0 ? 0 : ((limit.burst - remaining) * limit.windowMs) / limit.quota;
  return { outcome, waitMs, level: { remaining, resetMs: waitMs > 0 ? waitMs : refillMs } };
}
