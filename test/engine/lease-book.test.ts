/**
 * What is lent and what is left are together never more than the one bucket that they came from: the real owner and real held leases
 * against one ideal bucket, over scripts that lose, repeat, delay and reorder what they say to each other.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { available, nowMsFor } from '../../src/core/algorithms.ts';
import { HeldLease, NO_LEASE } from '../../src/engine/lease.ts';
import type { OwnerReply, Question } from '../../src/engine/messages.ts';
import { Owner } from '../../src/engine/owner.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { winner } from './rules.ts';
import { callOf, START_MS } from './world.ts';

const HOLDERS = 3;

type Step =
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'step back'; readonly ms: number }
  | { readonly kind: 'spend'; readonly holder: number; readonly part: number }
  | { readonly kind: 'give back'; readonly holder: number }
  | { readonly kind: 'charge'; readonly part: number }
  | {
      readonly kind: 'ask' | 'return';
      readonly holder: number;
      readonly demand: number;
      readonly fate: Fate;
    };

interface Fate {
  readonly thereMs: number;
  readonly backMs: number;
  readonly lost: 'nothing' | 'question' | 'answer';
}

const holder = fc.nat({ max: HOLDERS - 1 });
const part = fc.constantFrom(1, 1, 0.5, 0.1);
/** One way. Questions and answers overtake each other all the same. */
const DELAY_MS_MAX = 10;
const WAITS = { usualMs: 2 * DELAY_MS_MAX, patienceMs: 150 };
const delayMs = fc.integer({ min: 0, max: DELAY_MS_MAX });
const lost = fc.constantFrom<Fate['lost']>('nothing', 'nothing', 'nothing', 'answer', 'question');
const fate = fc.record({ thereMs: delayMs, backMs: delayMs, lost });
const demand = fc.constantFrom(0, 5, 50, 400);
const ms = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 30 }) },
  { weight: 3, arbitrary: fc.integer({ min: 30, max: 400 }) },
  { weight: 1, arbitrary: fc.integer({ min: 400, max: 3_000 }) },
);

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('wait' as const), ms }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('step back' as const), ms }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('spend' as const), holder, part }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('give back' as const), holder }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('charge' as const), part }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('ask' as const), holder, demand, fate }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('return' as const), holder, demand, fate }) },
);

/** One owner, a few holders, and the bucket that they should have been: full at first, and charged whatever anybody spends. */
class Shop {
  readonly #winner: Winner;
  readonly #owner: Owner;
  readonly #leases: HeldLease[] = [];
  readonly #due: { readonly atMs: number; readonly act: () => void }[] = [];
  readonly #spent: { cost: number; takenMs: number }[][] = Array.from({ length: HOLDERS }, () => []);
  #ideal: number;
  #nowMs = 0;
  #clockStepMs = 0;
  #asked = 0;

  constructor(limit: { quota: number; windowMs: number; burst: number }) {
    this.#winner = winner({ ...limit, consistency: 'leased' });
    this.#ideal = limit.burst;
    this.#owner = new Owner(
      { incarnation: 'life', countersMax: 8, onChanged: () => {}, onDisplaced: () => {} },
      START_MS,
    );
    for (let at = 0; at < HOLDERS; at += 1) this.#leases.push(new HeldLease('life'));
  }

  get ideal(): number {
    return this.#ideal;
  }

  /** What could be spent at this instant, wherever it lies. */
  get real(): number {
    return this.#own + this.#leases.reduce((sum, lease) => sum + lease.held(this.#nowMs), 0);
  }

  /** What the owner's own bucket holds, once it has heard of a question, as it does before each decision. */
  get #own(): number {
    this.#handle(HOLDERS, this.#question(0));
    const counter = [...this.#owner.counters()][0]!;
    return available(counter.limit, counter.state, nowMsFor(counter.limit, this.#owner.clock));
  }

  do(step: Step): void {
    switch (step.kind) {
      case 'wait':
        this.#pass(step.ms);
        break;
      case 'step back':
        this.#clockStepMs -= step.ms;
        this.#owner.restInMs(this.#rawMs);
        break;
      case 'spend':
        this.#spend(step.holder, Math.floor(this.#leases[step.holder]!.held(this.#nowMs) * step.part));
        break;
      case 'give back':
        this.#giveBack(step.holder);
        break;
      case 'charge':
        this.#charge(Math.floor(Math.max(0, this.#own) * step.part));
        break;
      default:
        this.#send(step);
    }
  }

  get #rawMs(): number {
    return START_MS + this.#nowMs + this.#clockStepMs;
  }

  #pass(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#due.sort((one, other) => one.atMs - other.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#due.shift();
      this.#elapse(next.atMs);
      next.act();
    }
    this.#elapse(untilMs);
  }

  #elapse(nowMs: number): void {
    const { quota, windowMs, burst } = this.#winner.rule.limit!;
    this.#ideal = Math.min(burst, this.#ideal + ((nowMs - this.#nowMs) * quota) / windowMs);
    this.#nowMs = nowMs;
    // The owner's clock may step back, but never runs slower than time.
    this.#owner.restInMs(this.#rawMs);
  }

  #spend(holder: number, cost: number): void {
    if (!this.#leases[holder]!.take(cost, this.#nowMs)) return;
    this.#ideal -= cost;
    this.#spent[holder]!.push({ cost, takenMs: this.#nowMs });
  }

  #giveBack(holder: number): void {
    const taken = this.#spent[holder]!.pop();
    if (taken === undefined) return;
    const nowMs = this.#nowMs;
    this.#leases[holder]!.giveBack(taken.cost, { takenMs: taken.takenMs, nowMs });
    this.#ideal = Math.min(this.#winner.rule.limit!.burst, this.#ideal + taken.cost);
  }

  #charge(cost: number): void {
    const answer = this.#handle(HOLDERS, { ...this.#question(0), cost }).answer!;
    if (answer.outcome === 'allowed') this.#ideal -= cost;
  }

  #send({ kind, holder, demand, fate }: Extract<Step, { fate: Fate }>): void {
    const lease = this.#leases[holder]!;
    const sentMs = this.#nowMs;
    const known =
      lease.number === 0
        ? NO_LEASE
        : kind === 'ask'
          ? lease.report(sentMs, { ...WAITS, unitsPerSecond: demand })
          : lease.surrender(sentMs, WAITS.usualMs);
    const question = { ...this.#question(demand), lease: known };
    if (fate.lost === 'question') return;
    this.#later(fate.thereMs, () => {
      const grant = this.#handle(holder, question).answer!.lease;
      if (grant === undefined || fate.lost === 'answer') return;
      this.#later(fate.backMs, () => {
        const nowMs = this.#nowMs;
        if (sentMs + grant.lifeMs > nowMs) lease.accept(grant, { sentMs, nowMs, delayMs: 0 });
      });
    });
  }

  #later(delayMs: number, act: () => void): void {
    this.#due.push({ atMs: this.#nowMs + delayMs, act });
  }

  #question(unitsPerSecond: number): Question {
    this.#asked += 1;
    const { counterId, rule } = this.#winner;
    const counters = [{ id: counterId, limit: rule.limit!, shadow: false, unitsPerSecond }];
    return { id: `question ${this.#asked}`, cost: 0, counters };
  }

  #handle(holder: number, question: Question): OwnerReply {
    return this.#owner.handle(callOf({ holder: `isolate-${holder}`, question }), this.#rawMs);
  }
}

const limits = fc.constantFrom(
  { quota: 100, windowMs: 1_000, burst: 100 },
  { quota: 100, windowMs: 1_000, burst: 10 },
  { quota: 50, windowMs: 1_000, burst: 400 },
  { quota: 600, windowMs: 60_000, burst: 60 },
);

describe('an owner and its holders, against one ideal bucket', () => {
  // What a holder's lease refills while a grant is on its way may find the lease full when it comes: that is the round trip.
  test('property: together they never hold more than one round trip adds, whatever is lost or out of order', () => {
    fc.assert(
      fc.property(limits, fc.array(step, { minLength: 1, maxLength: 80, size: 'max' }), (limit, steps) => {
        const shop = new Shop(limit);
        const roundTrip = (2 * DELAY_MS_MAX * limit.quota) / limit.windowMs;
        for (const each of steps) {
          shop.do(each);
          expect(shop.real).toBeLessThanOrEqual(shop.ideal + roundTrip + 1e-3);
        }
      }),
      { numRuns: 1_500 },
    );
  });
});
