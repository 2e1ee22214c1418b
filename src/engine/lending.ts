/**
 * The owner's part in a lease: what comes back of the last one, what shadow counters are charged for it, and the next one.
 *
 * One lease covers all the enforced counters of a question, so its terms are the narrowest that any of them allows, and each of them
 * lends exactly that.
 */
import { available, charge, decide, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { capacity, type Limit } from '../core/decision.ts';
import { type Counter, ruleLimitOf } from './counters.ts';
import type { Asked } from './deciding.ts';
import { type LeaseGrant, type LeaseReport, NO_LEASE } from './lease.ts';
import { LeaseBook } from './lease-book.ts';
import { isLendable, type LeaseTerms, leaseTerms } from './lease-terms.ts';
import type { Question } from './messages.ts';
import { PIECES_MAX, type Returned } from './overflow.ts';

export interface Borrowing {
  readonly holder: string;
  readonly cost: number;
  readonly isDenied: boolean;
  readonly report: LeaseReport;
  /** The owner's present life: a lease of an earlier one is none of its business. */
  readonly incarnation: string;
  /** What the next grant is called. */
  readonly number: number;
  /** All the enforced counters of the question; each knows the holder's demand for it. */
  readonly counters: readonly Counter[];
}

/** Who borrows, and what the owner calls itself and its next grant. */
export interface Parties extends Pick<Borrowing, 'holder' | 'incarnation'> {
  readonly nextNumber: () => number;
}

/** What a question says of a lease; `undefined` when it says nothing. Counters that the owner has added to those asked about stand behind them. */
export function borrowingOf(
  { cost, lease, counters: named }: Question,
  asked: readonly Asked[],
  { holder, incarnation, nextNumber }: Parties,
): Borrowing | undefined {
  if (lease === undefined) return undefined;
  const own = asked.slice(0, named.length).filter(({ shadow }) => !shadow);
  const counters = own.map(({ counter }) => counter);
  return {
    holder,
    cost,
    isDenied: false,
    report: believable(lease),
    incarnation,
    number: nextNumber(),
    counters,
  };
}

/** Hears what the holder says of the lease it has: what it returns, what it goes by, whether it has ended. */
export function hearOfLease(
  { report, incarnation, counters, ...borrowing }: Borrowing,
  clock: LogicalClock,
): void {
  if (report.incarnation !== incarnation) return;
  const key = keyOf(borrowing.holder, counters);
  for (const counter of counters) counter.lent?.hear(counter, key, report, clock);
}

/** Charges a shadow counter what was spent from a lease; true when it would have denied some of it. */
export function chargeShadow(counter: Counter, spent: number, clock: LogicalClock): boolean {
  if (!(spent > 0)) return false;
  const { limit, state } = counter;
  const nowMs = nowMsFor(limit, clock);
  const fits = Math.min(spent, Math.max(0, available(limit, state, nowMs)));
  counter.state = charge(limit, state, fits, nowMs);
  return fits < spent && decide(limit, counter.state, 1, nowMs).decision.outcome === 'denied';
}

/** The holder's next lease; `undefined` when one of the counters has nothing to lend. */
export function lend(borrowing: Borrowing, clock: LogicalClock): LeaseGrant | undefined {
  const { holder, counters, report, number } = borrowing;
  if (report.isFinal || counters.length === 0) return undefined;
  // The numbers may be newer than those the holder goes by.
  if (!counters.every((counter) => isLendable(ruleLimitOf(counter)))) return undefined;
  const key = keyOf(holder, counters);
  const books = counters.map((counter) => {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    return counter.lent;
  });
  if (!books.every((book) => book.hasRoomFor(key))) return undefined;
  // A key that is asked for once in a while is cheaper without: a lease has to be given back.
  const isRush = (book: LeaseBook, at: number) =>
    book.newcomers.arrive(counters[at]!.demand.activeHolders, clock.logicalMs);
  if (report.isTentative && !books.every(isRush)) return undefined;
  const terms = narrowest(counters.map((counter, at) => termsOf(counter, books[at]!, borrowing, clock)));
  if (terms === undefined) return undefined;
  // Whoever was told to hold would not see that a middle owner's first lease has come.
  const isNew = counters.some(({ upstream }) => upstream?.isNew(clock.logicalMs));
  const grant = { ...terms, number, isScarce: terms.isScarce && !isNew };
  for (const [at, counter] of counters.entries()) books[at]!.lend(counter, key, grant, clock);
  return grant;
}

function termsOf(
  counter: Counter,
  book: LeaseBook,
  { holder, counters, report, incarnation, cost, isDenied }: Borrowing,
  clock: LogicalClock,
): LeaseTerms | undefined {
  const { limit, state, demand } = counter;
  const key = keyOf(holder, counters);
  const { held } = report.incarnation === incarnation ? report : NO_LEASE;
  const lentToOthers = book.lentToOthers(key);
  return leaseTerms({
    limit,
    level: Math.max(0, available(limit, state, nowMsFor(limit, clock))),
    lentToOthers,
    // A holder that claims more cannot have it.
    held: Math.min(held, Math.max(0, capacity(limit) - lentToOthers.capacity)),
    unitsPerMs: book.unitsPerMsOf(key),
    cost,
    isFirst: report.incarnation !== incarnation,
    isTentative: report.isTentative === true,
    // An isolate of an earlier release does not say.
    patienceMs: report.patienceMs || Number.POSITIVE_INFINITY,
    isDenied,
    largestCost: Math.max(cost, report.largestCost),
    demand: {
      unitsPerSecond: demand.unitsPerSecond(holder, clock.logicalMs),
      totalUnitsPerSecond: demand.totalUnitsPerSecond(clock.logicalMs),
      holders: demand.activeHolders,
    },
    lifeMsMax: windowLeftMs(limit, clock),
  });
}

/** A lease ends with its window. */
function windowLeftMs(limit: Limit, { rawMs }: LogicalClock): number {
  return limit.algorithm === 'fixed_window'
    ? limit.windowMs - (rawMs % limit.windowMs)
    : Number.POSITIVE_INFINITY;
}

function narrowest(all: readonly (LeaseTerms | undefined)[]): LeaseTerms | undefined {
  let narrowest = all[0];
  for (const terms of all) {
    if (terms === undefined || narrowest === undefined) return undefined;
    narrowest = {
      units: Math.min(narrowest.units, terms.units),
      unitsPerMs: Math.min(narrowest.unitsPerMs, terms.unitsPerMs),
      capacity: Math.min(narrowest.capacity, terms.capacity),
      lifeMs: Math.min(narrowest.lifeMs, terms.lifeMs),
      renewInMs: renewal(narrowest, terms),
      isScarce: narrowest.isScarce || terms.isScarce,
    };
  }
  return narrowest;
}

/** A scarce counter says when its next slice is due; among equals the slower one does. */
function renewal(a: LeaseTerms, b: LeaseTerms): number {
  if (a.isScarce !== b.isScarce) return a.isScarce ? a.renewInMs : b.renewInMs;
  return Math.max(a.renewInMs, b.renewInMs);
}

/** A holder has one lease for each set of counters. */
function keyOf(holder: string, counters: readonly Counter[]): string {
  return counters.length === 1 ? holder : [holder, ...counters.map(({ id }) => id)].join('\n');
}

/** A report as it can be believed: a holder of another version, or a faulty one, must not spoil a counter. */
function believable(report: LeaseReport): LeaseReport {
  return {
    incarnation: report.incarnation,
    number: amount(report.number),
    held: amount(report.held),
    returned: Array.isArray(report.returned) ? report.returned.slice(0, PIECES_MAX).map(believablePiece) : [],
    spent: amount(report.spent),
    largestCost: amount(report.largestCost),
    patienceMs: orEndless(report.patienceMs),
    unitsPerMs: orEndless(report.unitsPerMs),
    isFinal: report.isFinal === true,
    isTentative: report.isTentative === true,
  };
}

function believablePiece(piece: Partial<Returned> | null): Returned {
  return { units: amount(piece?.units), agoMs: orEndless(piece?.agoMs) };
}

/** Whoever does not say how long, or how much less, is believed to mean without end. */
function orEndless(value: unknown): number {
  return typeof value === 'number' && value >= 0 ? value : Number.POSITIVE_INFINITY;
}

function amount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? value : 0;
}
