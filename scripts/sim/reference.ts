/**
 * What one ideal counter would do, with no network between it and the requests: what every run is measured against.
 *
 * Two questions, two machines. An `IdealCounter` decides: fed the same arrivals, how much would it have admitted? An `Excess` only
 * watches: in any interval of t seconds, how much more than `burst + rate x (t + one round trip)` was admitted? It is a bucket that
 * is never asked and may go below empty; the lowest it ever stood is the largest excess over all intervals, exactly, since a
 * bucket that was full at the beginning of the worst interval is short by that much at its end.
 */
import { capacity, countsSlots, type Limit } from '../../src/core/decision.ts';
import type { Winner } from '../../src/policy/counter.ts';

/** In any t seconds at most `burstUnits + unitsPerSecond * t`. */
export interface Envelope {
  readonly burstUnits: number;
  readonly unitsPerSecond: number;
}

export function envelopeOf(limit: Limit): Envelope {
  return { burstUnits: capacity(limit), unitsPerSecond: (limit.quota * 1_000) / limit.windowMs };
}

/** What float sums may be off by. */
const ROUNDING_UNITS = 1e-6;

/** A token bucket or a fixed window, in plain arithmetic and written apart from `core`, so that both do not share a mistake. */
export class IdealCounter {
  #limit: Limit;
  #left: number;
  #atMs = 0;

  constructor(limit: Limit) {
    this.#limit = limit;
    this.#left = capacity(limit);
  }

  fits(limit: Limit, cost: number, atMs: number): boolean {
    this.#pass(atMs);
    if (limit !== this.#limit) this.#adopt(limit);
    return cost <= this.#left + ROUNDING_UNITS;
  }

  take(cost: number): void {
    this.#left -= cost;
  }

  #pass(atMs: number): void {
    const { algorithm, quota, windowMs } = this.#limit;
    const brim = capacity(this.#limit);
    if (algorithm === 'fixed_window') {
      if (Math.floor(atMs / windowMs) > Math.floor(this.#atMs / windowMs)) this.#left = brim;
    } else {
      this.#left = Math.min(brim, this.#left + ((atMs - this.#atMs) * quota) / windowMs);
    }
    this.#atMs = atMs;
  }

  /** Units used stay used under new numbers. */
  #adopt(limit: Limit): void {
    const used = capacity(this.#limit) - this.#left;
    this.#limit = limit;
    this.#left = Math.max(0, capacity(limit) - used);
  }
}

/** So many requests in progress at once, each for as long as it lasts. */
class IdealSlots {
  readonly #limit: Limit;
  #endsAtMs: number[] = [];

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  fits(_limit: Limit, _cost: number, atMs: number): boolean {
    this.#endsAtMs = this.#endsAtMs.filter((endsAtMs) => endsAtMs > atMs);
    return this.#endsAtMs.length < this.#limit.quota;
  }

  take(_cost: number, endsAtMs: number): void {
    this.#endsAtMs.push(endsAtMs);
  }
}

export interface IdealRequest {
  readonly cost: number;
  readonly atMs: number;
  readonly lastsMs: number;
}

/** All counters of a run, each ideal: a request is admitted by all that it touches, or charged to none. */
export class Ideal {
  readonly #counters = new Map<string, IdealCounter | IdealSlots>();

  admits(winners: readonly Winner[], { cost, atMs, lastsMs }: IdealRequest): boolean {
    for (const { counterId, rule } of winners) {
      if (!this.#counter(counterId, rule.limit!).fits(rule.limit!, cost, atMs)) return false;
    }
    for (const { counterId } of winners) this.#counters.get(counterId)!.take(cost, atMs + lastsMs);
    return true;
  }

  #counter(counterId: string, limit: Limit): IdealCounter | IdealSlots {
    const known = this.#counters.get(counterId);
    if (known !== undefined) return known;
    const counter = countsSlots(limit) ? new IdealSlots(limit) : new IdealCounter(limit);
    this.#counters.set(counterId, counter);
    return counter;
  }
}

/** The largest excess over an envelope, in any interval; see above. */
export class Excess {
  #envelope: Envelope;
  readonly #slackMs: number;
  #level: number;
  #atMs = 0;
  #worst = 0;

  constructor(envelope: Envelope, slackMs: number) {
    this.#envelope = envelope;
    this.#slackMs = slackMs;
    this.#level = envelope.burstUnits;
  }

  /** Units above the envelope in the worst interval so far; 0 when there was none. */
  get worst(): number {
    return this.#worst <= ROUNDING_UNITS ? 0 : this.#worst;
  }

  admitted(units: number, atMs: number): void {
    this.#refill(atMs);
    this.#level -= units;
    const slackUnits = (this.#envelope.unitsPerSecond * this.#slackMs) / 1_000;
    this.#worst = Math.max(this.#worst, -this.#level - slackUnits);
  }

  /** From now on another envelope. Intervals that span the change are under neither, and are not judged. */
  adopt(envelope: Envelope, atMs: number): void {
    this.#envelope = envelope;
    this.#level = envelope.burstUnits;
    this.#atMs = atMs;
  }

  #refill(atMs: number): void {
    const { burstUnits, unitsPerSecond } = this.#envelope;
    this.#level = Math.min(burstUnits, this.#level + ((atMs - this.#atMs) * unitsPerSecond) / 1_000);
    this.#atMs = atMs;
  }
}

/**
 * The largest excess over a fixed window's quota. What was admitted within a round trip of an edge may have been counted on either side of
 * it, and is taken to fill the earlier window first; where several owners are asked, one after the other, within as many.
 */
export class WindowExcess {
  readonly #quota: number;
  readonly #windowMs: number;
  readonly #slackMs: number;
  #window = Number.NEGATIVE_INFINITY;
  #used = 0;
  #usedBefore = 0;
  #worst = 0;

  constructor({ quota, windowMs }: Limit, slackMs: number) {
    this.#quota = quota;
    this.#windowMs = windowMs;
    this.#slackMs = slackMs;
  }

  get worst(): number {
    return this.#worst;
  }

  admitted(units: number, atMs: number, owners = 1): void {
    const window = Math.floor(atMs / this.#windowMs);
    if (window > this.#window) {
      this.#usedBefore = window === this.#window + 1 ? this.#used : 0;
      this.#used = 0;
    }
    // A clock that was set back takes its count with it.
    this.#window = window;
    const isAtEdge = Math.floor((atMs - owners * this.#slackMs) / this.#windowMs) < window;
    if (isAtEdge && this.#usedBefore + units <= this.#quota) this.#usedBefore += units;
    else this.#used += units;
    this.#worst = Math.max(this.#worst, this.#used - this.#quota);
  }
}

/** The largest excess of requests in progress over so many at once, at any instant. */
export class SlotsExcess {
  readonly #quota: number;
  #live = 0;
  #worst = 0;

  constructor({ quota }: Limit) {
    this.#quota = quota;
  }

  get worst(): number {
    return this.#worst;
  }

  admitted(): void {
    this.#live += 1;
    this.#worst = Math.max(this.#worst, this.#live - this.#quota);
  }

  ended(): void {
    this.#live -= 1;
  }
}
