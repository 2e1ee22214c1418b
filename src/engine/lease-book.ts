/**
 * What an owner has lent of one counter, and what that leaves in its own bucket.
 *
 * Lending takes three things out of the counter's bucket: units at once, a part of the rate for as long as the lease lasts, and room
 * to fill up. So the bucket that is left refills at (rate - what is lent of it) up to (burst - what is lent of it), and all
 * buckets together never hold more than the one they came from, whatever holders do or fail to do. A lease that is not renewed ends
 * by itself; its units count as spent.
 *
 * A holder goes by an earlier grant until the reply with the new one has come, which it may never do. So where a renewal lends less than
 * before, the difference counts as lent until the holder has said that it goes by the new one, or would have ended anyway.
 *
 * What overflowed in a holder's hands comes back late. It would have gone into the owner's bucket if there had been room for it then, so
 * no more of it is taken back than there has been room for all the while.
 */
import { charge, giveBack } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Limit } from '../core/decision.ts';
import { type Counter, nowMsFor } from './counters.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';

/** As many as an owner hears of (`engine/demand`); a holder beyond that asks for each request. */
const LEASES_MAX = 4_096;

/** An isolate has a few questions in flight at most that may bring a grant (`engine/owners`). */
const ROOMS_MAX = 16;

/** A part of the counter that is lent until it ends, on the owner's logical clock. */
interface Part {
  readonly key: string;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
}

interface Lease {
  readonly number: number;
  readonly part: Part;
  /** What earlier grants lent beyond this one, while the holder may still go by them. */
  readonly surplus: Part | undefined;
  readonly grantedAtMs: number;
  /** Units granted that the holder has not said it has; it may report that it holds none while they are on their way. */
  readonly unitsOnTheirWay: number;
  /** The newest grant that the holder has said it goes by, and the newest that it had said so of before. */
  readonly heardNumber: number;
  readonly heardBefore: number;
  /** From the grant `heardBefore` on, in order. */
  readonly rooms: Room[];
}

/** The least room that the owner's bucket has had since it made this grant. */
interface Room {
  readonly number: number;
  least: number;
}

/** The lent part that an eviction must not forget, as one lease: nobody can renew it, so it ends by itself. */
export interface StoredLease {
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
  /** Up to when the bucket's state takes into account that it is lent. */
  readonly settledAtMs: number;
}

export class LeaseBook {
  readonly #leases = new Map<string, Lease>();
  readonly #parts = new Set<Part>();
  #unitsPerMs = 0;
  #capacity = 0;
  /** No part ends before. */
  #soonestEndMs = Number.POSITIVE_INFINITY;
  /** All that was ever lent has ended by then. */
  #latestEndMs = Number.NEGATIVE_INFINITY;
  #settledAtMs: number;

  constructor(nowMs: number, stored?: StoredLease) {
    this.#settledAtMs = stored?.settledAtMs ?? nowMs;
    if (stored !== undefined) this.#add({ ...stored, key: '' });
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

  stored(): StoredLease | undefined {
    if (this.isEmpty) return undefined;
    const [unitsPerMs, capacity, settledAtMs] = [this.#unitsPerMs, this.#capacity, this.#settledAtMs];
    return { unitsPerMs, capacity, endsAtMs: this.#latestEndMs, settledAtMs };
  }

  /** Brings the counter's own bucket forward to now: while parts of it are lent it refills more slowly, and to a lower brim. */
  settle(counter: Counter, clock: LogicalClock): void {
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

  hasRoomFor(key: string): boolean {
    return this.#leases.has(key) || this.#leases.size < LEASES_MAX;
  }

  lentToOthers(key: string): { unitsPerMs: number; capacity: number } {
    const lease = this.#leases.get(key);
    const [part, surplus] = [lease?.part ?? NOTHING, lease?.surplus ?? NOTHING];
    return {
      unitsPerMs: Math.max(0, this.#unitsPerMs - part.unitsPerMs - surplus.unitsPerMs),
      capacity: Math.max(0, this.#capacity - part.capacity - surplus.capacity),
    };
  }

  /** Units that the holder may have beside those it reports. */
  unitsOnTheirWay(key: string): number {
    return this.#leases.get(key)?.unitsOnTheirWay ?? 0;
  }

  /**
   * The holder's units come back: never more than its lease can have held, nothing from a lease that has ended, and nothing from a report
   * that was overtaken by another. A final report ends the lease, unless there is a newer grant that the holder has yet to hear of.
   */
  hear(counter: Counter, key: string, report: LeaseReport, clock: LogicalClock): void {
    const lease = this.#leases.get(key);
    if (lease === undefined || report.number < lease.heardNumber) return;
    this.#takeBack(counter, lease, report, clock);
    const heard = report.number > lease.heardNumber ? heardOf(lease, report.number) : lease;
    const goesByNewest = report.number === lease.number;
    if (goesByNewest) this.#remove(lease.surplus);
    this.#leases.set(key, goesByNewest ? { ...heard, surplus: undefined, unitsOnTheirWay: 0 } : heard);
    if (goesByNewest && report.isFinal) this.#end(lease.part);
    this.#keepBrim(counter, clock.logicalMs);
    this.#watchRoom(counter, clock.logicalMs);
  }

  /** What was in hand has its place in the room that was lent; what overflowed needs a place of its own. */
  #takeBack(
    counter: Counter,
    lease: Lease,
    { number, held, returned, isFinal }: LeaseReport,
    clock: LogicalClock,
  ): void {
    const { part, surplus = NOTHING, grantedAtMs, unitsOnTheirWay } = lease;
    const capacity = part.capacity + surplus.capacity;
    const refilled = (clock.logicalMs - grantedAtMs) * (part.unitsPerMs + surplus.unitsPerMs);
    const overflow = Math.min(returned, capacity + refilled + unitsOnTheirWay, leastRoom(lease, number));
    // As if it had been there from the beginning: what overflowed in other hands meanwhile finds so much less room.
    if (overflow > 0) this.#eachRoom((room) => Math.max(0, room.least - overflow));
    const cost = overflow + (isFinal ? Math.min(held, capacity) : 0);
    if (cost === 0) return;
    const { limit, state } = counter;
    const nowMs = nowMsFor(limit, clock);
    counter.state = giveBack(limit, state, { cost, chargedAtMs: nowMs }, nowMs);
  }

  /** Puts the holder's lease under these terms. */
  lend(counter: Counter, key: string, grant: LeaseGrant, clock: LogicalClock): void {
    const { limit, state } = counter;
    const { logicalMs } = clock;
    counter.state = charge(limit, state, grant.units, nowMsFor(limit, clock));
    const { unitsPerMs, capacity, number } = grant;
    const before = this.#leases.get(key);
    this.#remove(before?.part);
    this.#remove(before?.surplus);
    const lease = {
      number,
      part: { key, unitsPerMs, capacity, endsAtMs: logicalMs + grant.lifeMs },
      surplus: before && surplusOf(before, grant),
      grantedAtMs: logicalMs,
      unitsOnTheirWay: (before?.unitsOnTheirWay ?? 0) + grant.units,
      // What goes by earlier ones speaks of a lease that has ended.
      heardNumber: before?.heardNumber ?? number,
      heardBefore: before?.heardBefore ?? number,
      rooms: withRoomSince(number, before?.rooms ?? []),
    };
    this.#leases.set(key, lease);
    this.#add(lease.part);
    if (lease.surplus !== undefined) this.#add(lease.surplus);
    this.#keepBrim(counter, logicalMs);
    this.#watchRoom(counter, logicalMs);
  }

  /** Lets time pass for the bucket, while the same parts are lent. A bucket's state is the instant at which it would be full. */
  #pass(counter: Counter, nowMs: number): void {
    const passedMs = nowMs - this.#settledAtMs;
    if (passedMs <= 0) return;
    const { limit, state } = counter;
    if (isLentBucket(limit) && !this.isEmpty) {
      const fullAtMs = Math.max(this.#settledAtMs, fullAtMsOf(state));
      counter.state = (fullAtMs + passedMs * this.#unitsPerMs * unitMsOf(limit)) * 1_000;
      this.#keepBrim(counter, nowMs);
      this.#watchRoom(counter, nowMs);
    }
    this.#settledAtMs = nowMs;
  }

  /** A charge only makes more room, so it is enough to look whenever time has passed or something has come back. */
  #watchRoom(counter: Counter, nowMs: number): void {
    const now = roomIn(counter, this.#capacity, nowMs);
    this.#eachRoom(({ least }) => Math.min(least, now));
  }

  #eachRoom(least: (room: Room) => number): void {
    for (const { rooms } of this.#leases.values()) for (const room of rooms) room.least = least(room);
  }

  /** What was lent of the brim cannot be in the bucket. Under a lowered limit more may be lent than there is, and then it is empty. */
  #keepBrim(counter: Counter, nowMs: number): void {
    const { limit, state } = counter;
    if (!isLentBucket(limit) || this.isEmpty) return;
    const brimAtMs = nowMs + Math.min(this.#capacity, limit.burst) * unitMsOf(limit);
    if (fullAtMsOf(state) < brimAtMs) counter.state = brimAtMs * 1_000;
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

/** How much more than the new grant the holder may be going by; `undefined` when it is nothing. */
function surplusOf({ part, surplus }: Lease, { unitsPerMs, capacity }: LeaseGrant): Part | undefined {
  const more = {
    key: part.key,
    unitsPerMs: Math.max(0, part.unitsPerMs + (surplus?.unitsPerMs ?? 0) - unitsPerMs),
    capacity: Math.max(0, part.capacity + (surplus?.capacity ?? 0) - capacity),
    endsAtMs: Math.max(part.endsAtMs, surplus?.endsAtMs ?? part.endsAtMs),
  };
  return more.unitsPerMs > 0 || more.capacity > 0 ? more : undefined;
}

function isLentBucket({ algorithm, quota }: Limit): boolean {
  return algorithm === 'token_bucket' && quota > 0;
}

/** The holder goes by this grant from now on. */
function heardOf(lease: Lease, number: number): Lease {
  const heardBefore = lease.heardNumber;
  const rooms = lease.rooms.filter((room) => room.number >= heardBefore);
  return { ...lease, heardNumber: number, heardBefore, rooms };
}

/**
 * The least room since what this report says has overflowed may have begun to: after the report before it. That one went by the grant
 * last heard of, or by a later one; if it was overtaken, by the one heard of before.
 */
function leastRoom({ heardNumber, heardBefore, rooms }: Lease, number: number): number {
  const since = number > heardNumber ? heardNumber : heardBefore;
  return rooms.find((room) => room.number >= since)?.least ?? 0;
}

function withRoomSince(number: number, rooms: readonly Room[]): Room[] {
  const [oldest, next] = rooms;
  const isFull = rooms.length >= ROOMS_MAX && oldest !== undefined && next !== undefined;
  const kept = isFull ? [{ ...next, least: oldest.least }, ...rooms.slice(2)] : rooms;
  return [...kept, { number, least: Number.POSITIVE_INFINITY }];
}

/** How much the owner's bucket could take, so much of the brim being lent. A window takes back whatever it has counted. */
function roomIn({ limit, state }: Counter, lentCapacity: number, nowMs: number): number {
  if (!isLentBucket(limit)) return Number.POSITIVE_INFINITY;
  const missing = (fullAtMsOf(state) - nowMs) / unitMsOf(limit);
  return Math.max(0, missing - lentCapacity);
}

function unitMsOf({ windowMs, quota }: Limit): number {
  return windowMs / quota;
}

function fullAtMsOf(state: Counter['state']): number {
  return typeof state === 'number' ? state / 1_000 : Number.NEGATIVE_INFINITY;
}
