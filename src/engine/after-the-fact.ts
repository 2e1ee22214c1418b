/**
 * The owner's part in what comes after a question: debts of an outage, corrections of estimates, slots that are still held or free again.
 *
 * Each is done once for its id, in whatever order messages come and however often. A correction takes a counter at most one quota below
 * empty, and what it gives back goes to the window that was charged. A slot that was let go is not taken again by a late
 * word that it is held.
 */
import { charge, giveBack, hold, nowMsFor, release } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { type Counter, restInMs } from './counters.ts';
import { Ledger, type Recent } from './ledger.ts';
import type { Correction, CounterRef, OwnerCall, SlotNotice } from './messages.ts';

/** An isolate repeats what is unacknowledged for five minutes (`engine/debts`); the margin is for a last message on its way. */
const CORRECTIONS = { keepMs: 330_000, entriesMax: 16_384 };

/** A word that slots are held may be on its way when they are let go, and no message is on its way for as long as this. */
const FREED = { keepMs: 15_000, entriesMax: 16_384 };

export interface AfterTheFactOptions {
  /** The counter that is named, under the numbers that the owner knows for it; what is told late never changes them. */
  readonly obtain: (named: CounterRef, clock: LogicalClock) => Counter;
  /** The counter's stored form is out of date; what it said would have mattered for so long. */
  readonly onChanged: (counter: Counter, clock: LogicalClock, storedRestInMs: number) => void;
  /** An id has to be stored, for so long. */
  readonly onRecorded: (entry: { readonly id: string }, keepMs: number) => void;
}

export class AfterTheFact {
  readonly #options: AfterTheFactOptions;
  readonly #corrections = new Ledger<'charged'>(CORRECTIONS);
  readonly #freed = new Ledger<'freed'>(FREED);

  constructor(options: AfterTheFactOptions, stored: readonly Recent[]) {
    this.#options = options;
    for (const { id, atMs } of stored) this.#corrections.record(id, 'charged', atMs);
  }

  /** The ids of debts and corrections that still matter, in order of time. */
  recent(nowMs: number): readonly Recent[] {
    return this.#corrections.recent(nowMs);
  }

  restInMs(nowMs: number): number {
    return this.#corrections.restInMs(nowMs);
  }

  take({ debts = [], corrections = [], slots = [] }: OwnerCall, clock: LogicalClock): void {
    for (const { id, counterId, limit, units } of debts)
      this.#correct({ id, units, counters: [{ id: counterId, limit }] }, clock);
    for (const correction of corrections) this.#correct(correction, clock);
    for (const notice of slots) this.#note(notice, clock);
  }

  #correct({ id, counters, units, chargedAt }: Correction, clock: LogicalClock): void {
    if (this.#corrections.find(id) !== undefined || !Number.isFinite(units)) return;
    this.#corrections.record(id, 'charged', clock.logicalMs);
    this.#options.onRecorded({ id }, CORRECTIONS.keepMs);
    this.#change(counters, clock, ({ limit, state }, nowMs) => {
      if (units > 0) return charge(limit, state, units, nowMs);
      return giveBack(
        limit,
        state,
        { cost: -units, chargedAtMs: nowMsFor(limit, chargedAt ?? clock) },
        nowMs,
      );
    });
  }

  #note({ id, counters, isHeld }: SlotNotice, clock: LogicalClock): void {
    if (isHeld && this.#freed.find(id) !== undefined) return;
    if (!isHeld) this.#freed.record(id, 'freed', clock.logicalMs);
    const change = isHeld ? hold : release;
    this.#change(counters, clock, ({ limit, state }, nowMs) => change(limit, state, id, nowMs));
  }

  #change(
    named: readonly CounterRef[],
    clock: LogicalClock,
    change: (counter: Counter, nowMs: number) => Counter['state'],
  ): void {
    for (const each of named) {
      const counter = this.#options.obtain(each, clock);
      const storedRestInMs = restInMs(counter, clock);
      counter.state = change(counter, nowMsFor(counter.limit, clock));
      this.#options.onChanged(counter, clock, storedRestInMs);
    }
  }
}
