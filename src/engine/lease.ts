/**
 * A lease as its holder has it: a small bucket of its own, cut out of the owner's.
 *
 * The owner has taken the units in it, the rate at which it refills and the room that it fills up to off its own bucket, so whatever
 * holders do, all buckets together are never more than the one they were cut from. The holder spends without asking; what would
 * overflow is kept aside and returned with the next message, since nobody else could spend it. The lease runs from when the holder
 * *sent* its question, so it ends before the owner takes it for ended; what is unspent then is lost, never doubled.
 *
 * Replies may be late, lost or out of order, so grants are numbered and the holder goes by the newest that it has; its reports say which.
 * With each report it promises to go by that one no longer than it waits for an answer. Until then the owner counts on whichever is
 * more of what it lent before and lends now, and the holder goes by that too: rate that one counts and the other does not is lost to all.
 */

import { Overflow, type Returned } from './overflow.ts';

/** What an owner grants: added to what the holder has, and in force at once. */
export interface LeaseGrant {
  /** In the order in which one life of an owner grants. */
  readonly number: number;
  /** Units to spend now, beside those in hand. */
  readonly units: number;
  /** How fast the lease refills. */
  readonly unitsPerMs: number;
  /** What the lease can hold. */
  readonly capacity: number;
  readonly lifeMs: number;
  /** When to ask again, counted from the reply. */
  readonly renewInMs: number;
  /** All that is left is shared out: when the lease is empty, deny, and do not ask before it is to be renewed. */
  readonly isScarce: boolean;
}

/** What a holder says of the lease in hand when it asks for another. */
export interface LeaseReport {
  /** The life of the owner that granted it; another life knows nothing of it. */
  readonly incarnation: string;
  /** The newest grant that has come; 0 for none. */
  readonly number: number;
  /** Units in hand; in a final report those that were. */
  readonly held: number;
  /** Units that overflowed, and are the owner's again if it had room for them. */
  readonly returned: readonly Returned[];
  /** Units spent since the last report: what shadow counters are charged. */
  readonly spent: number;
  /** The dearest request since the last report, which is what the lease should have room for. */
  readonly largestCost: number;
  /** For how long the holder waits for an answer, and goes on with what it has if no newer grant comes. A first lease is as long as that asks for. */
  readonly patienceMs: number;
  /** The rate that the holder goes by from now on, where it has given up a part of what it was lent. */
  readonly unitsPerMs?: number;
  /** The holder has given the lease up and wants no other. */
  readonly isFinal: boolean;
  /** It has seen one request, and asks because the limit is high: it is worth lending to only if many ask like that at once. */
  readonly isTentative?: boolean;
}

/** What a holder says that has no lease yet. */
export const NO_LEASE: LeaseReport = {
  incarnation: '',
  number: 0,
  held: 0,
  returned: [],
  spent: 0,
  largestCost: 0,
  patienceMs: 0,
  isFinal: false,
};

/** A unit in hand that rounding has made a billionth too small is a unit. */
const ROUNDING = 1e-9;

/** A lease that refills so many times faster than it is asked for is too large: what overflows here is missing elsewhere. */
const TOO_FAST = 1.5;

/** Of such a one the holder gives up what is more than so many times what it is asked for. */
const KEPT = 1.1;

/** Not before a grant has been in hand for so long: what was asked for just before it says little. */
const RENEWAL_MS_MIN = 50;

/** When an answer that brings a grant was asked for and has come; `delayMs` spreads the renewals of many holders. */
export interface Arrival {
  readonly sentMs: number;
  readonly nowMs: number;
  readonly delayMs: number;
}

export interface Reporting {
  /** How long the owner usually takes to answer, and how long the holder waits for that. */
  readonly usualMs: number;
  readonly patienceMs: number;
  /** The demand; infinite where the holder wants to keep what it has. */
  readonly unitsPerSecond: number;
}

export class HeldLease {
  readonly #incarnation: string;
  #number = 0;
  #held = 0;
  readonly #overflow = new Overflow();
  #spent = 0;
  #largestCost = 0;
  #unitsPerMs = 0;
  #capacity = 0;
  /** What an earlier grant lent beside `#unitsPerMs`, and until when the owner counts it. */
  #surplusPerMs = 0;
  #surplusUntilMs = 0;
  #atMs = 0;
  #beganAtMs = 0;
  #endsAtMs = 0;
  #renewAtMs = 0;
  #renewedAtMs = 0;
  #isScarce = false;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  get incarnation(): string {
    return this.#incarnation;
  }

  /** The newest grant: whoever waits for the lease to end sees by this that it has been renewed. */
  get number(): number {
    return this.#number;
  }

  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#endsAtMs;
  }

  held(nowMs: number): number {
    this.#settle(nowMs);
    return this.#held;
  }

  /** Units spent that the owner has not been told of. */
  get spent(): number {
    return this.#spent;
  }

  /** Whether a request that finds too little has to be denied here: all is shared out, and there is room for its cost. */
  isScarceFor(cost: number, nowMs: number): boolean {
    return this.#isScarce && !this.isOver(nowMs) && cost <= this.#capacity + ROUNDING;
  }

  /**
   * Whether to ask again: when the owner said so, and `soonMs` before the lease ends; when the lease is much too large; and, while there is
   * plenty, as soon as what is in hand would not last for `soonMs` at this demand.
   */
  wantsRenewal(
    { unitsPerSecond, soonMs }: { unitsPerSecond: number; soonMs: number },
    nowMs: number,
  ): boolean {
    const mayAsk = nowMs >= this.#renewedAtMs + RENEWAL_MS_MIN;
    if (nowMs >= this.#renewAtMs || (mayAsk && nowMs >= this.#endsAtMs - soonMs)) return true;
    if (mayAsk && this.#isTooFast(unitsPerSecond)) return true;
    if (this.#isScarce) return false;
    return this.held(nowMs) < (unitsPerSecond / 1_000 - this.#unitsPerMs) * soonMs;
  }

  /** The rules have changed: what it was granted under may not hold any more, so ask at once. */
  hurry(): void {
    this.#renewAtMs = Number.NEGATIVE_INFINITY;
    this.#isScarce = false;
  }

  /** Adds a grant to what is in hand. One that was overtaken by a newer one brings its units and nothing else, and the newest again nothing. */
  accept(grant: LeaseGrant, { sentMs, nowMs, delayMs }: Arrival): void {
    this.#settle(nowMs);
    if (grant.number <= this.#number) {
      if (!this.isOver(nowMs) && grant.number < this.#number) this.#held += grant.units;
      this.#spill();
      return;
    }
    if (this.isOver(nowMs)) this.#begin(nowMs);
    else this.#keepSurplus(grant.unitsPerMs);
    this.#number = grant.number;
    this.#held += grant.units;
    this.#unitsPerMs = grant.unitsPerMs;
    this.#capacity = grant.capacity;
    this.#endsAtMs = sentMs + grant.lifeMs;
    this.#renewAtMs = nowMs + grant.renewInMs + delayMs;
    this.#renewedAtMs = nowMs;
    this.#isScarce = grant.isScarce;
    this.#spill();
  }

  /** Spends `cost` units if they are in hand. */
  take(cost: number, nowMs: number): boolean {
    this.#settle(nowMs);
    this.#largestCost = Math.max(this.#largestCost, cost);
    if (this.#held + ROUNDING < cost) return false;
    this.#held = Math.max(0, this.#held - cost);
    this.#spent += cost;
    return true;
  }

  /** The request that took them was denied elsewhere. Units of a lease that has ended since are gone. */
  giveBack(cost: number, { takenMs, nowMs }: { takenMs: number; nowMs: number }): void {
    this.#settle(nowMs);
    this.#spent -= cost;
    if (this.isOver(nowMs) || takenMs < this.#beganAtMs) return;
    this.#held += cost;
    this.#spill();
  }

  /** How long until `cost` units are in hand if nothing more is spent; at least until the next renewal when they never will be. */
  waitMs(cost: number, nowMs: number): number {
    const missing = cost - this.held(nowMs);
    const renewInMs = Math.max(1, this.#renewAtMs - nowMs);
    return this.#unitsPerMs > 0 ? Math.max(1, missing / this.#unitsPerMs) : renewInMs;
  }

  /** What to tell the owner. Returned units leave the lease here, before the message does. */
  report(nowMs: number, reporting: Reporting): LeaseReport {
    const given = this.#giveUp(reporting.unitsPerSecond, nowMs) ? { unitsPerMs: this.#unitsPerMs } : {};
    return { ...this.#report(nowMs, { ...reporting, isFinal: false }), ...given };
  }

  /** A final report: what is in hand is the owner's again, and so is everything else. */
  surrender(nowMs: number, usualMs: number): LeaseReport {
    const report = this.#report(nowMs, { usualMs, patienceMs: 0, isFinal: true });
    this.#held = 0;
    return report;
  }

  #report(
    nowMs: number,
    { usualMs, patienceMs, isFinal }: Omit<Reporting, 'unitsPerSecond'> & { readonly isFinal: boolean },
  ): LeaseReport {
    this.#settle(nowMs);
    const report = {
      incarnation: this.#incarnation,
      number: this.#number,
      held: this.#held,
      returned: this.#overflow.take(nowMs, usualMs),
      spent: Math.max(0, this.#spent),
      largestCost: this.#largestCost,
      patienceMs,
      isFinal,
    };
    this.#endsAtMs = Math.min(this.#endsAtMs, nowMs + patienceMs);
    // What was given back after it was reported as spent makes the next report smaller.
    this.#spent = Math.min(0, this.#spent);
    this.#largestCost = 0;
    // The owner stops counting it when it hears of the newest grant.
    this.#surplusPerMs = 0;
    return report;
  }

  /** Gives up the rate that is too much, so that the owner may lend it on as soon as it hears of it, and not when it knows that its answer came. */
  #giveUp(unitsPerSecond: number, nowMs: number): boolean {
    if (!this.#isTooFast(unitsPerSecond)) return false;
    this.#settle(nowMs);
    this.#unitsPerMs = (KEPT * unitsPerSecond) / 1_000;
    return true;
  }

  #isTooFast(unitsPerSecond: number): boolean {
    return this.#unitsPerMs * 1_000 > TOO_FAST * unitsPerSecond;
  }

  #begin(nowMs: number): void {
    this.#atMs = nowMs;
    this.#beganAtMs = nowMs;
    this.#surplusPerMs = 0;
  }

  /** The newest grant lends so much; what an earlier one lent beyond it may still be gone by for a while. */
  #keepSurplus(unitsPerMs: number): void {
    if (this.#unitsPerMs > unitsPerMs) {
      this.#surplusPerMs = this.#unitsPerMs - unitsPerMs;
      this.#surplusUntilMs = this.#endsAtMs;
    } else {
      this.#surplusPerMs = Math.max(0, this.#unitsPerMs + this.#surplusPerMs - unitsPerMs);
    }
  }

  #settle(nowMs: number): void {
    const untilMs = Math.min(nowMs, this.#endsAtMs);
    this.#refill(Math.min(untilMs, this.#surplusUntilMs), this.#unitsPerMs + this.#surplusPerMs);
    this.#refill(untilMs, this.#unitsPerMs);
    if (!this.isOver(nowMs)) return;
    this.#held = 0;
    this.#overflow.clear();
  }

  /** Lets time pass at an even rate; what comes in once the lease is full overflows as evenly. */
  #refill(untilMs: number, unitsPerMs: number): void {
    const passedMs = untilMs - this.#atMs;
    if (passedMs <= 0) return;
    this.#held += passedMs * unitsPerMs;
    this.#atMs = untilMs;
    const over = this.#held - this.#capacity;
    if (over > 0) this.#spill(untilMs - Math.min(passedMs, over / unitsPerMs));
  }

  /** What there is no room for is kept aside, to be returned; it began to overflow at `sinceMs`. */
  #spill(sinceMs = this.#atMs): void {
    const over = this.#held - this.#capacity;
    if (over <= 0) return;
    this.#held = this.#capacity;
    this.#overflow.add(over, sinceMs, this.#atMs);
  }
}
