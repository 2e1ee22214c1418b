/**
 * Who asks for a counter, and how fast: what each holder last reported, and the sum of it.
 *
 * A report fades with time, since a holder that has gone says nothing. All fade alike, so the total is the sum of the parts at any
 * instant, and a share costs two divisions.
 *
 * Promise: the shares that active holders were told add up to at most one. They are told at different moments, so a holder is told no more
 * than the others were not. What a holder is told less than before is free for others once it has asked again: until then the word may be lost.
 */

import { RecencyMap } from './recency-map.ts';

/** A holder with a lease reports twice a second, so what is summed has faded by less than a tenth. */
const HALF_LIFE_MS = 5_000;

/** Two half-lives: a holder that has been silent for so long is not active. */
const FORGET_AFTER_MS = 2 * HALF_LIFE_MS;

/** An object answers about 1,000 calls a second, so more holders than this cannot ask often enough to be told a useful share. */
const HOLDERS_MAX = 4_096;

/** Ten times what a limit may admit at its dearest; what is reported beyond it is no measurement. */
const UNITS_PER_SECOND_MAX = 1e9;

interface Faded {
  unitsPerSecond: number;
  atMs: number;
}

interface Holder extends Faded {
  /** The share that it was last told, and the one before. */
  told: number;
  toldBefore: number;
}

export class Demand {
  /** By the last report, so the ones to forget are the oldest. */
  readonly #holders = new RecencyMap<Holder>();
  readonly #total: Faded = { unitsPerSecond: 0, atMs: 0 };
  /** Of all holders: the larger of what each was told last and before. */
  #toldToAll = 0;

  report(holder: string, reported: number, nowMs: number): void {
    const unitsPerSecond = reported > 0 ? Math.min(reported, UNITS_PER_SECOND_MAX) : 0;
    const before = this.#holders.get(holder);
    this.#holders.put(holder, {
      unitsPerSecond,
      atMs: nowMs,
      told: before?.told ?? 0,
      toldBefore: before?.toldBefore ?? 0,
    });
    this.#add(unitsPerSecond - (before === undefined ? 0 : faded(before, nowMs)), nowMs);
    this.#forget(nowMs);
  }

  /** This holder's part of the demand, 0 to 1; 0 for a holder that never reported. */
  share(holder: string, nowMs: number): number {
    const own = this.#holders.get(holder);
    if (own === undefined || own.unitsPerSecond === 0) return 0;
    const total = faded(this.#total, nowMs);
    return total > 0 ? Math.min(1, faded(own, nowMs) / total) : 1;
  }

  /** What to tell this holder of its part, 0 to 1: no more than the others were not told. */
  tell(holder: string, nowMs: number): number {
    const own = this.#holders.get(holder);
    if (own === undefined) return 0;
    this.#toldToAll -= believed(own);
    const share = Math.min(this.share(holder, nowMs), Math.max(0, 1 - this.#toldToAll));
    own.toldBefore = own.told;
    own.told = share;
    this.#toldToAll += believed(own);
    return share;
  }

  /** As fast as this holder asks by its last report; 0 for a holder that never reported. */
  unitsPerSecond(holder: string, nowMs: number): number {
    const own = this.#holders.get(holder);
    return own === undefined ? 0 : faded(own, nowMs);
  }

  totalUnitsPerSecond(nowMs: number): number {
    return faded(this.#total, nowMs);
  }

  get activeHolders(): number {
    return this.#holders.size;
  }

  #forget(nowMs: number): void {
    for (;;) {
      const [holder, report] = this.#holders.oldest!;
      if (nowMs - report.atMs < FORGET_AFTER_MS && this.#holders.size <= HOLDERS_MAX) return;
      this.#holders.delete(holder);
      this.#toldToAll = Math.max(0, this.#toldToAll - believed(report));
      this.#add(-faded(report, nowMs), nowMs);
    }
  }

  #add(unitsPerSecond: number, nowMs: number): void {
    this.#total.unitsPerSecond = Math.max(0, faded(this.#total, nowMs) + unitsPerSecond);
    this.#total.atMs = nowMs;
  }
}

/** The share that a holder may go by. */
function believed({ told, toldBefore }: Holder): number {
  return Math.max(told, toldBefore);
}

function faded({ unitsPerSecond, atMs }: Faded, nowMs: number): number {
  return unitsPerSecond * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS);
}
