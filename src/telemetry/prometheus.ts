/**
 * The text format of Prometheus, version 0.0.4: a family of samples under its HELP and TYPE, a sample a line, every line ended.
 *
 * https://github.com/prometheus/docs/blob/main/docs/instrumenting/exposition_formats.md
 */
import { METRIC_PREFIX, type Metric } from './catalogue.ts';
import type { Labels } from './labels.ts';

export const CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export interface Sample {
  /** What follows the family's name: `_bucket` and the like, of a histogram. */
  readonly suffix?: string;
  readonly labels: Labels;
  readonly value: number;
}

export interface Family {
  /** Without the prefix. */
  readonly name: string;
  readonly metric: Metric;
  readonly samples: readonly Sample[];
}

/** A family without samples says nothing and is left out. */
export function render(families: Iterable<Family>): string {
  let text = '';
  for (const { name, metric, samples } of families) {
    if (samples.length === 0) continue;
    const published = METRIC_PREFIX + name;
    text += `# HELP ${published} ${escapeHelp(metric.help)}\n# TYPE ${published} ${metric.type}\n`;
    for (const { suffix = '', labels, value } of samples)
      text += `${published}${suffix}${renderLabels(labels)} ${renderNumber(value)}\n`;
  }
  return text;
}

/** Buckets as Prometheus wants them: each with all that fell below its bound, the last with everything. */
export function histogramSamples(
  labels: Labels,
  {
    bounds,
    counts,
    sum,
  }: { readonly bounds: readonly number[]; readonly counts: readonly number[]; readonly sum: number },
): Sample[] {
  let total = 0;
  const buckets = [...bounds, Number.POSITIVE_INFINITY].map((bound, bucket) => {
    total += counts[bucket] ?? 0;
    return { suffix: '_bucket', labels: { ...labels, le: renderNumber(bound) }, value: total };
  });
  return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
}

function renderLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([label, value]) => `${label}="${escapeValue(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function renderNumber(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}

function escapeValue(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
