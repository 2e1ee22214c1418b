/**
 * A bounded table of series. A new series that finds no room is counted into one that stands for many: first its free labels become
 * `OTHER`; when there are too many of those too, all its labels do. Nothing that is counted is ever thrown away.
 *
 * Whatever is asked for, the table holds at most `seriesMax`, plus `LUMPED_MAX`, plus one series a metric, plus those that its maker
 * reserved.
 */
import { freeLabelsOf, type Metric, type MetricName, OTHER, REPORTED } from './catalogue.ts';
import { type Labels, seriesKey } from './labels.ts';

/** Outcomes times sources are about 30, for each of a few metrics and domains. */
export const LUMPED_MAX = 256;

/** What one may do with a counter that was looked up once: `add` is an addition to a field, fit for the path of every request. */
export interface Counter {
  add(amount?: number): void;
}

/** A counter, or a histogram: then `amount` is the sum of what was observed. */
export class Series implements Counter {
  readonly name: MetricName;
  readonly labels: Labels;
  amount = 0;
  /** How many observations fell in each bucket alone, the last being of those above every bound; empty for a counter. */
  readonly counts: number[];

  constructor(name: MetricName, labels: Labels) {
    const { bounds }: Metric = REPORTED[name];
    this.name = name;
    this.labels = labels;
    this.counts = bounds === undefined ? [] : new Array<number>(bounds.length + 1).fill(0);
  }

  add(amount = 1): void {
    this.amount += amount;
  }

  /** Adds what was counted elsewhere. A total stays one that can be read again, whatever is reported. */
  absorb(amount: number, counts: readonly number[] = []): void {
    this.amount = sumWithinBound(this.amount, amount);
    for (const [bucket, count] of counts.entries())
      this.counts[bucket] = sumWithinBound(this.counts[bucket] ?? 0, count);
  }
}

export class SeriesTable {
  readonly #series = new Map<string, Series>();
  readonly #onOverflow: () => void;
  #roomLeft: number;
  #lumpedLeft = LUMPED_MAX;

  constructor(seriesMax: number, onOverflow: () => void) {
    this.#roomLeft = seriesMax;
    this.#onOverflow = onOverflow;
  }

  /** A series that is there from the start and takes no room: those that tell of overflow must not overflow themselves. */
  reserve(name: MetricName, labels: Labels): Series {
    return this.#known(name, labels) ?? this.#add(name, labels);
  }

  /** The series of these labels, or the one that stands for it. */
  find(name: MetricName, labels: Labels): Series {
    const own = this.#known(name, labels) ?? this.#admit(name, labels);
    if (own !== undefined) return own;
    this.#onOverflow();
    return this.#lump(name, labels);
  }

  /** Like `find`, for what was in a table before: that it stood for many then is no new overflow. */
  restore(name: MetricName, labels: Labels): Series {
    return this.#known(name, labels) ?? this.#admit(name, labels) ?? this.#lump(name, labels);
  }

  /** In the order in which they were first asked for. */
  values(): IterableIterator<Series> {
    return this.#series.values();
  }

  #known(name: MetricName, labels: Labels): Series | undefined {
    return this.#series.get(seriesKey(name, labels));
  }

  #admit(name: MetricName, labels: Labels): Series | undefined {
    if (this.#roomLeft <= 0) return undefined;
    this.#roomLeft -= 1;
    return this.#add(name, labels);
  }

  #lump(name: MetricName, labels: Labels): Series {
    const lumped = { ...labels };
    for (const label of freeLabelsOf(REPORTED[name])) lumped[label] = OTHER;
    const known = this.#known(name, lumped);
    if (known !== undefined) return known;
    if (this.#lumpedLeft > 0) {
      this.#lumpedLeft -= 1;
      return this.#add(name, lumped);
    }
    for (const label of Object.keys(lumped)) lumped[label] = OTHER;
    return this.#known(name, lumped) ?? this.#add(name, lumped);
  }

  #add(name: MetricName, labels: Labels): Series {
    const series = new Series(name, labels);
    this.#series.set(seriesKey(name, labels), series);
    return series;
  }
}

function sumWithinBound(one: number, other: number): number {
  return Math.min(one + other, Number.MAX_SAFE_INTEGER);
}
