/**
 * What an isolate counts: in memory, without I/O, and never more than a bounded number of series.
 *
 * `take` hands out what was counted since the last acknowledged batch. Until that batch is acknowledged it hands out the same again,
 * number and content, so that whoever counts it can tell a repeat; what is counted meanwhile waits for the next batch. Nothing here
 * throws or keeps a request waiting: an amount that makes no sense is dropped, and that it was is counted.
 *
 * A series stays for the life of the isolate, since whoever holds its handle may still count.
 */
import {
  BATCH_FORMAT,
  type CounterEntry,
  GAUGES_MAX,
  type GaugeEntry,
  type HistogramEntry,
  isAmount,
  type MetricsBatch,
} from './batch.ts';
import {
  type CounterName,
  type GaugeName,
  type GivenLabels,
  type HistogramName,
  type Metric,
  type MetricName,
  REPORTED,
} from './catalogue.ts';
import { type Labels, labelValue, seriesKey } from './labels.ts';
import { type Counter, type Series, SeriesTable } from './series.ts';

/** A few domains with tens of policies each, times outcomes and sources; about 400 bytes each. */
export const SERIES_MAX = 2_000;

export interface MetricsOptions {
  /** Random, so that no two isolates ever share it. */
  readonly isolate: string;
  readonly region: string;
  readonly seriesMax?: number;
}

export class Metrics {
  readonly #isolate: string;
  readonly #region: string;
  readonly #table: SeriesTable;
  readonly #gauges = new Map<string, GaugeEntry>();
  #hasNewGauge = false;
  #lastNumber = 0;
  #unacknowledged: MetricsBatch | undefined;

  constructor({ isolate, region, seriesMax = SERIES_MAX }: MetricsOptions) {
    this.#isolate = isolate;
    this.#region = labelValue(region);
    this.#table = new SeriesTable(seriesMax, () => overflow.add());
    const overflow = this.#table.reserve('series_overflow_total', { region: this.#region });
  }

  /** A handle to be kept: looking it up costs more than counting with it. */
  counter<Name extends CounterName>(name: Name, labels: GivenLabels<Name>): Counter {
    return this.#find(name, labels);
  }

  count<Name extends CounterName>(name: Name, labels: GivenLabels<Name>, amount = 1): void {
    if (isAmount(amount)) this.#find(name, labels).add(amount);
    else this.#dropped('amount');
  }

  observe<Name extends HistogramName>(name: Name, labels: GivenLabels<Name>, value: number): void {
    if (!isAmount(value)) {
      this.#dropped('observation');
      return;
    }
    const { bounds }: Metric = REPORTED[name];
    const within = bounds?.findIndex((bound) => value <= bound) ?? -1;
    const series = this.#find(name, labels);
    const bucket = within === -1 ? series.counts.length - 1 : within;
    series.add(value);
    series.counts[bucket] = (series.counts[bucket] ?? 0) + 1;
  }

  gauge<Name extends GaugeName>(name: Name, given: GivenLabels<Name>, value: number): void {
    const labels = this.#labelsOf(name, given);
    const key = seriesKey(name, labels);
    const known = this.#gauges.get(key);
    if (known?.[2] === value) return;
    const hasRoom = known !== undefined || this.#gauges.size < GAUGES_MAX;
    if (hasRoom && isAmount(value)) {
      this.#gauges.set(key, [name, labels, value]);
      this.#hasNewGauge = true;
    } else {
      this.#dropped('gauge');
    }
  }

  /** The batch that waits to be acknowledged, else a new one; nothing while there is nothing to tell. */
  take(): MetricsBatch | undefined {
    this.#unacknowledged ??= this.#collect();
    return this.#unacknowledged;
  }

  acknowledged(number: number): void {
    if (this.#unacknowledged?.number === number) this.#unacknowledged = undefined;
  }

  #collect(): MetricsBatch | undefined {
    const counters: CounterEntry[] = [];
    const histograms: HistogramEntry[] = [];
    this.#dropNonsense();
    for (const series of this.#table.values()) {
      const { name, labels, amount, counts } = series;
      if (counts.some((count) => count > 0)) histograms.push([name, labels, [...counts], amount]);
      else if (amount > 0) counters.push([name, labels, amount]);
      series.amount = 0;
      counts.fill(0);
    }
    if (counters.length === 0 && histograms.length === 0 && !this.#hasNewGauge) return undefined;
    this.#hasNewGauge = false;
    this.#lastNumber += 1;
    return {
      format: BATCH_FORMAT,
      isolate: this.#isolate,
      region: this.#region,
      number: this.#lastNumber,
      counters,
      histograms,
      gauges: [...this.#gauges.values()],
    };
  }

  /**
   * A handle adds without looking, so the sum is looked at here, before the series that tells of it is read. What was added to a sum
   * that came out wrong cannot be told apart any more and is lost with it.
   */
  #dropNonsense(): void {
    for (const series of [...this.#table.values()]) {
      if (isAmount(series.amount)) continue;
      series.amount = 0;
      series.counts.fill(0);
      this.#dropped('amount');
    }
  }

  #dropped(what: string): void {
    this.count('telemetry_dropped_total', { what });
  }

  #find<Name extends MetricName>(name: Name, given: GivenLabels<Name>): Series {
    return this.#table.find(name, this.#labelsOf(name, given));
  }

  #labelsOf(name: MetricName, given: Labels): Labels {
    const labels: Record<string, string> = {};
    for (const label of REPORTED[name].labels)
      labels[label] = label === 'region' ? this.#region : labelValue(given[label] ?? '');
    return labels;
  }
}
