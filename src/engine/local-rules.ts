/**
 * Rules with `scope: local`: the flood tier, decided in the isolate, with no I/O.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import type { Winner } from '../policy/counter.ts';
import { giveBackAll, type LocalBucket, takeAll } from './local-buckets.ts';
import type { PolicyReport } from './verdict.ts';

export class LocalRules {
  readonly #table: BucketTable;

  constructor(table: BucketTable) {
    this.#table = table;
  }

  /** Charges every rule or none, and reports each. */
  take(winners: readonly Winner[], cost: number, nowMs: number): readonly PolicyReport[] {
    if (winners.length === 0) return [];
    const buckets = winners.map(bucketOf);
    return takeAll(this.#table, buckets, cost, nowMs).map((report, at) => ({
      policy: winners[at]!.rule.policy,
      limit: buckets[at]!.limit,
      source: 'local',
      outcome: report.outcome,
      waitMs: report.waitMs,
      level: report.level,
    }));
  }

  /** Shadow rules: charged where they would have admitted. Answers those that would have denied. */
  takeShadow(winners: readonly Winner[], cost: number, nowMs: number): readonly Winner[] {
    return winners.filter((winner) => {
      const [report] = takeAll(this.#table, [bucketOf(winner)], cost, nowMs);
      return report?.outcome !== 'allowed';
    });
  }

  /** The request was denied elsewhere, so it costs nothing here. */
  giveBack(winners: readonly Winner[], cost: number, nowMs: number): void {
    giveBackAll(this.#table, winners.map(bucketOf), cost, nowMs);
  }

  /** A request turned out to cost more than it was taken for. */
  charge(winners: readonly Winner[], cost: number, nowMs: number): void {
    for (const { key, limit } of winners.map(bucketOf)) this.#table.charge(key, limit, cost, nowMs);
  }
}

function bucketOf({ counterId, rule }: Winner): LocalBucket {
  return { key: counterId, limit: rule.limit! };
}
