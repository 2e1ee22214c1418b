/**
 * What an isolate reports to the hub: everything that it counted since the batch before, under a number.
 *
 * Numbers of an isolate begin at 1 and grow. A batch is repeated as it is, under its number, until it is acknowledged; the hub counts it
 * at most once. What cannot be read is dropped entry by entry, since during a rollout two code versions report to one hub and may not
 * know all of each other's metrics.
 */
import { type Metric, type MetricName, type MetricType, reportedMetric } from './catalogue.ts';
import { LABEL_LENGTH_MAX, type Labels, labelValue, readLabels } from './labels.ts';

export const BATCH_FORMAT = 1;

/** Two for each domain that an isolate has met and two of its own: 31 domains. The hub keeps as many of each live isolate. */
export const GAUGES_MAX = 64;

export type CounterEntry = readonly [name: string, labels: Labels, amount: number];
export type GaugeEntry = readonly [name: string, labels: Labels, value: number];
/** Counts of each bucket alone, as in `Series.counts`, and the sum of what was observed. */
export type HistogramEntry = readonly [name: string, labels: Labels, counts: readonly number[], sum: number];

export interface MetricsBatch {
  readonly format: number;
  /** Random, so that no two isolates ever share it. */
  readonly isolate: string;
  readonly region: string;
  readonly number: number;
  readonly counters: readonly CounterEntry[];
  readonly histograms: readonly HistogramEntry[];
  /** All that the isolate has, changed or not. */
  readonly gauges: readonly GaugeEntry[];
}

/** The batch with its lists still to be read entry by entry. */
export interface Envelope {
  readonly isolate: string;
  readonly region: string;
  readonly number: number;
  readonly counters: readonly unknown[];
  readonly histograms: readonly unknown[];
  readonly gauges: readonly unknown[];
}

export function readEnvelope(batch: unknown): Envelope | undefined {
  if (typeof batch !== 'object' || batch === null) return undefined;
  const { format, isolate, region, number, counters, histograms, gauges } = batch as Partial<
    Record<string, unknown>
  >;
  if (format !== BATCH_FORMAT || !isIsolate(isolate) || typeof region !== 'string' || !isBatchNumber(number))
    return undefined;
  if (!Array.isArray(counters) || !Array.isArray(histograms) || !Array.isArray(gauges)) return undefined;
  return { isolate, region: labelValue(region), number, counters, histograms, gauges };
}

/** An isolate's name is a UUID or the like. */
export function isIsolate(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= LABEL_LENGTH_MAX;
}

export function isBatchNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

/** Nothing that is counted comes near the bound, above which adding one would add nothing. */
export function isAmount(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
}

interface Identity {
  readonly name: MetricName;
  readonly labels: Labels;
}

export function readCounter(entry: unknown): (Identity & { readonly amount: number }) | undefined {
  const [identity, amount] = readEntry(entry, 'counter');
  return identity !== undefined && isAmount(amount) ? { ...identity, amount } : undefined;
}

export function readHistogram(
  entry: unknown,
): (Identity & { readonly counts: readonly number[]; readonly sum: number }) | undefined {
  const [identity, counts, sum] = readEntry(entry, 'histogram');
  if (identity === undefined || !Array.isArray(counts) || !isAmount(sum)) return undefined;
  const buckets = (identity.metric.bounds?.length ?? 0) + 1;
  // `every` would pass over the holes of a list that has any.
  if (counts.length !== buckets || ![...counts].every(isAmount)) return undefined;
  return { ...identity, counts, sum };
}

export function readGauge(entry: unknown): GaugeEntry | undefined {
  const [identity, value] = readEntry(entry, 'gauge');
  return identity !== undefined && isAmount(value) ? [identity.name, identity.labels, value] : undefined;
}

function readEntry(
  entry: unknown,
  type: MetricType,
): [(Identity & { readonly metric: Metric }) | undefined, ...values: unknown[]] {
  if (!Array.isArray(entry)) return [undefined];
  const [name, given, ...values] = entry as unknown[];
  const metric = reportedMetric(name, type);
  const labels = metric && readLabels(metric, given);
  return metric && labels ? [{ name: name as MetricName, labels, metric }, ...values] : [undefined];
}
