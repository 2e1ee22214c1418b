/**
 * Who asks for a counter, and how fast: what each holder last reported, and the sum of it.
 *
 * A report fades with time, since a holder that has gone says nothing. All fade alike, so the total is the sum of the parts at any
 * instant.
 *
 * Shares go by what holders ask for steadily. They are told at different moments, and holders go by them together: parts of what was asked
 * for just then would add up to more than one, a fresh report beside faded ones, or a high one beside others that were high before.
 */
import { RecencyMap } from './recency-map.ts';

/** A holder with a lease reports twice a second, so what is summed has faded by less than a tenth. */
const HALF_LIFE_MS = 5_000;

/** Steady is what was asked for over so long: enough of it for chance to even out, and short beside an outage. */
const STEADY_MS = 5_000;

/** A holder that is short asks again within so long, or has gone. */
const RECENT_MS = 2_000;

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
  /** When it first reported. */
  readonly sinceMs: number;
  readonly steadyPerSecond: number;
}

export class Demand {
  /** By the last report, so the ones to forget are the oldest. */
  readonly #holders = new RecencyMap<Holder>();
  readonly #total: Faded = { unitsPerSecond: 0, atMs: 0 };
  #steadyTotal = 0;

  report(holder: string, reported: number, nowMs: number): void {
    const unitsPerSecond = reported > 0 ? Math.min(reported, UNITS_PER_SECOND_MAX) : 0;
    const before = this.#holders.get(holder);
    const steadyPerSecond = before === undefined ? unitsPerSecond : steadied(before, unitsPerSecond, nowMs);
    const sinceMs = before?.sinceMs ?? nowMs;
    this.#holders.put(holder, { unitsPerSecond, atMs: nowMs, sinceMs, steadyPerSecond });
    this.#steadyTotal += steadyPerSecond - (before?.steadyPerSecond ?? 0);
    this.#add(unitsPerSecond - (before === undefined ? 0 : faded(before, nowMs)), nowMs);
    this.#forget(nowMs);
  }

  /** This holder's part of the steady demand, 0 to 1; 0 for a holder that never reported. */
  share(holder: string): number {
    const steadyPerSecond = this.#holders.get(holder)?.steadyPerSecond ?? 0;
    return steadyPerSecond > 0 ? Math.min(1, steadyPerSecond / this.#steadyTotal) : 0;
  }

  /** As fast as this holder asks by its last report; 0 for a holder that never reported. */
  unitsPerSecond(holder: string, nowMs: number): number {
    const own = this.#holders.get(holder);
    return own === undefined ? 0 : faded(own, nowMs);
  }

  totalUnitsPerSecond(nowMs: number): number {
    return faded(this.#total, nowMs);
  }

  /** The same, of those who have reported lately. */
  recentUnitsPerSecond(nowMs: number): number {
    let sum = 0;
    for (const report of this.#holders.values())
      if (nowMs - report.atMs < RECENT_MS) sum += faded(report, nowMs);
    return sum;
  }

  get activeHolders(): number {
    return this.#holders.size;
  }

  #forget(nowMs: number): void {
    for (;;) {
      const report = this.#holders.oldest!;
      if (nowMs - report.atMs < FORGET_AFTER_MS && this.#holders.size <= HOLDERS_MAX) return;
      this.#holders.shift();
      this.#add(-faded(report, nowMs), nowMs);
      this.#steadyTotal = Math.max(0, this.#steadyTotal - report.steadyPerSecond);
    }
  }

  #add(unitsPerSecond: number, nowMs: number): void {
    this.#total.unitsPerSecond = Math.max(0, faded(this.#total, nowMs) + unitsPerSecond);
    this.#total.atMs = nowMs;
  }
}

/** An average over the time since the holder's first report, which says little by itself; later over `STEADY_MS`, the older the less. */
function steadied(before: Holder, unitsPerSecond: number, nowMs: number): number {
  const passedMs = Math.max(0, nowMs - before.atMs);
  const ageMs = nowMs - before.sinceMs;
  const newPart = ageMs > 0 ? Math.max(passedMs / ageMs, 1 - Math.exp(-passedMs / STEADY_MS)) : 1;
  return before.steadyPerSecond + newPart * (unitsPerSecond - before.steadyPerSecond);
}

function faded({ unitsPerSecond, atMs }: Faded, nowMs: number): number {
  return unitsPerSecond * 2 ** (-Math.max(0, nowMs - atMs) / HALF_LIFE_MS);
}
