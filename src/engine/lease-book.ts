/**
 * What an owner has lent of one counter, and what that leaves in its own bucket.
 *
 * Lending takes three things out of the counter's bucket: units at once, a part of the rate for as long as the lease lasts, and room
 * to fill up. So the bucket that is left refills at (rate - what is lent of it) up to (burst - what is lent of it), and all
 * buckets together never hold more than the one they came from, whatever holders do or fail to do. A lease that is not renewed ends
 * by itself; its units count as spent.
 *
 * A holder goes by an earlier grant until the reply with the new one has come, which it may never do. So where a renewal lends less than
 * before, the difference counts as lent until the holder says that it goes by the new one, or has promised not to go by the old one.
 */
import { type CounterState, charge, giveBack, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Limit } from '../core/decision.ts';
import { fullAtMsOf, unitMsOf } from './bucket-level.ts';
import { bounded, type Grants, keptOf, type Part, surplusOf } from './granted.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';
import type { LentNow } from './messages.ts';
import { Newcomers } from './newcomers.ts';
import { RoomHistory } from './room-history.ts';

/** As many as an owner hears of (`engine/demand`); a holder beyond that asks for each request. */
const LEASES_MAX = 4_096;

/** What a book is about: the counter that is lent of. */
export interface LentCounter {
  readonly limit: Limit;
  state: CounterState | undefined;
}

interface Lease {
  readonly grants: Grants;
  /** What the newest grant lends. */
  readonly part: Part;
  /** What earlier grants lent beyond that. */
  readonly surplus: Part | undefined;
}

/** The lent part that an eviction must not forget, as one lease: nobody can renew it, so it ends by itself. */
export interface StoredLease {
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
  /** Up to when the bucket's state takes into account that it is lent. */
  readonly settledAtMs: number;
  /** Leases that their holders go on with, whatever becomes of the owner; they are no part of the one. */
  readonly kept?: readonly (readonly [holder: string, lease: KeptLease])[];
}

export interface KeptLease {
  readonly number: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
}

export class LeaseBook {
  readonly newcomers = new Newcomers();
  readonly #leases = new Map<string, Lease>();
  readonly #parts = new Set<Part>();
  #unitsPerMs = 0;
  #capacity = 0;
  /** No part ends before. */
  #soonestEndMs = Number.POSITIVE_INFINITY;
  /** All that was ever lent has ended by then. */
  #latestEndMs = Number.NEGATIVE_INFINITY;
  #settledAtMs: number;
  readonly #room = new RoomHistory();

  constructor(nowMs: number, stored?: StoredLease) {
    this.#settledAtMs = stored?.settledAtMs ?? nowMs;
    if (stored === undefined) return;
    const { unitsPerMs, capacity, endsAtMs, kept = [] } = stored;
    if (unitsPerMs > 0 || capacity > 0) this.#add({ key: '', unitsPerMs, capacity, endsAtMs });
    for (const [holder, lease] of kept)
      this.#put(holder, [{ ...lease, units: 0, grantedAtMs: nowMs }], nowMs);
  }

  get isEmpty(): boolean {
    return this.#parts.size === 0;
  }

  /** How long until the counter says nothing, its state being that of one that would be full in `fullInMs` if nothing were lent. */
  restInMs(limit: Limit, { fullInMs, nowMs }: { fullInMs: number; nowMs: number }): number {
    const endsInMs = this.#latestEndMs - nowMs;
    if (!isLentBucket(limit)) return Math.max(fullInMs, endsInMs);
    // While it is lent the bucket may not refill at all.
    return Math.max(fullInMs, endsInMs + Math.max(0, nowMs + fullInMs - this.#settledAtMs));
  }

  /** `isKept` says whose leases are to be kept one by one. */
  stored(isKept: (holder: string) => boolean = () => false): StoredLease | undefined {
    if (this.isEmpty) return undefined;
    const kept: [string, KeptLease][] = [];
    let [unitsPerMs, capacity] = [this.#unitsPerMs, this.#capacity];
    for (const [holder, lease] of this.#leases) {
      if (!isKept(holder)) continue;
      const { number, endsAtMs } = lease.grants.at(-1) ?? lease.grants[0];
      const sum = sumOf(lease);
      kept.push([holder, { number, endsAtMs, ...sum }]);
      unitsPerMs = Math.max(0, unitsPerMs - sum.unitsPerMs);
      capacity = Math.max(0, capacity - sum.capacity);
    }
    const times = { endsAtMs: this.#latestEndMs, settledAtMs: this.#settledAtMs };
    return { unitsPerMs, capacity, ...times, ...(kept.length > 0 && { kept }) };
  }

  /** Brings the counter's own bucket forward to now: while parts of it are lent it refills more slowly, and to a lower brim. */
  settle(counter: LentCounter, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    if (nowMs >= this.#soonestEndMs) {
      const ended = [...this.#parts].filter(({ endsAtMs }) => endsAtMs <= nowMs);
      for (const part of ended.sort((one, other) => one.endsAtMs - other.endsAtMs)) {
        this.#pass(counter, part.endsAtMs);
        this.#end(part);
      }
      this.#soonestEndMs = Number.POSITIVE_INFINITY;
      for (const { endsAtMs } of this.#parts) this.#soonestEndMs = Math.min(this.#soonestEndMs, endsAtMs);
    }
    this.#pass(counter, nowMs);
  }

  /** The counter has been put under other numbers, with a level to match: what is lent of its room is not in it. */
  refitted(counter: LentCounter, { logicalMs }: LogicalClock): void {
    this.#keepBrim(counter, logicalMs);
  }

  hasRoomFor(key: string): boolean {
    return this.#leases.has(key) || this.#leases.size < LEASES_MAX;
  }

  /** All that is lent, and for how long that goes on at most. */
  lentNow(nowMs: number): LentNow {
    const endsInMs = this.isEmpty ? 0 : Math.max(0, this.#latestEndMs - nowMs);
    return { unitsPerMs: this.#unitsPerMs, capacity: this.#capacity, endsInMs };
  }

  /** The rate of the holder's newest grant. */
  unitsPerMsOf(key: string): number {
    return this.#leases.get(key)?.part.unitsPerMs ?? 0;
  }

  lentToOthers(key: string): { unitsPerMs: number; capacity: number } {
    const lease = this.#leases.get(key);
    const own = lease === undefined ? NOTHING : sumOf(lease);
    return {
      unitsPerMs: Math.max(0, this.#unitsPerMs - own.unitsPerMs),
      capacity: Math.max(0, this.#capacity - own.capacity),
    };
  }

  /**
   * The holder's units come back: never more than its lease can have held, nothing from a lease that has ended, and nothing from a report
   * that was overtaken by another. A final report ends the lease, unless there is a newer grant that the holder has yet to hear of.
   */
  hear(counter: LentCounter, key: string, report: LeaseReport, clock: LogicalClock): void {
    const lease = this.#leases.get(key);
    if (lease === undefined || report.number < lease.grants[0].number) return;
    const { logicalMs } = clock;
    this.#takeBack(counter, lease, report, clock);
    const [oldest, ...newer] = lease.grants
      .filter(({ number }) => number >= report.number)
      .map((grant) => (grant.number > report.number ? grant : keptOf(report, grant, logicalMs)));
    if (oldest !== undefined) this.#put(key, [oldest, ...newer], logicalMs);
    if (report.isFinal && newer.length === 0) this.#end(this.#leases.get(key)?.part ?? lease.part);
    this.#keepBrim(counter, logicalMs);
  }

  /** The holder goes by a grant that is not known here any more: it is what the holder says, in place of what is known. */
  recall(
    key: string,
    number: number,
    { unitsPerMs, capacity, endsInMs }: LentNow,
    { logicalMs }: LogicalClock,
  ): void {
    const newest = this.#leases.get(key)?.grants.at(-1);
    if (newest !== undefined && newest.number >= number) return;
    const times = { grantedAtMs: logicalMs, endsAtMs: logicalMs + endsInMs };
    this.#put(key, [{ number, units: 0, unitsPerMs, capacity, ...times }], logicalMs);
  }

  /** The holder goes by its newest grant; but what it has lent on may be more than that for a while. */
  hearLentOn(key: string, { unitsPerMs, capacity, endsInMs }: LentNow, { logicalMs }: LogicalClock): void {
    const grants = this.#leases.get(key)?.grants;
    if (grants === undefined) return;
    const newest = grants.at(-1) ?? grants[0];
    if (unitsPerMs <= newest.unitsPerMs && capacity <= newest.capacity) return;
    const endsAtMs = Math.min(newest.endsAtMs, logicalMs + endsInMs);
    this.#put(key, [{ ...newest, units: 0, unitsPerMs, capacity, endsAtMs }, ...bounded(grants)], logicalMs);
  }

  /** What was in hand has its place in the room that was lent; what overflowed needs a place of its own. */
  #takeBack(counter: LentCounter, lease: Lease, report: LeaseReport, clock: LogicalClock): void {
    const { logicalMs } = clock;
    const { unitsPerMs, capacity } = sumOf(lease);
    const [{ grantedAtMs }] = lease.grants;
    const granted = lease.grants.reduce((units, grant) => units + grant.units, 0);
    const heldMax = capacity + granted + (logicalMs - grantedAtMs) * unitsPerMs;
    const isPlaced = isLentBucket(counter.limit);
    let overflow = 0;
    for (const { units, agoMs } of report.returned) {
      const believed = Math.min(units, heldMax - overflow);
      overflow += isPlaced ? this.#room.takeIn(believed, logicalMs - agoMs) : believed;
    }
    const cost = overflow + (report.isFinal ? Math.min(report.held, capacity) : 0);
    if (cost === 0) return;
    const { limit, state } = counter;
    const nowMs = nowMsFor(limit, clock);
    counter.state = giveBack(limit, state, { cost, chargedAtMs: nowMs }, nowMs);
  }

  /** Puts the holder's lease under these terms. */
  lend(counter: LentCounter, key: string, grant: LeaseGrant, clock: LogicalClock): void {
    const { limit, state } = counter;
    const { logicalMs } = clock;
    const { number, units, unitsPerMs, capacity, lifeMs } = grant;
    counter.state = charge(limit, state, units, nowMsFor(limit, clock));
    const times = { grantedAtMs: logicalMs, endsAtMs: logicalMs + lifeMs };
    const granted = { number, units, unitsPerMs, capacity, ...times };
    const before = this.#leases.get(key);
    this.#put(key, before === undefined ? [granted] : [...bounded(before.grants), granted], logicalMs);
    this.#keepBrim(counter, logicalMs);
  }

  #put(key: string, grants: Grants, nowMs: number): void {
    const before = this.#leases.get(key);
    this.#remove(before?.part);
    this.#remove(before?.surplus);
    const { unitsPerMs, capacity, endsAtMs } = grants.at(-1) ?? grants[0];
    const part = { key, unitsPerMs, capacity, endsAtMs };
    const surplus = surplusOf(grants, part, nowMs);
    this.#leases.set(key, { grants, part, surplus });
    this.#add(part);
    if (surplus !== undefined) this.#add(surplus);
  }

  /** Lets time pass for the bucket, while the same parts are lent. A bucket's state is the instant at which it would be full. */
  #pass(counter: LentCounter, nowMs: number): void {
    const passedMs = nowMs - this.#settledAtMs;
    if (passedMs <= 0) return;
    const { limit, state } = counter;
    if (isLentBucket(limit) && !this.isEmpty) {
      const fullAtMs = Math.max(this.#settledAtMs, fullAtMsOf(state));
      // Under a lowered limit more may be lent than comes in: then nothing is left, but what others may still spend is no debt.
      const lentPart = Math.min(1, this.#unitsPerMs * unitMsOf(limit));
      counter.state = (fullAtMs + passedMs * lentPart) * 1_000;
      this.#keepBrim(counter, nowMs);
    }
    this.#settledAtMs = nowMs;
  }

  /** What was lent of the brim cannot be in the bucket. Under a lowered limit more may be lent than there is, and then it is empty. */
  #keepBrim(counter: LentCounter, nowMs: number): void {
    const { limit, state } = counter;
    if (!isLentBucket(limit) || this.isEmpty) return;
    const unitMs = unitMsOf(limit);
    const brimAtMs = nowMs + Math.min(this.#capacity, limit.burst) * unitMs;
    const room = (fullAtMsOf(state) - brimAtMs) / unitMs;
    if (room < 0) counter.state = brimAtMs * 1_000;
    this.#room.note(Math.max(0, room), nowMs);
  }

  #add(part: Part): void {
    this.#parts.add(part);
    this.#unitsPerMs += part.unitsPerMs;
    this.#capacity += part.capacity;
    this.#soonestEndMs = Math.min(this.#soonestEndMs, part.endsAtMs);
    this.#latestEndMs = Math.max(this.#latestEndMs, part.endsAtMs);
  }

  #remove(part: Part | undefined): void {
    if (part === undefined || !this.#parts.delete(part)) return;
    // Sums of many parts keep a rounding error; an empty book has none.
    this.#unitsPerMs = this.isEmpty ? 0 : Math.max(0, this.#unitsPerMs - part.unitsPerMs);
    this.#capacity = this.isEmpty ? 0 : Math.max(0, this.#capacity - part.capacity);
  }

  /** The part is the counter's own again; if it was the holder's lease, the holder has none any more. */
  #end(part: Part): void {
    this.#remove(part);
    const lease = this.#leases.get(part.key);
    if (lease?.part === part) this.#leases.delete(part.key);
    if (lease?.surplus === part) this.#leases.set(part.key, { ...lease, surplus: undefined });
  }
}

const NOTHING = { unitsPerMs: 0, capacity: 0 };

/** All that the holder may have of the rate and the room. */
function sumOf({ part, surplus }: Pick<Lease, 'part' | 'surplus'>): typeof NOTHING {
  return {
    unitsPerMs: part.unitsPerMs + (surplus?.unitsPerMs ?? 0),
    capacity: part.capacity + (surplus?.capacity ?? 0),
  };
}

function isLentBucket({ algorithm, quota }: Limit): boolean {
  return algorithm === 'token_bucket' && quota > 0;
}
