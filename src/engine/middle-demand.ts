/**
 * How much is asked of one counter of a middle owner, and what of that the root should hear.
 *
 * What isolates ask for, or say that they have spent, is the measure. While units are short, and before anything else is known, what they say
 * that they wish for counts if it is more, since of that they ask for a part only. A fall that is no chance counts at once.
 */
import { Meter } from './meter.ts';

/** For so long after somebody asks again the root's first answer is waited for. */
const NEW_MS = 1_000;

/** Nobody asks any more when so many units in a row have not been asked for that were to be expected. */
const FALLEN_UNITS = 24;

/** What is asked for within less is chance. */
const GLANCE_MS = 50;

/** A caller may hold its breath for so long. */
const PAUSE_MS = 250;

/** An isolate has spoken by then: it renews its lease, or gives it back just before it ends. */
const LENT_WORD_MS = 900;

/** After a denial isolates deny by themselves. */
const SHORT_MS = 2_000;

/** What nobody has asked for so long is asked for no more. */
const IDLE_MS = 2_000;

export class MiddleDemand {
  #meter: Meter;
  #sinceReport = 0;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** When somebody asked after a pause. */
  #beganAtMs = Number.NEGATIVE_INFINITY;
  #shortAtMs = Number.NEGATIVE_INFINITY;
  #largestCost = 1;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #reported = 0;
  /** As much was asked for by the last report, a second; of what is short more may have been wished for. */
  #askedBefore = 0;

  constructor(nowMs: number) {
    this.#meter = new Meter(nowMs);
  }

  get largestCost(): number {
    return this.#largestCost;
  }

  /** Units asked for since the last report. */
  get sinceReport(): number {
    return this.#sinceReport;
  }

  /** Somebody would like to be lent some of it. */
  wanted(nowMs: number): void {
    if (this.isIdle(nowMs)) {
      this.#meter = new Meter(nowMs);
      this.#beganAtMs = nowMs;
    }
    this.#askedAtMs = nowMs;
  }

  /** Units were asked for here, or spent from what was lent on; `cost` is that of the dearest request. */
  asked(units: number, cost: number, nowMs: number): void {
    this.wanted(nowMs);
    this.#meter.arrive(units, nowMs);
    this.#sinceReport += units;
    this.#largestCost = Math.max(this.#largestCost, cost);
  }

  /** A request was denied here. */
  denied(nowMs: number): void {
    this.#shortAtMs = nowMs;
  }

  isNew(nowMs: number): boolean {
    return nowMs - this.#beganAtMs < NEW_MS;
  }

  isIdle(nowMs: number): boolean {
    return nowMs - this.#askedAtMs >= IDLE_MS;
  }

  isShort(nowMs: number): boolean {
    return nowMs - this.#shortAtMs < SHORT_MS;
  }

  /** Units a second to be told to the root now. `wished` is what isolates say; `isKnown` that more than a first glance has been had. */
  report({ wished, isKnown, hasLent }: Saying, nowMs: number): number {
    const isFallen = this.fallenInMs(hasLent, nowMs) <= 0;
    if (isFallen) this.#meter = new Meter(nowMs);
    const asked = this.#meter.unitsPerSecond(nowMs);
    const isWished = !isFallen && (this.isShort(nowMs) || !isKnown);
    this.#reported = isWished ? Math.max(asked, wished) : asked;
    this.#askedBefore = asked;
    this.#reportedAtMs = nowMs;
    this.#sinceReport = 0;
    return this.#reported;
  }

  /** How fast it is asked for at a glance, in units a millisecond. */
  unitsPerMs(nowMs: number): number {
    const elapsedMs = Math.max(GLANCE_MS, nowMs - this.#reportedAtMs);
    return Math.max(this.#sinceReport / elapsedMs, this.#reported / 1_000);
  }

  /** How long until it can be told from chance that nobody asks any more, if nobody does; `hasLent` when isolates spend by themselves. */
  fallenInMs(hasLent: boolean, nowMs: number): number {
    if (this.#askedBefore === 0 || this.isShort(nowMs)) return Number.POSITIVE_INFINITY;
    const expectedMs = (FALLEN_UNITS * 1_000) / this.#askedBefore;
    return this.#askedAtMs + Math.max(hasLent ? LENT_WORD_MS : PAUSE_MS, expectedMs) - nowMs;
  }
}

interface Saying {
  readonly wished: number;
  readonly isKnown: boolean;
  readonly hasLent: boolean;
}
