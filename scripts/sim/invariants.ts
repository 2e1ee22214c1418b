/**
 * What must hold at every step, whatever happens: a denial changes nothing at an owner, what a denied request charged is given back,
 * nothing that is sent grows without bound, and the engine rejects no promise.
 *
 * The first breach is kept with its time; the run ends there, and its seed repeats it.
 */
import type { CounterState } from '../../src/core/algorithms.ts';
import { countsSlots } from '../../src/core/decision.ts';
import type { OwnerCall, OwnerReply, Question } from '../../src/engine/messages.ts';
import type { Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { Isolate } from './isolate.ts';
import type { OwnerHost } from './owner-host.ts';
import type { Time } from './time.ts';
import type { Observer } from './world.ts';

/** What a message may carry at most (`engine/debts`, `engine/voids`). */
const DEBTS_MAX = 64;
const GIVE_BACKS_MAX = 1_024;

/** Questions about a counter in flight in an isolate (`engine/owners`); beside those that charge, a renewal of each group of counters. */
const IN_FLIGHT_MAX = 64;

/** Comparing every counter's state on each call is for owners that have a few. */
const COMPARED_MAX = 16;

type States = ReadonlyMap<string, CounterState | undefined>;

export interface Breached {
  readonly what: string;
  readonly atMs: number;
}

export interface InvariantsOptions {
  readonly time: () => Time;
  /**
   * A question older than this may have been given up; younger ones are certainly waited for. Absent where calls are lost or late: of a
   * request that has waited long already, what is left of its deadline may be a moment.
   */
  readonly deadlineMs?: number | undefined;
}

export class Invariants implements Observer {
  readonly #options: InvariantsOptions;
  /** Charges that stand, by their owner and the id of their question: a request asks several owners under one id. */
  readonly #charges = new Map<string, Question>();
  readonly #chargedUnits = new Map<string, number>();
  readonly #admittedUnits = new Map<string, number>();
  /** When each unanswered question was sent, by isolate and by counter or group of counters. */
  readonly #asked = new Map<string, Map<string, number>>();
  #breached: Breached | undefined;

  constructor(options: InvariantsOptions) {
    this.#options = options;
  }

  get breached(): Breached | undefined {
    return this.#breached;
  }

  breach(what: string): void {
    this.#breached ??= { what, atMs: this.#options.time().elapsedMs };
  }

  problem(problem: unknown): void {
    this.breach(`the engine rejected a promise: ${String(problem)}`);
  }

  sent({ holder }: Isolate, { question, debts = [], giveBacks = [] }: OwnerCall): void {
    if (debts.length > DEBTS_MAX) this.breach(`a message with ${debts.length} debts`);
    if (giveBacks.length > GIVE_BACKS_MAX) this.breach(`a message with ${giveBacks.length} give-backs`);
    const { deadlineMs } = this.#options;
    if (question !== undefined && deadlineMs !== undefined)
      this.#expectFewInFlight(holder, question, deadlineMs);
  }

  /** Nobody waits for this any more. */
  failed({ holder }: Isolate, { question }: OwnerCall): void {
    if (question !== undefined) this.#ended(holder, question);
  }

  beforeHandling(host: OwnerHost): States | undefined {
    const counters = [...host.owner.counters()];
    if (counters.length > COMPARED_MAX) return undefined;
    // What is lent of it or to it changes how a bucket fills, so the state of such a counter moves as time passes.
    const still = counters.filter(({ lent, upstream }) => lent === undefined && upstream === undefined);
    return new Map(still.map(({ id, state }) => [id, state]));
  }

  handled(host: OwnerHost, call: OwnerCall, reply: OwnerReply, before: unknown): void {
    const { question } = call;
    for (const id of call.giveBacks ?? []) this.#takeBack(`${host.name} ${id}`);
    if (question === undefined) return;
    this.#ended(call.holder, question);
    if (reply.answer?.outcome === 'allowed') this.#charged(`${host.name} ${question.id}`, question);
    else if (isQuestionOnly(call)) this.#expectUnchanged(host, before as States | undefined);
  }

  /** What a verdict says that owners charged for it. */
  decided({ policies, outcome }: Verdict, winners: readonly Winner[], cost: number): void {
    if (outcome !== 'allowed') return;
    for (const [at, { counterId }] of winners.entries()) {
      if (policies[at]?.source === 'owner') add(this.#admittedUnits, counterId, cost);
    }
  }

  /** At the end of a run without losses: every charge that stands is that of an admitted request. */
  expectNoLostCharges(): void {
    for (const [counterId, charged] of this.#chargedUnits) {
      const admitted = this.#admittedUnits.get(counterId) ?? 0;
      if (charged !== admitted) {
        this.breach(
          `${counterId}: charged for ${charged} units, and admitted requests account for ${admitted}`,
        );
      }
    }
  }

  /** At the end of a run without losses: what was taken has been let go, since nothing is in progress any more. */
  expectNoSlots(host: OwnerHost): void {
    for (const { id, limit, state } of host.owner.counters()) {
      const held = countsSlots(limit) && typeof state === 'object' && 'ids' in state ? state.ids.length : 0;
      if (held > 0) this.breach(`${id}: ${held} slots are held by requests that are over`);
    }
  }

  #expectFewInFlight(holder: string, question: Question, deadlineMs: number): void {
    const nowMs = this.#options.time().elapsedMs;
    for (const { place, most } of placesOf(holder, question)) {
      const asked = this.#asked.get(place) ?? new Map<string, number>();
      this.#asked.set(place, asked);
      asked.set(question.id, nowMs);
      for (const [oldId, sentMs] of asked) {
        if (nowMs - sentMs < deadlineMs) break;
        asked.delete(oldId);
      }
      if (asked.size > most) this.breach(`${place}: ${asked.size} questions in flight`);
    }
  }

  #ended(holder: string, question: Question): void {
    for (const { place } of placesOf(holder, question)) this.#asked.get(place)?.delete(question.id);
  }

  #charged(key: string, question: Question): void {
    if (question.cost === 0 || this.#charges.has(key)) return;
    this.#charges.set(key, question);
    for (const { id, shadow } of question.counters) if (!shadow) add(this.#chargedUnits, id, question.cost);
  }

  #takeBack(key: string): void {
    const question = this.#charges.get(key);
    if (question === undefined) return;
    this.#charges.delete(key);
    for (const counter of question.counters) {
      if (!counter.shadow) add(this.#chargedUnits, counter.id, -question.cost);
    }
  }

  #expectUnchanged(host: OwnerHost, before: States | undefined): void {
    if (before === undefined) return;
    for (const { id, state } of host.owner.counters()) {
      if (before.has(id) && !isEqual(before.get(id), state)) this.breach(`${id}: a denial changed its state`);
    }
  }
}

/** Nothing in the call but a question whose denial should change nothing: no debt, no give-back, no lease, no word of slots or costs. */
function isQuestionOnly({ question, debts, giveBacks, slots, corrections }: OwnerCall): boolean {
  const riders = [debts, giveBacks, slots, corrections, question?.lease];
  return riders.every((rider) => rider === undefined);
}

/** Where a question is counted, and how many may be there: with those that begin with the same counter, and at each counter that it charges. */
function placesOf(holder: string, { counters, cost }: Question): readonly { place: string; most: number }[] {
  const group = { place: `${counters[0]?.id} and others in ${holder}`, most: IN_FLIGHT_MAX + 1 };
  if (cost === 0) return [group];
  return [group, ...counters.map(({ id }) => ({ place: `${id} in ${holder}`, most: IN_FLIGHT_MAX }))];
}

function isEqual(a: CounterState | undefined, b: CounterState | undefined): boolean {
  return a === b || JSON.stringify(a) === JSON.stringify(b);
}

function add(units: Map<string, number>, counterId: string, amount: number): void {
  units.set(counterId, (units.get(counterId) ?? 0) + amount);
}
