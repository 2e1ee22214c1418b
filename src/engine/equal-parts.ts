/**
 * Equal parts of a counter for its slices, as long as nobody knows who asks which: what they begin with at a split, and after a pause.
 *
 * At the moment of a split nearly all is lent to the isolates that came first, so what slices begin with is looked at again while those leases
 * end. Slices that come back together after a pause begin like that too.
 */
import { available, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { capacity } from '../core/decision.ts';
import type { Counter } from './counters.ts';
import { LeaseBook } from './lease-book.ts';
import type { MiddleGrant } from './messages.ts';
import { grantOf, type MiddleRecord, NO_TERMS, silentRecord } from './middle-record.ts';
import { LEASE_MS, type MiddleTerms } from './middle-terms.ts';
import { OPENING_MS } from './slices.ts';

/** The rest is there for whoever cannot ask a slice. */
const OPENING_PART = 0.95;

/** How often what slices begin with is looked at again. */
const OPENED_AGAIN_MS = 50;

/** When all isolates have moved to their slices. */
const SETTLED_MS = 3_000;

/** For so long all may be newcomers. */
const COLD_MS = 2_000;

export interface Opening {
  readonly slices: readonly string[];
  /** Those of them that the root has not heard of. */
  readonly silent: readonly string[];
  /** What the next grant is called. */
  readonly number: number;
  readonly epoch: number;
}

type Part = Pick<MiddleTerms, 'units' | 'unitsPerMs' | 'capacity' | 'share'>;

export class EqualParts {
  /** Units a second that the root is asked for itself, and keeps. */
  readonly #ownPerSecond: (nowMs: number) => number;
  #slices: readonly string[] = [];
  #sinceMs = Number.POSITIVE_INFINITY;
  #grant: MiddleGrant | undefined;
  #grantedAtMs = Number.NEGATIVE_INFINITY;

  constructor(ownPerSecond: (nowMs: number) => number) {
    this.#ownPerSecond = ownPerSecond;
  }

  /** Somebody is lent to, or asks to be. */
  noteUse(nowMs: number): void {
    this.#sinceMs = Math.min(this.#sinceMs, nowMs);
  }

  /** All begin anew. */
  restart(slices: readonly string[], nowMs: number): void {
    this.#slices = slices;
    this.#sinceMs = nowMs;
  }

  isCold(nowMs: number): boolean {
    return nowMs - this.#sinceMs < COLD_MS;
  }

  /** Lends each silent slice what it begins with. Answers what the root is to keep of each; `undefined` when they were lent to a moment ago. */
  open(counter: Counter, opening: Opening, clock: LogicalClock): MiddleRecord | undefined {
    const { logicalMs: nowMs } = clock;
    if (this.#grant !== undefined && nowMs - this.#grantedAtMs < OPENED_AGAIN_MS) return undefined;
    this.noteUse(nowMs);
    this.#grantedAtMs = nowMs;
    this.#slices = opening.slices;
    return this.#lendEach(counter, opening, clock);
  }

  /** What the last opening lent, and for how long it may be begun with. */
  told(nowMs: number): MiddleGrant | undefined {
    return this.#grant && { ...this.#grant, lifeMs: LEASE_MS - (nowMs - this.#grantedAtMs) - OPENING_MS };
  }

  #lendEach(counter: Counter, { slices, silent, number, epoch }: Opening, clock: LogicalClock): MiddleRecord {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    const part = this.#partOf(counter, clock);
    // Those that have been heard of may have more than their part by now.
    const room = Math.min(part.capacity, roomBeside(counter, silent, clock) / silent.length);
    const units = Math.min(part.units, room);
    const terms = { ...part, capacity: room, units, lifeMs: LEASE_MS, renewInMs: 0, isScarce: false };
    for (const slice of silent) counter.lent.lend(counter, slice, { ...terms, number }, clock);
    const record = silentRecord({
      epoch: this.#grant?.epoch ?? epoch,
      lent: (this.#grant?.lent ?? 0) + units,
      number,
      unitsPerMs: part.unitsPerMs,
    });
    const notFor = slices.flatMap((slice, at) => (silent.includes(slice) ? [] : at));
    this.#grant = { ...grantOf(counter.id, record, terms), notFor };
    return record;
  }

  /** Who asks which slice shows only when all have moved: until then a slice is lent its equal part of the rate, and of units and room at least that. */
  widened(
    terms: MiddleTerms,
    { holder, held }: { holder: string; held: number },
    counter: Counter,
    clock: LogicalClock,
  ): MiddleTerms {
    if (this.#slices.length === 0 || clock.logicalMs - this.#sinceMs >= SETTLED_MS) return terms;
    const { units: all, unitsPerMs, capacity: part, share } = this.#partOf(counter, clock);
    const empty = this.#slices.filter((each) => hasNothing(counter, each));
    // Of those that come back together the last finds as much as the first.
    const units = empty.includes(holder) ? all / share / empty.length : all;
    const room = Math.min(part, roomBeside(counter, [holder], clock));
    return {
      ...terms,
      units: Math.max(terms.units, Math.min(units, room - held)),
      unitsPerMs,
      capacity: Math.max(terms.capacity, room),
    };
  }

  /** An equal part for each slice of what is not lent to isolates, and of the units that nobody has. */
  #partOf({ limit, state, lent }: Counter, clock: LogicalClock): Part {
    const { logicalMs: nowMs } = clock;
    const share = 1 / this.#slices.length;
    const own = (this.#ownPerSecond(nowMs) * limit.windowMs) / Math.max(1, limit.quota * 1_000);
    const opening = Math.max(0, Math.min(OPENING_PART, 1 - own));
    const all = lent?.lentNow(nowMs) ?? NO_TERMS;
    let { unitsPerMs, capacity: room } = all;
    for (const slice of this.#slices) {
      const others = lent?.lentToOthers(slice) ?? NO_TERMS;
      unitsPerMs -= all.unitsPerMs - others.unitsPerMs;
      room -= all.capacity - others.capacity;
    }
    const level = available(limit, state, nowMsFor(limit, clock));
    return {
      units: Math.max(0, level - (1 - opening) * capacity(limit)) * share,
      unitsPerMs: Math.max(0, (opening * limit.quota) / limit.windowMs - unitsPerMs) * share,
      capacity: Math.max(0, opening * capacity(limit) - room) * share,
      share,
    };
  }
}

export function hasNothing({ lent }: Counter, holder: string): boolean {
  return (lent?.unitsPerMsOf(holder) ?? 0) === 0;
}

/** The room that is lent to nobody but these. */
function roomBeside(
  { limit, lent }: Counter,
  holders: readonly string[],
  { logicalMs }: LogicalClock,
): number {
  const all = lent?.lentNow(logicalMs).capacity ?? 0;
  let others = all;
  for (const holder of holders) others -= all - (lent?.lentToOthers(holder).capacity ?? 0);
  return Math.max(0, capacity(limit) - others);
}
