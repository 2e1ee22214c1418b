/** What the engine remembers is bounded: one more than its stated maximum, and the one heard of longest ago is forgotten. */
import { describe, expect, test } from 'vitest';
import { charge, used } from '../../src/core/algorithms.ts';
import { startClock } from '../../src/core/clock.ts';
import { Known } from '../../src/engine/known.ts';
import { NO_LEASE } from '../../src/engine/lease.ts';
import { LeaseBook, type LentCounter } from '../../src/engine/lease-book.ts';
import { Leases } from '../../src/engine/leases.ts';
import { Links } from '../../src/engine/links.ts';
import type { OwnerCall } from '../../src/engine/messages.ts';
import { Overflow } from '../../src/engine/overflow.ts';
import { questionOf } from './questions.ts';
import { DAY_MS, limitOf, winner } from './rules.ts';
import { callOf, World } from './world.ts';

function times(count: number, act: (name: string) => void): void {
  for (let at = 0; at < count; at += 1) act(`other ${at}`);
}

describe('an isolate remembers', () => {
  test('the demand for 16,384 counters', () => {
    const firstAfter = (others: number) => {
      const leases = new Leases(
        () => 0,
        () => 0.5,
      );
      leases.arrive([winner({ quota: 1, caller: 'first' })], 1);
      times(others, (caller) => leases.arrive([winner({ quota: 1, caller })], 1));
      return leases.unitsPerSecond(winner({ quota: 1, caller: 'first' }).counterId) > 0;
    };
    expect([firstAfter(16_383), firstAfter(16_384)]).toEqual([true, false]);
  });

  test('leases of 8,192 groups of counters', () => {
    const firstAfter = (others: number) => {
      const leases = new Leases(
        () => 0,
        () => 0.5,
      );
      const groupOf = (caller: string) => {
        const one = winner({ quota: 100, caller, consistency: 'leased' });
        return { owner: one.owner, enforced: [one], shadow: [] };
      };
      const terms = {
        units: 1,
        unitsPerMs: 0.001,
        capacity: 10,
        lifeMs: 1_000,
        renewInMs: 500,
        isScarce: false,
      };
      const accept = (caller: string) =>
        leases.accept(
          groupOf(caller),
          { number: 1, ...terms },
          { incarnation: 'life', sentMs: 0, version: { activation: 0, builtAtMs: 0 } },
        );
      accept('first');
      times(others, accept);
      return leases.last(groupOf('first')) !== undefined;
    };
    expect([firstAfter(8_191), firstAfter(8_192)]).toEqual([true, false]);
  });

  test('8,192 owners, and counts what it had to tell the one that it forgets', () => {
    const lost = (others: number) => {
      const counted: [string, number][] = [];
      const links = new Links((event, amount) => counted.push([event, amount]));
      const admission = { limit: limitOf({ quota: 5 }), cost: 1, unitsPerMs: 0, untilMs: DAY_MS };
      links.to({ name: 'first', shared: false }).debts.admitted({ counterId: 'c', ...admission }, 0);
      times(others, (name) => links.to({ name, shared: false }));
      return counted;
    };
    expect([lost(8_191), lost(8_192)]).toEqual([[], [['debt_lost', 1]]]);
  });

  test('the levels of 16,384 counters', () => {
    const firstAfter = (others: number) => {
      const known = new Known();
      const decision = { outcome: 'allowed', delayMs: 0 } as const;
      const told = { decision, limit: limitOf({ quota: 5 }), remaining: 3, resetMs: 7_000, share: 1 };
      const learn = (id: string) =>
        known.learn(
          { id, ...told, fitsAgainInMs: 0, activeHolders: 1 },
          { incarnation: 'life', sentMs: 0 },
          0,
        );
      learn('first');
      times(others, learn);
      return known.level('first', 0)?.remaining;
    };
    expect([firstAfter(16_383), firstAfter(16_384)]).toEqual([3, undefined]);
  });

  test('what overflowed in 8 pieces', () => {
    const piecesOf = (moments: number) => {
      const overflow = new Overflow();
      for (let moment = 0; moment < moments; moment += 1) overflow.add(1, moment * 100, moment * 100);
      return overflow.take(moments * 100, 0).length;
    };
    expect(piecesOf(8)).toBe(8);
    for (let moments = 9; moments < 40; moments += 1) expect(piecesOf(moments)).toBeLessThanOrEqual(8);
  });
});

describe('an owner remembers', () => {
  const rule = winner({ quota: 1_000_000, algorithm: 'fixed_window', windowMs: DAY_MS });
  const slots = winner({ quota: 1_000_000, algorithm: 'concurrency', policy: 'slots' });

  /** How many units a word charges that is said a second time, once so many others have been said. */
  function saidAgain(word: (id: string) => Partial<OwnerCall>, others: number): number {
    const world = new World();
    const { owner } = world.owner();
    const say = (id: string) => owner.handle(callOf(word(id)), owner.clock.rawMs);
    say('first');
    times(others, say);
    const before = world.used(rule);
    say('first');
    return world.used(rule) - before;
  }

  test.each<readonly [string, (id: string) => Partial<OwnerCall>]>([
    ['questions', (id) => ({ question: questionOf(id, [rule]) })],
    [
      'corrections and debts',
      (id) => ({ debts: [{ id, counterId: rule.counterId, limit: rule.rule.limit!, units: 1 }] }),
    ],
  ])('16,384 %s, and does none of them twice', (_, word) => {
    expect([saidAgain(word, 16_383), saidAgain(word, 16_384)]).toEqual([0, 1]);
  });

  test('16,384 slots that were let go, and takes none of them again', () => {
    const takenAgain = (others: number) => {
      const world = new World();
      const { owner } = world.owner();
      const counters = [{ id: slots.counterId, limit: slots.rule.limit! }];
      const say = (id: string, isHeld: boolean) =>
        owner.handle(callOf({ slots: [{ id, counters, isHeld }] }), owner.clock.rawMs);
      say('first', false);
      times(others, (id) => say(id, false));
      say('first', true);
      return world.used(slots);
    };
    expect([takenAgain(16_383), takenAgain(16_384)]).toEqual([0, 1]);
  });

  test('8 grants that a holder may be going by, of more the oldest two as one', () => {
    const heardOfTheFirst = (grants: number) => {
      const clock = startClock(0);
      const limit = limitOf({ quota: 1_000, algorithm: 'fixed_window', windowMs: DAY_MS });
      const counter: LentCounter = { limit, state: charge(limit, undefined, 100, 0) };
      const book = new LeaseBook(0);
      const terms = {
        units: 10,
        unitsPerMs: 0,
        capacity: 10,
        lifeMs: 1_000,
        renewInMs: 500,
        isScarce: false,
      };
      for (let number = 1; number <= grants; number += 1)
        book.lend(counter, 'holder', { number, ...terms }, clock);
      const before = used(limit, counter.state, 0);
      book.hear(counter, 'holder', { ...NO_LEASE, number: 1, returned: [{ units: 5, agoMs: 0 }] }, clock);
      return before - used(limit, counter.state, 0);
    };
    expect([heardOfTheFirst(8), heardOfTheFirst(9)]).toEqual([5, 0]);
  });
});
