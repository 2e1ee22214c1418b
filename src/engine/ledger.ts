/**
 * What an owner did lately, by the id under which it was asked: so that a repeated message does nothing twice, and a charge can be
 * taken back once, even when the request to take it back overtakes the question.
 *
 * It lives in memory. What must also hold after an eviction is listed by `recent`, stored with the counters and restored: a debt is
 * repeated for minutes, and its charge outlives the memory that it was made in. Questions are not stored, for they are repeated only
 * over a lost connection: one whose answer is lost with the owner may be charged twice, and its give-back finds nothing to take back
 * (the isolate counts it: `engine/voids`).
 */

import { RecencyMap } from './recency-map.ts';

export interface LedgerBounds {
  readonly keepMs: number;
  readonly entriesMax: number;
}

export interface Recent {
  readonly id: string;
  readonly atMs: number;
}

interface Entry<Outcome> extends Recent {
  outcome: Outcome | 'taken_back';
}

export class Ledger<Outcome> {
  readonly #entries = new RecencyMap<Entry<Outcome>>();
  readonly #bounds: LedgerBounds;

  constructor(bounds: LedgerBounds) {
    this.#bounds = bounds;
  }

  /** What was done under this id: its outcome, `taken_back`, or nothing yet. */
  find(id: string): Outcome | 'taken_back' | undefined {
    return this.#entries.get(id)?.outcome;
  }

  record(id: string, outcome: Outcome, nowMs: number): void {
    this.#put({ id, atMs: nowMs, outcome });
  }

  /** What is still kept, in order of time. */
  recent(nowMs: number): Recent[] {
    return this.#entries
      .values()
      .filter(({ atMs }) => nowMs - atMs <= this.#bounds.keepMs)
      .map(({ id, atMs }) => ({ id, atMs }));
  }

  /** How long until nothing is kept any more. */
  restInMs(nowMs: number): number {
    const newest = this.#entries.newest;
    return newest === undefined ? 0 : Math.max(0, newest.atMs + this.#bounds.keepMs - nowMs);
  }

  /** Marks the id as taken back, whether or not its question has come; answers what there was to take back. */
  takeBack(id: string, nowMs: number): Outcome | undefined {
    const found = this.#entries.get(id);
    if (found === undefined) {
      this.#put({ id, atMs: nowMs, outcome: 'taken_back' });
      return undefined;
    }
    const { outcome } = found;
    found.outcome = 'taken_back';
    return outcome === 'taken_back' ? undefined : outcome;
  }

  #put(entry: Entry<Outcome>): void {
    this.#entries.put(entry.id, entry);
    for (;;) {
      const isKept = entry.atMs - this.#entries.oldest!.atMs <= this.#bounds.keepMs;
      if (isKept && this.#entries.size <= this.#bounds.entriesMax) return;
      this.#entries.shift();
    }
  }
}
