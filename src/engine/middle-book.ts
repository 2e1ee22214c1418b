/**
 * The root's part in the leases of middle owners: what each has owed, returned and been lent of one counter.
 *
 * All of it is sums that grow within an epoch, merged by maximum, so a report that is lost, repeated or overtaken changes nothing. What is
 * kept is stored with the counter, in the same row: a root that comes back from its storage has charged just what it says. One that
 * knows nothing of an epoch takes the middle owner's word for what was heard of it before.
 */
import { available, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { capacity } from '../core/decision.ts';
import type { Counter } from './counters.ts';
import { Demand } from './demand.ts';
import { LeaseBook } from './lease-book.ts';
import type { MiddleGrant, MiddleReport } from './messages.ts';
import { Meter } from './meter.ts';
import { chargeOwed, hearOfLease } from './middle-returns.ts';
import { demandsOf, LEASE_MS, type MiddleTerms, middleTerms } from './middle-terms.ts';
import { OPENING_MS, slicesBeside, wholeOf } from './slices.ts';

/** Regions, and slices of a key too hot for one object: more than this at once are none of ours. */
const MIDDLES_MAX = 128;

/** A credit must not go on for ever: after so many answers others have given up what they could. */
const WAITS_MAX = 8;

/** The rest is there for whoever cannot ask a slice. */
const OPENING_PART = 0.95;

/** The root itself among those who ask. */
const OWN = '';

/** How often what slices begin with is looked at again. */
const OPENED_AGAIN_MS = 50;

/** Whoever suddenly asks for next to nothing may be pausing. */
const PAUSED_PART = 0.01;

/** Whoever has been short within so long may be so again. */
const PLENTY_MS = 5_000;

/** When all isolates have moved to their slices. */
const SETTLED_MS = 3_000;

/** For so long all may be newcomers. */
const COLD_MS = 2_000;

/** What is kept of one middle owner. */
export interface MiddleRecord {
  readonly epoch: number;
  readonly owed: number;
  readonly returned: number;
  readonly lent: number;
  readonly number: number;
  readonly unitsPerMs: number;
  readonly grants: number;
  /** How often it was told to wait on its credit. */
  readonly waits: number;
  /** The newest grant that it has given up. */
  readonly ended: number;
  /** Whether it has reported: until then it may not know what it was lent. */
  readonly isHeard: boolean;
}

export class MiddleBook {
  readonly #records: Map<string, MiddleRecord>;
  readonly #demand = new Demand();
  /** The same, as it was before a pause. */
  readonly #recent = new Demand();
  /** What the root is asked itself, because no middle owner can decide it. */
  readonly #own = new Meter(0);
  #sinceMs = Number.POSITIVE_INFINITY;
  /** When one of them was last short. */
  #shortAtMs = Number.NEGATIVE_INFINITY;
  #opening: MiddleGrant | undefined;
  #openedAtMs = Number.NEGATIVE_INFINITY;
  #slices: readonly string[] = [];

  constructor(stored: readonly (readonly [string, MiddleRecord])[] = []) {
    this.#records = new Map(stored);
  }

  stored(): readonly (readonly [string, MiddleRecord])[] {
    return [...this.#records];
  }

  /** Who has been lent to. */
  get holders(): readonly string[] {
    return [...this.#records.keys()];
  }

  has(holder: string): boolean {
    return this.#records.has(holder);
  }

  /** The root was asked for so many units itself: of what is in demand it keeps a part for that, as if it were one of its middle owners; `mostPerSecond` is what there is use for. */
  askedHere(units: number, mostPerSecond: number, { logicalMs }: LogicalClock): void {
    if (this.#own.unitsPerSecond(logicalMs) < mostPerSecond) this.#own.arrive(units, logicalMs);
  }

  /**
   * Splits the counter: each of these middle owners that has not been heard of is lent an equal part of what isolates are not. Answers what each of
   * them begins with, which grows as the leases of isolates end; `undefined` once all have been heard of.
   */
  open(
    counter: Counter,
    slices: readonly string[],
    { number, epoch }: { number: number; epoch: number },
    clock: LogicalClock,
  ): MiddleGrant | undefined {
    const nowMs = clock.logicalMs;
    const silent = slices.filter((slice) => this.#records.get(slice)?.isHeard !== true);
    if (silent.length === 0) return undefined;
    if (this.#opening === undefined || nowMs - this.#openedAtMs >= OPENED_AGAIN_MS) {
      this.#sinceMs = Math.min(this.#sinceMs, nowMs);
      this.#openedAtMs = nowMs;
      this.#slices = slices;
      const named = { number, epoch: this.#opening?.epoch ?? epoch };
      const notFor = slices.flatMap((slice, at) => (silent.includes(slice) ? [] : at));
      this.#opening = { ...this.#lendEach(counter, silent, named, clock), notFor };
    }
    return { ...this.#opening, lifeMs: LEASE_MS - (nowMs - this.#openedAtMs) - OPENING_MS };
  }

  #lendEach(
    counter: Counter,
    silent: readonly string[],
    { number, epoch }: { number: number; epoch: number },
    clock: LogicalClock,
  ): MiddleGrant {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    const part = this.#partOf(counter, clock);
    // Those that have been heard of may have more than their part by now.
    const room = Math.min(part.capacity, roomBeside(counter, silent, clock) / silent.length);
    const units = Math.min(part.units, room);
    const terms = { ...part, capacity: room, units, lifeMs: LEASE_MS, renewInMs: 0, isScarce: false };
    const lent = (this.#opening?.lent ?? 0) + units;
    const record = { ...NEW_RECORD, epoch, lent, number, unitsPerMs: part.unitsPerMs };
    for (const slice of silent) {
      counter.lent.lend(counter, slice, { ...terms, number }, clock);
      this.#records.set(slice, record);
    }
    return grantOf(counter.id, record, terms);
  }

  /** An equal part for each slice of what is not lent to isolates, and of the units that nobody has. */
  #partOf({ limit, state, lent }: Counter, clock: LogicalClock): SlicePart {
    const share = 1 / this.#slices.length;
    const own =
      (this.#own.unitsPerSecond(clock.logicalMs) * limit.windowMs) / Math.max(1, limit.quota * 1_000);
    const opening = Math.max(0, Math.min(OPENING_PART, 1 - own));
    const all = lent?.lentNow(clock.logicalMs) ?? NO_TERMS;
    let { unitsPerMs, capacity: room } = all;
    for (const slice of this.#slices) {
      const others = lent?.lentToOthers(slice) ?? NO_TERMS;
      unitsPerMs -= all.unitsPerMs - others.unitsPerMs;
      room -= all.capacity - others.capacity;
    }
    return {
      units:
        Math.max(0, available(limit, state, nowMsFor(limit, clock)) - (1 - opening) * capacity(limit)) *
        share,
      unitsPerMs: Math.max(0, (opening * limit.quota) / limit.windowMs - unitsPerMs) * share,
      capacity: Math.max(0, opening * capacity(limit) - room) * share,
      share,
    };
  }

  /** Hears a report about the counter and lends; `number` is larger than that of any grant before. */
  hear(
    counter: Counter,
    { holder, report, number }: { holder: string; report: MiddleReport; number: number },
    clock: LogicalClock,
  ): MiddleGrant | undefined {
    this.#sinceMs = Math.min(this.#sinceMs, clock.logicalMs);
    const known = this.#records.get(holder);
    if (known === undefined && this.#records.size >= MIDDLES_MAX) return undefined;
    if (this.#isColdStart(counter, holder, report)) {
      this.#slices = slicesBeside(holder);
      this.#sinceMs = clock.logicalMs;
    }
    if (known !== undefined && report.epoch < known.epoch) return grantOf(report.counterId, known, NO_TERMS);
    const record = known?.epoch === report.epoch ? known : recordOf(report);
    chargeOwed(counter, report.owed.units - record.owed, clock);
    const returned = report.returned.units - record.returned;
    hearOfLease(counter, { holder, report, returned, ended: record.ended }, clock);
    this.#noteDemand(holder, report, clock.logicalMs);
    const heard = {
      ...record,
      isHeard: true,
      owed: Math.max(record.owed, report.owed.units),
      returned: Math.max(record.returned, report.returned.units),
    };
    if (report.isFinal) {
      this.#records.set(holder, { ...heard, unitsPerMs: 0, ended: Math.max(record.ended, report.number) });
      return grantOf(report.counterId, heard, NO_TERMS);
    }
    return this.#lend(counter, { holder, report, number: Math.max(number, report.number + 1), heard }, clock);
  }

  #lend(
    counter: Counter,
    {
      holder,
      report,
      number,
      heard,
    }: { holder: string; report: MiddleReport; number: number; heard: MiddleRecord },
    clock: LogicalClock,
  ): MiddleGrant {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    const { limit, lent: book } = counter;
    const lentToOthers = book.lentToOthers(holder);
    const asked = middleTerms({
      limit,
      level: available(limit, counter.state, nowMsFor(limit, clock)),
      lentToOthers,
      unitsPerMs: heard.unitsPerMs,
      held: Math.min(report.held, Math.max(0, capacity(limit) - lentToOthers.capacity)),
      grants: heard.grants,
      largestCost: report.largestCost,
      isShort: report.isShort,
      isPlenty: clock.logicalMs - this.#shortAtMs >= PLENTY_MS,
      demand: demandsOf(this.#demand, holder, clock),
      recent: demandsOf(this.#recent, holder, clock),
    });
    const terms = this.#asOpened(asked, { holder, held: report.held }, counter, clock);
    const { units, unitsPerMs } = terms;
    // Whoever lives on credit is better off with that than with nothing.
    const isCold = clock.logicalMs - this.#sinceMs < COLD_MS;
    if (heard.waits < WAITS_MAX && report.number === 0 && units < 1 && unitsPerMs === 0 && !isCold) {
      this.#records.set(holder, { ...heard, waits: heard.waits + 1 });
      return grantOf(report.counterId, heard, terms);
    }
    book.lend(counter, holder, { ...terms, number }, clock);
    const lent = {
      ...heard,
      number,
      unitsPerMs,
      lent: heard.lent + units,
      grants: heard.grants + 1,
      waits: 0,
    };
    this.#records.set(holder, lent);
    return grantOf(report.counterId, lent, terms);
  }

  /** The first slice that asks while none has anything: the others are about to ask too. */
  #isColdStart(counter: Counter, holder: string, { lease }: MiddleReport): boolean {
    if (lease !== undefined || wholeOf(holder) === undefined) return false;
    return this.holders.every((each) => hasNothing(counter, each));
  }

  #noteDemand(holder: string, { unitsPerSecond, isShort, isFinal }: MiddleReport, nowMs: number): void {
    for (const demand of [this.#demand, this.#recent])
      demand.report(OWN, this.#own.unitsPerSecond(nowMs), nowMs);
    this.#demand.report(holder, unitsPerSecond, nowMs);
    const before = isFinal ? 0 : this.#recent.unitsPerSecond(holder, nowMs);
    this.#recent.report(holder, unitsPerSecond < PAUSED_PART * before ? before : unitsPerSecond, nowMs);
    if (isShort) this.#shortAtMs = nowMs;
  }

  /** Who asks which slice shows only when all have moved: until then each has an equal part. */
  #asOpened(
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
}

function hasNothing({ lent }: Counter, holder: string): boolean {
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

type SlicePart = Pick<MiddleTerms, 'units' | 'unitsPerMs' | 'capacity' | 'share'>;

const NEW_RECORD = { owed: 0, returned: 0, grants: 1, waits: 0, ended: 0, isHeard: false };

const NO_TERMS = { unitsPerMs: 0, capacity: 0, lifeMs: 0, renewInMs: 0, isScarce: false, share: 0 };

function recordOf({ epoch, owed, returned, lent, number }: MiddleReport): MiddleRecord {
  return {
    epoch,
    owed: owed.heard,
    returned: returned.heard,
    lent,
    number,
    unitsPerMs: 0,
    grants: 0,
    waits: 0,
    ended: 0,
    isHeard: true,
  };
}

function grantOf(
  counterId: string,
  { epoch, owed, returned, lent, number }: MiddleRecord,
  { unitsPerMs, capacity: room, lifeMs, renewInMs, isScarce, share }: typeof NO_TERMS,
): MiddleGrant {
  const terms = { unitsPerMs, capacity: room, lifeMs, renewInMs, isScarce, share };
  return { counterId, epoch, number, lent, ...terms, owed, returned };
}
