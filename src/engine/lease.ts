/**
 * A lease as its holder has it: a small bucket of its own, cut out of the owner's.
 *
 * The owner has taken the units in it, the rate at which it refills and the room that it fills up to off its own bucket, so whatever
 * holders do, all buckets together are never more than the one they were cut from. The holder spends without asking; what would
 * overflow is kept aside and returned with the next message, since nobody else could spend it. The lease runs from when the holder
 * *sent* its question, so it ends before the owner takes it for ended; what is unspent then is lost, never doubled.
 */

/** What an owner grants: added to what the holder has, and in force at once. */
export interface LeaseGrant {
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
  /** Units in hand. */
  readonly held: number;
  /** Units that are not in hand any more, and are the owner's again. */
  readonly returned: number;
  /** Units spent since the last report: what shadow counters are charged. */
  readonly spent: number;
  /** The holder has given the lease up and wants no other. */
  readonly isFinal: boolean;
}

/** What a holder says that has no lease yet. */
export const NO_LEASE: LeaseReport = { incarnation: '', held: 0, returned: 0, spent: 0, isFinal: false };

/** A unit in hand that rounding has made a billionth too small is a unit. */
const ROUNDING = 1e-9;

export class HeldLease {
  readonly #incarnation: string;
  #held = 0;
  #overflow = 0;
  #spent = 0;
  #unitsPerMs = 0;
  #capacity = 0;
  #atMs = 0;
  #endsAtMs = 0;
  #renewAtMs = 0;
  #isScarce = false;
  #grants = 0;

  constructor(incarnation: string) {
    this.#incarnation = incarnation;
  }

  get incarnation(): string {
    return this.#incarnation;
  }

  /** How many grants it is made of: whoever waits for it to end sees by this that it has been renewed. */
  get grants(): number {
    return this.#grants;
  }

  get endsAtMs(): number {
    return this.#endsAtMs;
  }

  isOver(nowMs: number): boolean {
    return nowMs >= this.#endsAtMs;
  }

  /** Whether a holder without units has to deny by itself. */
  isScarce(nowMs: number): boolean {
    return this.#isScarce && !this.isOver(nowMs);
  }

  held(nowMs: number): number {
    this.#settle(nowMs);
    return this.#held;
  }

  /**
   * Whether to ask for more: when the owner said so; and, while there is plenty, as soon as what is in hand would not last for
   * `soonMs` at this demand.
   */
  wantsRenewal(
    { unitsPerSecond, soonMs }: { unitsPerSecond: number; soonMs: number },
    nowMs: number,
  ): boolean {
    if (nowMs >= this.#renewAtMs) return true;
    if (this.#isScarce) return false;
    return this.held(nowMs) < (unitsPerSecond / 1_000 - this.#unitsPerMs) * soonMs;
  }

  /** The rules have changed: what it was granted under may not hold any more, so ask at once. */
  hurry(): void {
    this.#renewAtMs = Number.NEGATIVE_INFINITY;
    this.#isScarce = false;
  }

  /** Adds a grant to what is in hand. `sentMs` is when its question was sent, `delayMs` spreads the renewals of many holders. */
  accept(
    grant: LeaseGrant,
    { sentMs, nowMs, delayMs }: { sentMs: number; nowMs: number; delayMs: number },
  ): void {
    this.#settle(nowMs);
    if (this.isOver(nowMs)) this.#atMs = nowMs;
    this.#held += grant.units;
    this.#unitsPerMs = grant.unitsPerMs;
    this.#capacity = grant.capacity;
    this.#endsAtMs = sentMs + grant.lifeMs;
    this.#renewAtMs = nowMs + grant.renewInMs + delayMs;
    this.#isScarce = grant.isScarce;
    this.#grants += 1;
    this.#spill();
  }

  /** Spends `cost` units if they are in hand. */
  take(cost: number, nowMs: number): boolean {
    this.#settle(nowMs);
    if (this.#held + ROUNDING < cost) return false;
    this.#held = Math.max(0, this.#held - cost);
    this.#spent += cost;
    return true;
  }

  /** The request that took them was denied elsewhere. */
  giveBack(cost: number, nowMs: number): void {
    this.#settle(nowMs);
    if (this.isOver(nowMs)) return;
    this.#held += cost;
    this.#spent -= cost;
    this.#spill();
  }

  /** How long until `cost` units are in hand if nothing more is spent; at least until the next renewal when they never will be. */
  waitMs(cost: number, nowMs: number): number {
    const missing = cost - this.held(nowMs);
    const renewInMs = Math.max(1, this.#renewAtMs - nowMs);
    return this.#unitsPerMs > 0 ? Math.max(1, missing / this.#unitsPerMs) : renewInMs;
  }

  /** What to tell the owner. Returned units leave the lease here, before the message does. */
  report(nowMs: number, isFinal = false): LeaseReport {
    this.#settle(nowMs);
    const report = {
      incarnation: this.#incarnation,
      held: this.#held,
      returned: this.#overflow,
      spent: Math.max(0, this.#spent),
      isFinal,
    };
    this.#overflow = 0;
    this.#spent = 0;
    return report;
  }

  /** Like `report`, and nothing stays in hand. */
  surrender(nowMs: number): LeaseReport {
    this.#settle(nowMs);
    this.#overflow += this.#held;
    this.#held = 0;
    this.#capacity = 0;
    this.#unitsPerMs = 0;
    const report = this.report(nowMs, true);
    this.#endsAtMs = nowMs;
    return report;
  }

  #settle(nowMs: number): void {
    const untilMs = Math.min(nowMs, this.#endsAtMs);
    if (untilMs > this.#atMs) {
      this.#held += (untilMs - this.#atMs) * this.#unitsPerMs;
      this.#atMs = untilMs;
      this.#spill();
    }
    if (!this.isOver(nowMs)) return;
    this.#held = 0;
    this.#overflow = 0;
  }

  #spill(): void {
    const over = this.#held - this.#capacity;
    if (over <= 0) return;
    this.#held = this.#capacity;
    this.#overflow += over;
  }
}
