/** What a report of a middle owner changes of the root's counter: what it has admitted beyond its lease, what it still has, and what comes back. */
import { charge, giveBack, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { capacity } from '../core/decision.ts';
import type { Counter } from './counters.ts';
import { NO_LEASE } from './lease.ts';
import { LeaseBook } from './lease-book.ts';
import type { MiddleReport } from './messages.ts';

/** Units that were admitted on credit are charged, into debt if need be. */
export function chargeOwed(counter: Counter, units: number, clock: LogicalClock): void {
  if (units > 0) counter.state = charge(counter.limit, counter.state, units, nowMsFor(counter.limit, clock));
}

/**
 * What the middle owner says of its lease, as any holder says it; it goes by a grant until that ends. What has come back since had its place in
 * room that was lent, and has it in what that leaves free.
 */
export function hearOfLease(
  counter: Counter,
  {
    holder,
    report,
    returned,
    ended,
  }: { holder: string; report: MiddleReport; returned: number; ended: number },
  clock: LogicalClock,
): void {
  const { number, held, isFinal } = report;
  const own = { ...NO_LEASE, number, held, isFinal, patienceMs: Number.POSITIVE_INFINITY };
  // A lease that is given up is not to be had again, however often that is said.
  if (report.lease !== undefined && !isFinal && number > ended) {
    counter.lent ??= new LeaseBook(clock.logicalMs);
    counter.lent.recall(holder, number, report.lease, clock);
  }
  counter.lent?.hear(counter, holder, own, clock);
  counter.lent?.hearLentOn(holder, report.lentOn, clock);
  const { limit, state } = counter;
  const cost = Math.min(returned, capacity(limit));
  if (!(cost > 0)) return;
  const nowMs = nowMsFor(limit, clock);
  counter.state = giveBack(limit, state, { cost, chargedAtMs: nowMs }, nowMs);
  counter.lent?.refitted(counter, clock);
}
