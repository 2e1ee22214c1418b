/**
 * The owner of a caller's counters: their only writer.
 *
 * It decides all the counters of a question together, all or nothing: the enforced ones decide, and when they admit, every enforced
 * counter is charged, and each shadow counter that would have admitted too. A denied question charges nothing. Everything
 * it is told bears an id and is done at most once. Nothing here waits: a message goes in, a reply comes out, and what is to be
 * stored is asked for afterwards (`engine/write-behind`).
 */
import { decide, giveBack, nowMsFor } from '../core/algorithms.ts';
import { advance, type LogicalClock, startClock } from '../core/clock.ts';
import type { Decision } from '../core/decision.ts';
import type { Clamp } from '../policy/clamp.ts';
import { encodePairs } from '../policy/counter.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import { AfterTheFact } from './after-the-fact.ts';
import { report } from './counter-report.ts';
import { type Counter, Counters, type Named, newCounter, restInMs, settle, startAnew } from './counters.ts';
import { type Asked, type Asking, type Charge, type Decided, decideAll } from './deciding.ts';
import { Ledger, type Recent } from './ledger.ts';
import { borrowingOf, chargeShadow, hearOfLease, lend, type Parties } from './lending.ts';
import {
  type Answer,
  type CounterRef,
  type CounterReport,
  MESSAGE_FORMAT,
  type OwnerCall,
  type OwnerReply,
  type Question,
} from './messages.ts';
import { Middle, type MiddleOptions, type RootCall } from './middle.ts';
import { type Override, Oversight, saidOfAsked, settledBy } from './oversight.ts';
import { revived } from './revived.ts';
import { MOVED, Root, type RootOptions, type RootPorts } from './root.ts';
import type { StoredOwner } from './write-behind.ts';

/**
 * The runtime repeats a call for up to about ten seconds, and a give-back follows its answer at once: 15 seconds cover both. An object
 * answers about 1,000 calls a second, so this many entries are 15 seconds of a full one.
 */
const QUESTIONS = { keepMs: 15_000, entriesMax: 16_384 };

/** Older than every ruleset. */
const UNDATED: Version = { activation: 0, builtAtMs: 0 };

interface Answered {
  readonly answer: Answer;
  readonly charges: readonly Charge[];
}

export interface OwnerOptions {
  readonly incarnation: string;
  readonly countersMax: number;
  /** Told of each counter or debt whose stored form is out of date, and for how long what it says, new or stored, will matter. */
  readonly onChanged: (changed: { readonly id: string }, restInMs: number) => void;
  readonly onDisplaced: () => void;
  /** Present exactly in a middle owner: it holds leases of another one. */
  readonly middle?: MiddleOptions;
  /** Present where it may be the root of middle owners. */
  readonly root?: RootOptions;
}

export class Owner {
  readonly #options: OwnerOptions;
  readonly #counters: Counters;
  readonly #questions = new Ledger<Answered>(QUESTIONS);
  readonly #afterTheFact: AfterTheFact;
  readonly #oversight: Oversight;
  readonly #middle: Middle | undefined;
  readonly #root: Root | undefined;
  #clock: LogicalClock;
  #version: Version;
  #grants = 0;

  constructor(options: OwnerOptions, rawMs: number, stored?: StoredOwner) {
    this.#options = options;
    const middle = options.middle && new Middle(options.middle);
    this.#middle = middle;
    this.#root = options.root && new Root(options.root, this.#rootPorts());
    this.#counters = new Counters(options.countersMax, middle?.upstreamOf.bind(middle));
    // As it was stored: the first message sees whether the raw clock has stepped back meanwhile.
    this.#clock = stored?.clock ?? startClock(rawMs);
    this.#version = stored?.version ?? UNDATED;
    for (const each of stored?.counters ?? []) {
      const counter = revived(each, middle, this.#clock.logicalMs);
      this.#counters.restore(counter);
      middle?.touched(counter, this.#clock);
    }
    this.#oversight = new Oversight(stored?.clamps ?? []);
    // What was written before the raw clock stepped back, and not since, may still lie in its future.
    this.#counters.stepBack(this.#clock);
    this.#afterTheFact = new AfterTheFact(
      {
        obtain: (named, clock) => this.#obtain({ ...named, version: UNDATED }, clock),
        onChanged: (counter, clock, storedRestInMs) => this.#changed(counter, clock, storedRestInMs),
        onRecorded: options.onChanged,
      },
      stored?.debts ?? [],
    );
  }

  get clock(): LogicalClock {
    return this.#clock;
  }

  get version(): Version {
    return this.#version;
  }

  counters(): IterableIterator<Counter> {
    return this.#counters.values();
  }

  /** The debts and corrections whose ids still matter, in order of time. */
  debts(): readonly Recent[] {
    return this.#afterTheFact.recent(this.#clock.logicalMs);
  }

  clamps(): IterableIterator<Clamp> {
    return this.#oversight.clamps();
  }

  /** Reads, decides and changes in one go. */
  handle(call: OwnerCall, rawMs: number): OwnerReply {
    const clock = this.#now(rawMs);
    if (isNewer(call.version, this.#version)) this.#version = call.version;
    for (const id of call.giveBacks ?? []) this.#giveBack(id, clock);
    this.#afterTheFact.take(call, clock);
    this.#oversee(call, clock);
    const { question, inspect, middle, knock } = call;
    const override = question && this.#oversight.of(question, clock.rawMs);
    return {
      format: MESSAGE_FORMAT,
      incarnation: this.#options.incarnation,
      version: this.#version,
      ...(question && override && { answer: this.#answer(question, override, call, clock) }),
      ...(override !== undefined && override.told.length > 0 && { clamps: override.told }),
      ...(inspect && { inspected: inspect.map((named) => this.#inspect(named, call, clock)) }),
      ...(middle && { middle: this.#root?.lend(middle, call, clock) ?? [] }),
      ...(knock && { isOpen: knock.every((id) => this.#counters.get(id)?.upstream?.hasBegun === true) }),
    };
  }

  /** What a middle owner has to tell its root now; to be answered with `rootReplied`, whatever comes of it. */
  rootCall(rawMs: number): RootCall | undefined {
    const call = this.#middle?.call(this.#version, this.#now(rawMs));
    for (const counter of call?.left ?? []) this.#options.onChanged(counter, Number.POSITIVE_INFINITY);
    return call;
  }

  /** How long until a middle owner may have something to tell its root; `undefined` while it has not. */
  rootCallInMs(rawMs: number): number | undefined {
    return this.#middle?.dueInMs(this.#now(rawMs));
  }

  /** What came of a call to the root; `undefined` when it failed, or nobody waits for it any more. */
  rootReplied(call: RootCall, reply: OwnerReply | undefined, rawMs: number): void {
    const clock = this.#now(rawMs);
    for (const counter of this.#middle?.heard(call, reply, clock) ?? []) this.#changed(counter, clock);
  }

  /** Drops what is at rest; each dropped counter is reported as changed, so that its stored form goes too. */
  sweep(rawMs: number): void {
    const clock = this.#now(rawMs);
    for (const counter of this.#counters.sweep(clock)) this.#changed(counter, clock);
    for (const clamp of this.#oversight.sweep(clock.rawMs)) this.#clampChanged(clamp, clock);
  }

  /** How long until no counter, debt or clamp says anything any more; 0 when the owner can be forgotten. */
  restInMs(rawMs: number): number {
    const clock = this.#now(rawMs);
    return Math.max(
      this.#counters.restInMs(clock),
      this.#afterTheFact.restInMs(clock.logicalMs),
      this.#oversight.restInMs(clock.rawMs),
    );
  }

  /** What operators do: clamps that are news, and counters that start anew. What is lent of those stays lent. */
  #oversee({ clamps, reset }: OwnerCall, clock: LogicalClock): void {
    for (const clamp of clamps === undefined ? [] : this.#oversight.take(clamps))
      this.#clampChanged(clamp, clock);
    for (const id of reset ?? []) {
      const counter = this.#counters.get(id);
      if (counter === undefined) continue;
      const storedRestInMs = restInMs(counter, clock);
      settle(counter, clock);
      startAnew(counter, clock);
      this.#changed(counter, clock, storedRestInMs);
    }
  }

  /** A counter as it stands; one that is not there is full. */
  #inspect(
    { id, limit }: CounterRef,
    { holder, inspectCost: cost = 0 }: OwnerCall,
    clock: LogicalClock,
  ): CounterReport {
    const known = this.#counters.get(id);
    if (known !== undefined) settle(known, clock);
    const counter = known ?? newCounter({ id, limit, version: UNDATED });
    const { decision } = decide(counter.limit, counter.state, cost, nowMsFor(counter.limit, clock));
    return report(counter, decision, { cost, holder, clock });
  }

  #answer(question: Question, override: Override, call: OwnerCall, clock: LogicalClock): Answer {
    const before = this.#questions.find(question.id);
    if (before !== undefined && before !== 'taken_back') return before.answer;
    const counters: Asked[] = [];
    const beside = () => counters.map(({ counter }) => counter);
    const obtain = (named: Named) => this.#obtain(named, clock, beside());
    for (const { id, limit, shadow, unitsPerSecond, startCredit } of question.counters) {
      const counter = obtain({ id, limit, version: call.version, startCredit });
      counter.demand.report(call.holder, unitsPerSecond, clock.logicalMs);
      counters.push({ counter, shadow });
    }
    const asked = counters.length;
    for (const { id, limit } of override.added) {
      const counter = obtain({ id, limit: limit!, version: call.version });
      counters.push({ counter, shadow: false });
    }
    // A question that was taken back before it came is answered, so that its asker learns the levels, and charges nothing.
    const isCharged = before === undefined;
    const isBorrowing = isCharged && question.lease !== undefined;
    const borrowing = isBorrowing ? borrowingOf(question, counters, this.#lenderTo(call.holder)) : undefined;
    if (borrowing !== undefined) hearOfLease(borrowing, clock);
    this.#middle?.open(question, counters, clock);
    const { cost } = question;
    const asking = { id: question.id, cost: isCharged ? cost : 0 };
    // What an operator has decided no slice knows of.
    const split = override.mayLend ? this.#root?.split(question, counters, clock) : undefined;
    const settled = split ? MOVED : settledBy(override, clock.rawMs);
    const { outcome, decisions, charges } = settled
      ? { outcome: settled.outcome, decisions: counters.map(() => settled), charges: [] }
      : this.#decide(counters, asking, clock);
    if (isCharged && split === undefined) this.#root?.decided(question, counters, decisions, clock);
    const shadowDenied = this.#chargeShadows(counters, borrowing?.report.spent ?? 0, clock);
    const lease =
      borrowing && override.mayLend && split === undefined
        ? lend({ ...borrowing, isDenied: outcome === 'denied' }, clock)
        : undefined;
    for (const counter of borrowing?.counters ?? []) this.#changed(counter, clock);
    if (isCharged)
      this.#middle?.noted(counters, { cost, borrowed: borrowing?.report, decisions, lease }, clock);
    const isUnready = outcome === 'denied' && !settled && this.#middle?.isUnready(counters, decisions, clock);
    const answer: Answer = {
      outcome: isCharged ? outcome : 'denied',
      counters: saidOfAsked(decisions, asked).map((own, at) => {
        const { counter } = counters[at]!;
        const decision = shadowDenied.has(counter) ? SHADOW_DENIED : own;
        const told = report(counter, decision, { cost, holder: call.holder, clock });
        return override.denyUntilMs === undefined ? told : { ...told, remaining: 0 };
      }),
      ...(lease && { lease }),
      ...(split && { split }),
      ...(isUnready && { isUnready }),
      ...(question.isEstimate && charges.length > 0 && { chargedAt: clock }),
    };
    if (isCharged && (cost > 0 || borrowing !== undefined))
      this.#questions.record(question.id, { answer, charges }, clock.logicalMs);
    return answer;
  }

  #lenderTo(holder: string): Parties {
    return { holder, incarnation: this.#options.incarnation, nextNumber: () => this.#nextNumber() };
  }

  /** Shadow counters of a lease are charged what was spent of it, and told apart are those that would have denied some of it. */
  #chargeShadows(counters: readonly Asked[], spent: number, clock: LogicalClock): ReadonlySet<Counter> {
    const denied = new Set<Counter>();
    if (spent === 0) return denied;
    for (const { counter, shadow } of counters) {
      if (!shadow) continue;
      if (chargeShadow(counter, spent, clock)) denied.add(counter);
      this.#changed(counter, clock);
    }
    return denied;
  }

  /** Each grant has a larger one than the last. */
  #nextNumber(): number {
    this.#grants += 1;
    return this.#grants;
  }

  #rootPorts(): RootPorts {
    return {
      obtain: (named, clock) => this.#obtain(named, clock),
      onChanged: (counter, clock) => this.#changed(counter, clock),
      counters: () => this.#counters.values(),
      nextNumber: () => this.#nextNumber(),
    };
  }

  #decide(counters: readonly Asked[], asking: Asking, clock: LogicalClock): Decided {
    const decided = decideAll(counters, asking, clock);
    for (const { counter } of decided.charges) this.#changed(counter, clock);
    return decided;
  }

  #giveBack(id: string, clock: LogicalClock): void {
    for (const { counter, cost, at } of this.#questions.takeBack(id, clock.logicalMs)?.charges ?? []) {
      settle(counter, clock);
      const { limit, state } = counter;
      const past = { cost, chargedAtMs: nowMsFor(limit, at), id };
      const storedRestInMs = restInMs(counter, clock);
      counter.state = giveBack(limit, state, past, nowMsFor(limit, clock));
      // What is stored may still hold the charge, and matters for as long as it would have.
      this.#changed(counter, clock, storedRestInMs);
    }
  }

  #obtain(asked: Named, clock: LogicalClock, beside: readonly Counter[] = []): Counter {
    const { counter, displaced } = this.#counters.obtain(asked, clock, beside);
    if (displaced !== undefined) {
      this.#options.onDisplaced();
      this.#changed(displaced, clock);
    }
    return counter;
  }

  #changed(counter: Counter, clock: LogicalClock, storedRestInMs = 0): void {
    this.#middle?.touched(counter, clock);
    this.#options.onChanged(counter, Math.max(restInMs(counter, clock), storedRestInMs));
  }

  #clampChanged(clamp: Clamp, clock: LogicalClock): void {
    this.#options.onChanged({ id: encodePairs(clamp.pairs) }, Math.max(0, clamp.untilMs - clock.rawMs));
  }

  #now(rawMs: number): LogicalClock {
    const isStepBack = rawMs < this.#clock.rawMs;
    this.#clock = advance(this.#clock, rawMs);
    if (isStepBack) this.#counters.stepBack(this.#clock);
    return this.#clock;
  }
}

/** What a shadow counter would have said, had it been asked in time. */
const SHADOW_DENIED: Decision = { outcome: 'denied', retryAfterMs: 1 };
