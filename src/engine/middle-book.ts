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
import { EqualParts, hasNothing } from './equal-parts.ts';
import { LeaseBook } from './lease-book.ts';
import type { MiddleGrant, MiddleReport } from './messages.ts';
import { Meter } from './meter.ts';
import { grantOf, type MiddleRecord, NO_TERMS, recordOf } from './middle-record.ts';
import { chargeOwed, hearOfLease } from './middle-returns.ts';
import { demandsOf, middleTerms } from './middle-terms.ts';
import { slicesBeside, wholeOf } from './slices.ts';

/** Regions, and slices of a key too hot for one object: more than this at once are none of ours. */
const MIDDLES_MAX = 128;

/** A credit must not go on for ever: after so many answers others have given up what they could. */
const WAITS_MAX = 8;

/** The root itself among those who ask. */
const OWN = '';

/** Whoever suddenly asks for next to nothing may be pausing. */
const PAUSED_PART = 0.01;

/** Whoever has been short within so long may be so again. */
const PLENTY_MS = 5_000;

/** What a report says, of whom, and what the grant that answers it is called at least. */
interface Hearing {
  readonly holder: string;
  readonly report: MiddleReport;
  readonly number: number;
}

export class MiddleBook {
  readonly #records: Map<string, MiddleRecord>;
  readonly #demand = new Demand();
  /** The same, as it was before a pause. */
  readonly #recent = new Demand();
  /** What the root is asked itself, because no middle owner can decide it. */
  readonly #own = new Meter(0);
  readonly #parts = new EqualParts((nowMs) => this.#own.unitsPerSecond(nowMs));
  /** When one of them was last short. */
  #shortAtMs = Number.NEGATIVE_INFINITY;

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
    named: { number: number; epoch: number },
    clock: LogicalClock,
  ): MiddleGrant | undefined {
    const silent = slices.filter((slice) => this.#records.get(slice)?.isHeard !== true);
    if (silent.length === 0) return undefined;
    const record = this.#parts.open(counter, { slices, silent, ...named }, clock);
    if (record !== undefined) for (const slice of silent) this.#records.set(slice, record);
    return this.#parts.told(clock.logicalMs);
  }

  /** Hears a report about the counter and lends; `number` is larger than that of any grant before. */
  hear(counter: Counter, hearing: Hearing, clock: LogicalClock): MiddleGrant | undefined {
    const { holder, report } = hearing;
    this.#parts.noteUse(clock.logicalMs);
    const known = this.#records.get(holder);
    if (known === undefined && this.#records.size >= MIDDLES_MAX) return undefined;
    if (this.#isColdStart(counter, hearing)) this.#parts.restart(slicesBeside(holder), clock.logicalMs);
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
    return this.#lend(counter, hearing, heard, clock);
  }

  #lend(
    counter: Counter,
    { holder, report, number: least }: Hearing,
    heard: MiddleRecord,
    clock: LogicalClock,
  ): MiddleGrant {
    const { logicalMs: nowMs } = clock;
    counter.lent ??= new LeaseBook(nowMs);
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
      isPlenty: nowMs - this.#shortAtMs >= PLENTY_MS,
      demand: demandsOf(this.#demand, holder, clock),
      recent: demandsOf(this.#recent, holder, clock),
    });
    const terms = this.#parts.widened(asked, { holder, held: report.held }, counter, clock);
    const { units, unitsPerMs } = terms;
    const isNothing = units < 1 && unitsPerMs === 0;
    // Whoever lives on credit is better off with that than with nothing.
    if (heard.waits < WAITS_MAX && report.number === 0 && isNothing && !this.#parts.isCold(nowMs)) {
      this.#records.set(holder, { ...heard, waits: heard.waits + 1 });
      return grantOf(report.counterId, heard, terms);
    }
    const number = Math.max(least, report.number + 1);
    book.lend(counter, holder, { ...terms, number }, clock);
    const lent = heard.lent + units;
    const record = { ...heard, number, unitsPerMs, lent, grants: heard.grants + 1, waits: 0 };
    this.#records.set(holder, record);
    return grantOf(report.counterId, record, terms);
  }

  /** The first slice that asks while none has anything: the others are about to ask too. */
  #isColdStart(counter: Counter, { holder, report: { lease } }: Hearing): boolean {
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
}
