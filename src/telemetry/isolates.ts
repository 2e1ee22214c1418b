/**
 * What the hub remembers of isolates: the last batch of each, so that none is counted twice, and the gauges of those that live.
 *
 * Both are kept in order of last word. The isolate that was silent longest gives way to a new one beyond `ISOLATES_MAX`; were it to
 * repeat a batch after that, the batch would be counted again. An isolate that is silent for longer than `SILENT_MS` is gone as far as
 * gauges go: it may have been evicted, and nobody tells when that happens.
 */
import { type GaugeEntry, isBatchNumber, isIsolate, readGauge } from './batch.ts';
import { labelValue } from './labels.ts';

/** Isolates that report to one hub within minutes, many times over; 100 bytes each besides gauges. */
export const ISOLATES_MAX = 4_096;

/** Isolates with any traffic report within seconds. */
export const SILENT_MS = 120_000;

export interface LiveIsolate {
  readonly region: string;
  readonly seenMs: number;
  readonly gauges: readonly GaugeEntry[];
}

export interface StoredIsolates {
  readonly numbers: readonly (readonly [isolate: string, number: number])[];
  readonly live: readonly (readonly [isolate: string, live: LiveIsolate])[];
}

export class Isolates {
  readonly #lastNumbers = new Map<string, number>();
  readonly #live = new Map<string, LiveIsolate>();

  /** Reads what `stored` gave, possibly written by another version; what it cannot read is as good as forgotten. */
  restore({ numbers, live }: { readonly numbers?: unknown; readonly live?: unknown }): void {
    for (const entry of listOf(numbers)) {
      const [isolate, number] = listOf(entry);
      if (isIsolate(isolate) && isBatchNumber(number)) this.#setNumber(isolate, number);
    }
    for (const entry of listOf(live)) {
      const [isolate, value] = listOf(entry);
      const restored = readLive(value);
      if (isIsolate(isolate) && this.#lastNumbers.has(isolate) && restored) this.#live.set(isolate, restored);
    }
  }

  stored(): StoredIsolates {
    return { numbers: [...this.#lastNumbers], live: [...this.#live] };
  }

  /** Hears of a batch and says whether it is to be counted: not if it, or a later one, was counted before. */
  admit({ isolate, number }: { readonly isolate: string; readonly number: number }, nowMs: number): boolean {
    const last = this.#lastNumbers.get(isolate) ?? 0;
    this.#setNumber(isolate, Math.max(number, last));
    const live = this.#live.get(isolate);
    if (live !== undefined) this.#setLive(isolate, { ...live, seenMs: nowMs });
    this.#forgetSilent(nowMs);
    return number > last;
  }

  /** The gauges of the newest batch; those before it are past. */
  setGauges(isolate: string, live: LiveIsolate): void {
    this.#setLive(isolate, live);
  }

  live(nowMs: number): LiveIsolate[] {
    this.#forgetSilent(nowMs);
    return [...this.#live.values()];
  }

  #setNumber(isolate: string, number: number): void {
    this.#lastNumbers.delete(isolate);
    this.#lastNumbers.set(isolate, number);
    if (this.#lastNumbers.size <= ISOLATES_MAX) return;
    const [silent] = this.#lastNumbers.keys();
    if (silent === undefined) return;
    this.#lastNumbers.delete(silent);
    this.#live.delete(silent);
  }

  #setLive(isolate: string, live: LiveIsolate): void {
    this.#live.delete(isolate);
    this.#live.set(isolate, live);
  }

  #forgetSilent(nowMs: number): void {
    for (const [isolate, { seenMs }] of this.#live) {
      // In order of last word, so whoever comes after one that lives has spoken later still.
      if (nowMs - seenMs <= SILENT_MS) return;
      this.#live.delete(isolate);
    }
  }
}

function readLive(value: unknown): LiveIsolate | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const { region, seenMs, gauges } = value as Partial<Record<string, unknown>>;
  if (typeof region !== 'string' || typeof seenMs !== 'number' || !Number.isFinite(seenMs)) return undefined;
  const readable = listOf(gauges)
    .map(readGauge)
    .filter((gauge) => gauge !== undefined);
  return { region: labelValue(region), seenMs, gauges: readable };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
