/**
 * Labels of a series, always in the order of the catalogue and always of values that can be stored and published as they are.
 *
 * A value is cut at `LABEL_LENGTH_MAX` and made well-formed Unicode before anything compares it: two values that would look alike once
 * they are published are one series from the start.
 */
import type { Metric } from './catalogue.ts';

export type Labels = Readonly<Record<string, string>>;

/** Twice the longest name of a policy or rule that anyone is likely to read on a dashboard; it bounds what 10,000 series take. */
export const LABEL_LENGTH_MAX = 128;

export function labelValue(text: string): string {
  const short = text.length > LABEL_LENGTH_MAX ? text.slice(0, LABEL_LENGTH_MAX) : text;
  return short.toWellFormed();
}

/** The labels that the metric has, as far as `given` is exactly those: no name missing, none too many, all of them texts. */
export function readLabels(metric: Metric, given: unknown): Labels | undefined {
  if (typeof given !== 'object' || given === null) return undefined;
  if (Object.keys(given).length !== metric.labels.length) return undefined;
  const labels: Record<string, string> = {};
  for (const label of metric.labels) {
    const value: unknown = Object.hasOwn(given, label) ? (given as Labels)[label] : undefined;
    if (typeof value !== 'string') return undefined;
    labels[label] = labelValue(value);
  }
  return labels;
}

/** Injective, given labels in the order of the catalogue. */
export function seriesKey(name: string, labels: Labels): string {
  return JSON.stringify([name, ...Object.values(labels)]);
}
