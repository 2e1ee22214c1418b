/**
 * What was decided, as points for Workers Analytics Engine: a point for each series of a batch.
 *
 * A batch that is repeated gives the same points again, so whoever writes them writes them once for each number. Analytics Engine samples
 * by index, which is the domain, and a point counts for its double.
 *
 * https://developers.cloudflare.com/analytics/analytics-engine/limits/
 */
import type { CounterEntry, MetricsBatch } from './batch.ts';
import { type CounterName, METRIC_PREFIX } from './catalogue.ts';

/** What one invocation of a Worker may write. */
export const POINTS_MAX = 250;

export const INDEX_BYTES_MAX = 96;

const DECISIONS: ReadonlySet<string> = new Set<CounterName>([
  'requests_total',
  'decisions_total',
  'shadow_denied_total',
  'near_limit_total',
]);

/** The order of columns, which queries count on. A label that a metric does not have is empty. */
const COLUMNS = ['domain', 'policy', 'rule', 'outcome', 'source', 'region'] as const;

export interface Point {
  readonly blobs: string[];
  readonly doubles: number[];
  readonly indexes: string[];
}

/** Of too many points the largest are kept: dropping the others loses the least. */
export function pointsOf(batch: MetricsBatch): { points: Point[]; dropped: number } {
  const decisions = batch.counters.filter(([name]) => DECISIONS.has(name));
  const kept =
    decisions.length <= POINTS_MAX
      ? decisions
      : decisions.toSorted(([, , one], [, , other]) => other - one).slice(0, POINTS_MAX);
  return { points: kept.map(pointOf), dropped: decisions.length - kept.length };
}

function pointOf([name, labels, amount]: CounterEntry): Point {
  return {
    blobs: [METRIC_PREFIX + name, ...COLUMNS.map((column) => labels[column] ?? '')],
    doubles: [amount],
    indexes: [indexOf(labels.domain ?? '')],
  };
}

/** As many whole characters as fit. */
function indexOf(domain: string): string {
  const { read } = new TextEncoder().encodeInto(domain, new Uint8Array(INDEX_BYTES_MAX));
  return domain.slice(0, read);
}
