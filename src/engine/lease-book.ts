/**
 * What an owner has lent of one counter, and what that leaves in its own bucket.
 *
 * Lending takes three things out of the counter's bucket: units at once, a part of the rate for as long as the lease lasts, and room
 * to fill up. So the bucket that is left refills at (rate - what is lent of it) up to (burst - what is lent of it), and all
 * buckets together never hold more than the one they came from, whatever holders do or fail to do. A lease that is not renewed ends
 * by itself; its units count as spent.
 */
import { available, charge, giveBack } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { type Counter, nowMsFor } from './counters.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';

/** As many as an owner hears of (`engine/demand`); a holder beyond that asks for each request. */
const LEASES_MAX = 4_096;

interface Lease {
  readonly unitsPerMs: number;
  readonly capacity: number;
  /** On the owner's logical clock. */
  readonly grantedAtMs: number;
  readonly endsAtMs: number;
}

const NOTHING: Lease = { unitsPerMs: 0, capacity: 0, grantedAtMs: 0, endsAtMs: Number.NEGATIVE_INFINITY };

/** The lent part that an eviction must not forget, as one lease: nobody can renew it, so it ends by itself. */
export interface StoredLease {
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
}

export class LeaseBook {
  /** In order of the last grant. Lives are much alike, so the ones that end first stand in front. */
  readonly #leases = new Map<string, Lease>();
  #unitsPerMs = 0;
  #capacity = 0;
  #settledAtMs: number;

  constructor(nowMs: number, stored?: StoredLease) {
    this.#settledAtMs = nowMs;
    if (stored !== undefined) this.#put('', { ...stored, grantedAtMs: nowMs });
  }

  get isEmpty(): boolean {
    return this.#leases.size === 0;
  }

  /** Until the last lease ends; 0 when none is out. */
  endsInMs(nowMs: number): number {
    let latestMs = 0;
    for (const { endsAtMs } of this.#leases.values()) latestMs = Math.max(latestMs, endsAtMs - nowMs);
    return latestMs;
  }

  stored(nowMs: number): StoredLease | undefined {
    if (this.isEmpty) return undefined;
    return { unitsPerMs: this.#unitsPerMs, capacity: this.#capacity, endsAtMs: nowMs + this.endsInMs(nowMs) };
  }

  /** Brings the counter's own bucket forward to now: it refills more slowly, and to a lower brim. */
  settle(counter: Counter, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    const { limit } = counter;
    if (limit.algorithm === 'token_bucket' && !this.isEmpty && nowMs > this.#settledAtMs) {
      const before = available(limit, counter.state, this.#settledAtMs);
      const refill = (nowMs - this.#settledAtMs) * (limit.quota / limit.windowMs - this.#unitsPerMs);
      const level = Math.min(limit.burst - this.#capacity, before + refill);
      counter.state = charge(limit, undefined, limit.burst - level, nowMs);
    }
    this.#settledAtMs = nowMs;
    this.#endLeases(nowMs);
  }

  hasRoomFor(key: string): boolean {
    return this.#leases.has(key) || this.#leases.size < LEASES_MAX;
  }

  /** The holder has given its lease up. */
  end(key: string): void {
    this.#remove(key);
  }

  lentToOthers(key: string): { unitsPerMs: number; capacity: number } {
    const { unitsPerMs, capacity } = this.#leases.get(key) ?? NOTHING;
    return { unitsPerMs: this.#unitsPerMs - unitsPerMs, capacity: this.#capacity - capacity };
  }

  /** The holder's units come back; never more than its lease can have held, and nothing from a lease that has ended. */
  takeBack(counter: Counter, key: string, report: LeaseReport, clock: LogicalClock): void {
    const lease = this.#leases.get(key);
    if (lease === undefined || !(report.returned > 0)) return;
    const heldMax = lease.capacity + (clock.logicalMs - lease.grantedAtMs) * lease.unitsPerMs;
    const { limit, state } = counter;
    const nowMs = nowMsFor(limit, clock);
    const past = { cost: Math.min(report.returned, heldMax), chargedAtMs: nowMs };
    counter.state = giveBack(limit, state, past, nowMs);
    this.#keepBrim(counter, nowMs);
  }

  /** Puts the holder's lease under these terms. */
  lend(counter: Counter, key: string, grant: LeaseGrant, clock: LogicalClock): void {
    const { limit, state } = counter;
    const nowMs = nowMsFor(limit, clock);
    counter.state = charge(limit, state, grant.units, nowMs);
    const { logicalMs } = clock;
    this.#put(key, { ...grant, grantedAtMs: logicalMs, endsAtMs: logicalMs + grant.lifeMs });
    this.#keepBrim(counter, nowMs);
  }

  /** What was lent of the brim cannot be in the bucket. */
  #keepBrim(counter: Counter, nowMs: number): void {
    const { limit, state } = counter;
    if (limit.algorithm !== 'token_bucket') return;
    const over = available(limit, state, nowMs) - (limit.burst - this.#capacity);
    if (over > 0) counter.state = charge(limit, state, over, nowMs);
  }

  #put(key: string, lease: Lease): void {
    this.#remove(key);
    this.#leases.set(key, lease);
    this.#unitsPerMs += lease.unitsPerMs;
    this.#capacity += lease.capacity;
  }

  #remove(key: string): void {
    const lease = this.#leases.get(key);
    if (lease === undefined) return;
    this.#leases.delete(key);
    // Sums of many parts keep a rounding error; an empty book has none.
    const isLast = this.#leases.size === 0;
    this.#unitsPerMs = isLast ? 0 : Math.max(0, this.#unitsPerMs - lease.unitsPerMs);
    this.#capacity = isLast ? 0 : Math.max(0, this.#capacity - lease.capacity);
  }

  #endLeases(nowMs: number): void {
    for (const [key, { endsAtMs }] of this.#leases) {
      if (endsAtMs > nowMs) return;
      this.#remove(key);
    }
  }
}
