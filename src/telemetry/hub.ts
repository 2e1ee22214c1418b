/**
 * Where the counts of all isolates meet: adds each batch at most once, and publishes the sums.
 *
 * A batch whose number is not above the last of its isolate was counted before and is only acknowledged. What cannot be read is
 * acknowledged as well, else it would be repeated for ever; that it was dropped is counted. Nothing that is reported makes `receive`
 * throw, and nothing grows without bound. All that is counted can be stored and read again, also by a version that knows fewer metrics.
 */
import {
  type CounterEntry,
  type Envelope,
  GAUGES_MAX,
  type HistogramEntry,
  isAmount,
  isBatchNumber,
  readCounter,
  readEnvelope,
  readGauge,
  readHistogram,
} from './batch.ts';
import { type Metric, PUBLISHED_BY_HUB, REPORTED } from './catalogue.ts';
import { Isolates, type StoredIsolates } from './isolates.ts';
import { type Family, histogramSamples, render, type Sample } from './prometheus.ts';
import { publishedGauges } from './published-gauges.ts';
import { type Series, SeriesTable } from './series.ts';

export const HUB_FORMAT = 1;

/** Five times what one isolate may have, for deployments in several regions; a scrape of so many is about 2 MB. */
export const HUB_SERIES_MAX = 10_000;

/** The region of what the hub counts by itself. */
const REGION = 'hub';

export interface StoredHub extends StoredIsolates {
  readonly format: number;
  readonly reports: number;
  readonly counters: readonly CounterEntry[];
  readonly histograms: readonly HistogramEntry[];
}

export class Hub {
  readonly #isolates = new Isolates();
  readonly #table: SeriesTable;
  readonly #malformed: Series;
  #reports = 0;

  /** Goes on where `stored()` was taken; with what is not of this format it starts anew. */
  constructor(stored?: unknown) {
    this.#table = new SeriesTable(HUB_SERIES_MAX, () => overflow.absorb(1));
    const overflow = this.#table.reserve('series_overflow_total', { region: REGION });
    this.#malformed = this.#table.reserve('telemetry_dropped_total', { what: 'malformed', region: REGION });
    if (isStoredHub(stored)) this.#restore(stored);
  }

  receive(batch: unknown, nowMs: number): { acknowledged: number } {
    const envelope = readEnvelope(batch);
    if (envelope === undefined) {
      this.#malformed.absorb(1);
      const number = (batch as { number?: unknown } | null | undefined)?.number;
      return { acknowledged: isBatchNumber(number) ? number : 0 };
    }
    if (this.#isolates.admit(envelope, nowMs)) this.#add(envelope, nowMs);
    return { acknowledged: envelope.number };
  }

  /** Everything, in the text format of Prometheus. */
  text(nowMs: number): string {
    return render([...this.#families(), ...publishedGauges(this.#isolates.live(nowMs), nowMs)]);
  }

  /** Plain data that shares nothing with the hub, for the constructor of another. */
  stored(): StoredHub {
    const counters: CounterEntry[] = [];
    const histograms: HistogramEntry[] = [];
    for (const { name, labels, amount, counts } of this.#table.values()) {
      if (counts.length === 0) counters.push([name, labels, amount]);
      else histograms.push([name, labels, [...counts], amount]);
    }
    return { format: HUB_FORMAT, reports: this.#reports, ...this.#isolates.stored(), counters, histograms };
  }

  #add({ isolate, region, counters, histograms, gauges }: Envelope, nowMs: number): void {
    this.#reports += 1;
    for (const { name, labels, amount } of this.#readable(counters, readCounter))
      this.#table.find(name, labels).absorb(amount);
    for (const { name, labels, counts, sum } of this.#readable(histograms, readHistogram))
      this.#table.find(name, labels).absorb(sum, counts);
    const read = this.#readable(gauges, readGauge);
    this.#malformed.absorb(Math.max(0, read.length - GAUGES_MAX));
    this.#isolates.setGauges(isolate, { region, seenMs: nowMs, gauges: read.slice(0, GAUGES_MAX) });
  }

  #readable<Read>(entries: readonly unknown[], read: (entry: unknown) => Read | undefined): Read[] {
    const readable: Read[] = [];
    for (const entry of entries) {
      const value = read(entry);
      if (value === undefined) this.#malformed.absorb(1);
      else readable.push(value);
    }
    return readable;
  }

  #restore(stored: Partial<Record<keyof StoredHub, unknown>>): void {
    if (isAmount(stored.reports)) this.#reports = stored.reports;
    this.#isolates.restore(stored);
    for (const entry of Array.isArray(stored.counters) ? stored.counters : []) {
      const read = readCounter(entry);
      if (read) this.#table.restore(read.name, read.labels).absorb(read.amount);
    }
    for (const entry of Array.isArray(stored.histograms) ? stored.histograms : []) {
      const read = readHistogram(entry);
      if (read) this.#table.restore(read.name, read.labels).absorb(read.sum, read.counts);
    }
  }

  #families(): Family[] {
    const seriesByName = Map.groupBy(this.#table.values(), ({ name }) => name as string);
    const reported = Object.entries(REPORTED).map(([name, metric]) => {
      const series = seriesByName.get(name) ?? [];
      return { name, metric, samples: series.flatMap(samplesOf) };
    });
    const { metrics_reports_total } = PUBLISHED_BY_HUB;
    const reports = [{ labels: {}, value: this.#reports }];
    return [{ name: 'metrics_reports_total', metric: metrics_reports_total, samples: reports }, ...reported];
  }
}

function samplesOf({ name, labels, amount, counts }: Series): Sample[] {
  const { bounds }: Metric = REPORTED[name];
  return bounds === undefined
    ? [{ labels, value: amount }]
    : histogramSamples(labels, { bounds, counts, sum: amount });
}

function isStoredHub(stored: unknown): stored is Partial<Record<keyof StoredHub, unknown>> {
  return (stored as { format?: unknown } | null | undefined)?.format === HUB_FORMAT;
}
