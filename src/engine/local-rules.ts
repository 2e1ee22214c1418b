/**
 * Rules with `scope: local`: the flood tier, decided in the isolate, with no I/O.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import type { Winner } from '../policy/counter.ts';
import { bucketReport, giveBackAll, type LocalBucket, takeAll } from './local-buckets.ts';
import type { PolicyReport } from './verdict.ts';

export class LocalRules {
  readonly #table: BucketTable;

  constructor(table: BucketTable) {
    this.#table = table;
  }

  /** Charges every rule or none, and reports each. */
  take(winners: readonly Winner[], cost: number, nowMs: number): readonly PolicyReport[] {
    const buckets = winners.map(bucketOf);
    const { decisions } = takeAll(this.#table, buckets, cost, nowMs);
    return winners.map(({ rule }, at) => ({
      policy: rule.policy,
      limit: buckets[at]!.limit,
      source: 'local',
      ...bucketReport(this.#table, buckets[at]!, decisions[at]!, nowMs),
    }));
  }

  /** Shadow rules: charged where they would have admitted. Answers the policies that would have denied. */
  takeShadow(winners: readonly Winner[], cost: number, nowMs: number): readonly string[] {
    const denying = winners.filter(
      (winner) => !takeAll(this.#table, [bucketOf(winner)], cost, nowMs).isAdmitted,
    );
    return denying.map(({ rule }) => rule.policy);
  }

  /** The request was denied elsewhere, so it costs nothing here. */
  giveBack(winners: readonly Winner[], cost: number, nowMs: number): void {
    giveBackAll(this.#table, winners.map(bucketOf), cost, nowMs);
  }
}

function bucketOf({ counterId, rule }: Winner): LocalBucket {
  return { key: counterId, limit: rule.limit! };
}
