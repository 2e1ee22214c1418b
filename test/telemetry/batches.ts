/** Batches as isolates send them, for tests that speak to a hub directly. */
import { BATCH_FORMAT, type MetricsBatch } from '../../src/telemetry/batch.ts';

export const NOW_MS = Date.UTC(2026, 5, 1);

export function batch(more: Partial<MetricsBatch> = {}): MetricsBatch {
  return {
    format: BATCH_FORMAT,
    isolate: 'one',
    region: 'weur',
    number: 1,
    counters: [],
    histograms: [],
    gauges: [],
    ...more,
  };
}

/** One count of calls to owners, the simplest there is. */
export function calls(number: number, amount: number, isolate = 'one'): MetricsBatch {
  return batch({ isolate, number, counters: [['owner_calls_total', { region: 'weur' }, amount]] });
}
