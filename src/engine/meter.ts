/**
 * How fast something arrives at this isolate: a decaying sum of units, as units a second.
 *
 * The sum forgets with a time constant of a second, long enough to smooth arrivals at random and short enough to follow a change. It
 * is corrected for its own youth (a sum that is 0.2 s old has not had a second to grow), but never by more than 30 ms' worth, since
 * one early arrival says little about the next.
 */
const TIME_CONSTANT_MS = 1_000;
const YOUTH_MS_MIN = 30;

/** What is left of earlier arrivals is next to nothing. */
const LONE_PART = 1.1;

export class Meter {
  readonly #bornMs: number;
  #units = 0;
  #latest = 0;
  #atMs: number;

  constructor(nowMs: number) {
    this.#bornMs = nowMs;
    this.#atMs = nowMs;
  }

  arrive(units: number, nowMs: number): void {
    this.#units = this.#decayed(nowMs) + units;
    this.#latest = units;
    this.#atMs = nowMs;
  }

  /** An arrival that turned out not to count. */
  takeBack(units: number, nowMs: number): void {
    this.#units = Math.max(0, this.#decayed(nowMs) - units);
    this.#atMs = nowMs;
  }

  /** Units of about the last second. */
  units(nowMs: number): number {
    return this.#decayed(nowMs);
  }

  /** Whether one arrival, of whatever size, is all there has been of late. */
  isLone(nowMs: number): boolean {
    return this.#decayed(nowMs) <= LONE_PART * this.#latest;
  }

  unitsPerSecond(nowMs: number): number {
    const ageMs = Math.max(YOUTH_MS_MIN, nowMs - this.#bornMs);
    const seenPart = 1 - Math.exp(-ageMs / TIME_CONSTANT_MS);
    return (this.#decayed(nowMs) * 1_000) / (TIME_CONSTANT_MS * seenPart);
  }

  #decayed(nowMs: number): number {
    return this.#units * Math.exp(-Math.max(0, nowMs - this.#atMs) / TIME_CONSTANT_MS);
  }
}
