/**
 * The owner's part in a lease: what comes back of the last one, what shadow counters are charged for it, and the next one.
 *
 * One lease covers all the enforced counters of a question, so its terms are the narrowest that any of them allows, and each of them
 * lends exactly that.
 */
import { available, charge, decide } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Limit } from '../core/decision.ts';
import { type Counter, nowMsFor } from './counters.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';
import { LeaseBook } from './lease-book.ts';
import { leaseTerms } from './lease-terms.ts';

export interface Borrowing {
  readonly holder: string;
  readonly cost: number;
  readonly report: LeaseReport;
  /** The owner's present life: a lease of an earlier one is none of its business. */
  readonly incarnation: string;
  /** All the enforced counters of the question, each with the holder's demand for it. */
  readonly counters: readonly { readonly counter: Counter; readonly unitsPerSecond: number }[];
}

/** Takes back what the holder returns; a final report ends its lease. */
export function takeBackLease(
  { report, incarnation, counters, ...borrowing }: Borrowing,
  clock: LogicalClock,
): void {
  if (report.incarnation !== incarnation) return;
  const key = keyOf(borrowing.holder, counters);
  for (const { counter } of counters) {
    counter.lent?.takeBack(counter, key, report, clock);
    if (report.isFinal) counter.lent?.end(key);
  }
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
  const { holder, counters, report } = borrowing;
  if (report.isFinal || counters.length === 0) return undefined;
  const key = keyOf(holder, counters);
  const books = counters.map(({ counter }) => {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    return counter.lent;
  });
  if (!books.every((book) => book.hasRoomFor(key))) return undefined;
  const grants = counters.map(({ counter, unitsPerSecond }, at) =>
    termsOf(counter, books[at]!.lentToOthers(key), { ...borrowing, unitsPerSecond }, clock),
  );
  const grant = narrowest(grants);
  if (grant === undefined) return undefined;
  for (const [at, { counter }] of counters.entries()) books[at]!.lend(counter, key, grant, clock);
  return grant;
}

function termsOf(
  counter: Counter,
  lentToOthers: { unitsPerMs: number; capacity: number },
  { report, incarnation, cost, unitsPerSecond }: Borrowing & { readonly unitsPerSecond: number },
  clock: LogicalClock,
): LeaseGrant | undefined {
  const { limit, state, demand } = counter;
  return leaseTerms({
    limit,
    level: Math.max(0, available(limit, state, nowMsFor(limit, clock))),
    lentToOthers,
    held: report.incarnation === incarnation ? report.held : 0,
    cost,
    demand: {
      unitsPerSecond,
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

function narrowest(grants: readonly (LeaseGrant | undefined)[]): LeaseGrant | undefined {
  let narrowest = grants[0];
  for (const grant of grants) {
    if (grant === undefined || narrowest === undefined) return undefined;
    narrowest = {
      units: Math.min(narrowest.units, grant.units),
      unitsPerMs: Math.min(narrowest.unitsPerMs, grant.unitsPerMs),
      capacity: Math.min(narrowest.capacity, grant.capacity),
      lifeMs: Math.min(narrowest.lifeMs, grant.lifeMs),
      renewInMs: renewal(narrowest, grant),
      isScarce: narrowest.isScarce || grant.isScarce,
    };
  }
  return narrowest;
}

/** A scarce counter says when its next slice is due; among equals the slower one does. */
function renewal(a: LeaseGrant, b: LeaseGrant): number {
  if (a.isScarce !== b.isScarce) return a.isScarce ? a.renewInMs : b.renewInMs;
  return Math.max(a.renewInMs, b.renewInMs);
}

/** A holder has one lease for each set of counters. */
function keyOf(holder: string, counters: readonly { readonly counter: Counter }[]): string {
  return counters.length === 1 ? holder : [holder, ...counters.map(({ counter }) => counter.id)].join('\n');
}
