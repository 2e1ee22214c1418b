/**
 * The owner's part in leases, talked to directly: several counters, shadow counters, bad messages, lives of the owner, rules that change.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type LeaseGrant, type LeaseReport, NO_LEASE } from '../../src/engine/lease.ts';
import type { Answer, Question } from '../../src/engine/messages.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { Desk, questionOf } from './questions.ts';
import { MINUTE_MS, SECOND_MS, winner } from './rules.ts';
import { START_MS } from './world.ts';

const rule = winner({ quota: 1_000, windowMs: SECOND_MS });

/** A desk whose holders borrow. */
class Pawn extends Desk {
  #borrowed = 0;

  /** The incarnation of the owner, as its replies say it. */
  get incarnation(): string {
    return this.tell({}).incarnation;
  }

  borrow(
    winners: readonly Winner[],
    { holder = 'isolate-0', demand = 100, cost = 0, id, version, ...report }: Borrowing = {},
  ): Answer {
    this.#borrowed += 1;
    const question: Question = {
      ...questionOf(id ?? `borrowing ${this.#borrowed}`, winners, { cost, unitsPerSecond: demand }),
      lease: { ...NO_LEASE, patienceMs: SECOND_MS, ...report },
    };
    return this.tell({ holder, question, ...(version && { version }) }).answer!;
  }

  /** What the owner's own bucket holds. */
  left(of: Winner): number {
    return this.ask([of], { cost: 0, holder: 'nobody', unitsPerSecond: 0 }).counters[0]!.remaining;
  }

  has(grant: LeaseGrant): Partial<LeaseReport> {
    return { incarnation: this.incarnation, number: grant.number, held: grant.units, patienceMs: 150 };
  }
}

interface Borrowing extends Partial<LeaseReport> {
  readonly holder?: string;
  readonly demand?: number;
  readonly cost?: number;
  readonly id?: string;
  readonly version?: { activation: number; builtAtMs: number };
}

describe('lending', () => {
  test('takes the units out of the counter at once, beside what the question costs', () => {
    const desk = new Pawn();
    const { lease, outcome } = desk.borrow([rule], { cost: 1 });
    expect(outcome).toBe('allowed');
    expect(lease!.units).toBeGreaterThan(1);
    expect(desk.left(rule)).toBe(Math.floor(999 - lease!.units - (lease!.capacity - lease!.units)));
  });

  test('for as long as ever to an isolate of an earlier release, which does not say how long it waits', () => {
    const lifeMs = (patienceMs: number) => new Pawn().borrow([rule], { patienceMs }).lease!.lifeMs;
    expect(lifeMs(0)).toBe(SECOND_MS);
    expect(lifeMs(150)).toBeLessThan(SECOND_MS);
  });

  test('numbers its grants', () => {
    const desk = new Pawn();
    const numbers = [1, 2, 3].map(
      (holder) => desk.borrow([rule], { holder: `isolate-${holder}` }).lease!.number,
    );
    expect(numbers[1]).toBeGreaterThan(numbers[0]!);
    expect(numbers[2]).toBeGreaterThan(numbers[1]!);
  });

  test('R11 what is lent and never heard of again is missing until it ends, and no longer', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 900 });
    await desk.wait(lease!.lifeMs - 1);
    expect(desk.left(rule)).toBeLessThanOrEqual(1_000 - lease!.capacity);
    await desk.wait(1 + SECOND_MS);
    expect(desk.left(rule)).toBe(1_000);
  });

  test('after the leases have ended the bucket refills at its whole rate, also while nobody asks', async () => {
    const desk = new Pawn();
    desk.ask([rule], { cost: 1_000 });
    const { lease } = desk.borrow([rule], { demand: 5_000 });
    expect(lease!.unitsPerMs).toBeCloseTo(1, 9);
    await desk.wait(lease!.lifeMs + 700);
    expect(desk.left(rule)).toBeCloseTo(700, 0);
  });

  test('leases that end one after the other give back their rates one after the other', async () => {
    const desk = new Pawn();
    desk.ask([rule], { cost: 1_000 });
    const first = desk.borrow([rule], { holder: 'a', demand: 300 }).lease!;
    await desk.wait(400);
    const second = desk.borrow([rule], { holder: 'b', demand: 300 }).lease!;
    const before = desk.left(rule);
    await desk.wait(2_000);
    const [a, b] = [first.lifeMs - 400, second.lifeMs];
    const lent = a * first.unitsPerMs + b * second.unitsPerMs;
    expect(desk.left(rule)).toBeCloseTo(Math.min(1_000, before + 2_000 - lent), -1);
  });

  test('a rate that a holder gives up is lent to the next at once, and not when the holder has asked again', () => {
    const lentTo = (unitsPerMs?: number) => {
      const desk = new Pawn();
      const fast = winner({ quota: 1_000, windowMs: SECOND_MS });
      const first = desk.borrow([fast], { holder: 'a', demand: 900 }).lease!;
      const given = unitsPerMs === undefined ? {} : { unitsPerMs };
      desk.borrow([fast], { holder: 'a', demand: 100, ...desk.has(first), ...given });
      return desk.borrow([fast], { holder: 'b', demand: 800 }).lease!.unitsPerMs;
    };
    expect(lentTo()).toBeLessThan(0.1);
    expect(lentTo(0.11)).toBeGreaterThan(0.7);
    // More than it was lent it cannot keep.
    expect(lentTo(1e6)).toBe(lentTo());
  });

  test('asking often does not stop a slow refill', async () => {
    const desk = new Pawn();
    const slow = winner({ quota: 1_000, windowMs: SECOND_MS });
    desk.ask([slow], { cost: 1_000 });
    // All but a thousandth of the rate is lent.
    desk.borrow([slow], { holder: 'a', demand: 908.1, patienceMs: 0 });
    for (let ms = 0; ms < 900; ms += 1) {
      await desk.wait(1);
      desk.left(slow);
    }
    const often = desk.left(slow);
    const once = new Pawn();
    once.ask([slow], { cost: 1_000 });
    once.borrow([slow], { holder: 'a', demand: 908.1, patienceMs: 0 });
    await once.wait(900);
    expect(often).toBe(once.left(slow));
  });

  test('B25 of a debt nothing is lent but a part of what comes in, and the debt stays', () => {
    const desk = new Pawn();
    desk.ask([rule], { cost: 0 });
    desk.tell({ debts: [{ id: 'debt', counterId: rule.counterId, limit: rule.rule.limit!, units: 1_200 }] });
    const before = desk.used(rule);
    expect(desk.borrow([rule]).lease?.units ?? 0).toBe(0);
    expect(desk.used(rule)).toBeCloseTo(before, 6);
  });

  test('a question that is repeated is lent to once, and told the same', () => {
    const desk = new Pawn();
    for (const cost of [0, 1]) {
      const first = desk.borrow([rule], { id: `same of ${cost}`, cost });
      const left = desk.left(rule);
      expect(desk.borrow([rule], { id: `same of ${cost}`, cost })).toEqual(first);
      expect(desk.left(rule)).toBe(left);
    }
  });

  test('a question that was taken back before it came is lent nothing', () => {
    const desk = new Pawn();
    desk.tell({ giveBacks: ['void'] });
    expect(desk.borrow([rule], { id: 'void', cost: 1 }).lease).toBeUndefined();
    expect(desk.left(rule)).toBe(1_000);
  });

  test.each([
    ['a queue', winner({ quota: 1_000, algorithm: 'leaky_bucket', maxDelayMs: 100 })],
    ['a sliding window', winner({ quota: 1_000, algorithm: 'sliding_window' })],
    ['slots', winner({ quota: 1_000, algorithm: 'concurrency' })],
    ['a burst of less than a tenth of a second', winner({ quota: 1_000, windowMs: SECOND_MS, burst: 90 })],
  ])('is refused, whatever the holder thinks: %s', (_, unlendable) => {
    const desk = new Pawn();
    expect(desk.borrow([unlendable]).lease).toBeUndefined();
    expect(desk.borrow([rule, unlendable]).lease).toBeUndefined();
    expect(desk.left(rule)).toBe(1_000);
  });
});

describe('what is lent no more', () => {
  test('counts until the holder has said so, or until it has promised not to go by it any more', async () => {
    const desk = new Pawn();
    desk.ask([rule], { cost: 1_000 });
    const { lease } = desk.borrow([rule], { demand: 5_000 });
    expect(lease!.unitsPerMs).toBeCloseTo(1, 9);
    const next = desk.borrow([rule], { ...desk.has(lease!), held: 0, demand: 100 }).lease!;
    expect(next.unitsPerMs).toBeLessThan(0.2);
    await desk.wait(150);
    expect(desk.left(rule)).toBe(0);
    await desk.wait(100);
    expect(desk.left(rule)).toBeCloseTo(100 * (1 - next.unitsPerMs), -1);
  });

  test('nor is it lent to others before that, whatever its holder asks', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { holder: 'a', demand: 5_000 });
    desk.borrow([rule], { ...desk.has(lease!), holder: 'a', demand: 10 });
    const early = desk.borrow([rule], { holder: 'b', demand: 5_000 }).lease;
    expect(early?.unitsPerMs ?? 0).toBeLessThan(0.01);
    await desk.wait(200);
    const late = desk.borrow([rule], { holder: 'b', demand: 5_000 }).lease!;
    expect(late.unitsPerMs).toBeGreaterThan(0.9);
    // One that does not know of its lease, because no answer has come.
    const lost = desk.borrow([rule], { holder: 'a', demand: 5_000 }).lease;
    expect(late.unitsPerMs + (lost?.unitsPerMs ?? 0)).toBeLessThanOrEqual(1 + 1e-9);
  });
});

describe('what comes back', () => {
  test('an unspent lease is worth what it was, once', () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule]);
    const final = { ...desk.has(lease!), isFinal: true };
    expect(desk.borrow([rule], final).lease).toBeUndefined();
    expect(desk.left(rule)).toBe(1_000);
    desk.ask([rule], { cost: 500 });
    desk.borrow([rule], final);
    desk.borrow([rule], { ...final, returned: [{ units: 400, agoMs: 0 }] });
    expect(desk.left(rule)).toBe(500);
  });

  test('R11 nothing of a lease that has ended', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule]);
    desk.ask([rule], { cost: desk.left(rule) });
    await desk.wait(lease!.lifeMs);
    const left = desk.left(rule);
    desk.borrow([rule], { ...desk.has(lease!), returned: [{ units: 50, agoMs: 0 }], isFinal: true });
    expect(desk.left(rule)).toBe(left);
  });

  test('a final report does not end a lease that was renewed since: the holder will hear of it', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 500 });
    const renewed = desk.borrow([rule], { ...desk.has(lease!), held: 0, demand: 500 }).lease!;
    desk.borrow([rule], { ...desk.has(lease!), held: 0, isFinal: true, demand: 500 });
    desk.ask([rule], { cost: desk.left(rule) });
    const left = desk.left(rule);
    await desk.wait(100);
    expect(desk.left(rule) - left).toBeLessThanOrEqual(100 * (1 - renewed.unitsPerMs) + 1);
  });

  test('what overflowed while the bucket was full has nowhere to go', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 500 });
    await desk.wait(400);
    desk.ask([rule], { cost: desk.left(rule) });
    desk.borrow([rule], { ...desk.has(lease!), returned: [{ units: 200, agoMs: 400 }], demand: 500 });
    expect(desk.left(rule)).toBe(0);
  });

  test('two that return into the same room do not both find it', async () => {
    const desk = new Pawn();
    const [a, b] = ['a', 'b'].map((holder) => desk.borrow([rule], { holder, demand: 300 }).lease!);
    await desk.wait(10);
    desk.ask([rule], { cost: 30 });
    await desk.wait(1);
    desk.ask([rule], { cost: desk.left(rule) });
    await desk.wait(1);
    const before = desk.left(rule);
    const overflow = { returned: [{ units: 60, agoMs: 1 }], demand: 300 };
    const first = desk.borrow([rule], { ...desk.has(a!), ...overflow, holder: 'a', held: a!.capacity });
    const second = desk.borrow([rule], { ...desk.has(b!), ...overflow, holder: 'b', held: b!.capacity });
    const came = desk.left(rule) + first.lease!.units + second.lease!.units - before;
    expect(came).toBeGreaterThan(25);
    expect(came).toBeLessThanOrEqual(31);
  });

  test('what overflowed while there was room comes back', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 500 });
    desk.ask([rule], { cost: desk.left(rule) });
    await desk.wait(100);
    const report = {
      ...desk.has(lease!),
      held: lease!.capacity,
      returned: [{ units: 40, agoMs: 80 }],
      demand: 500,
    };
    const left = desk.left(rule);
    const { lease: renewed } = desk.borrow([rule], report);
    expect(desk.left(rule) + renewed!.units).toBeCloseTo(left + 40, -1);
  });

  test('a lease ends with its window', async () => {
    const desk = new Pawn();
    await desk.wait(300);
    expect(START_MS % SECOND_MS).toBe(0);
    const window = winner({ quota: 1_000, windowMs: SECOND_MS, algorithm: 'fixed_window' });
    expect(desk.borrow([window]).lease!.lifeMs).toBe(700);
    await desk.wait(700);
    expect(desk.left(window)).toBe(1_000);
  });

  test('I09 a window is given back what was lent in it, and the next one nothing', async () => {
    const desk = new Pawn();
    const window = winner({ quota: 1_000, windowMs: SECOND_MS, algorithm: 'fixed_window' });
    const { lease } = desk.borrow([window]);
    expect(desk.left(window)).toBe(1_000 - lease!.units);
    desk.borrow([window], { ...desk.has(lease!), isFinal: true });
    expect(desk.left(window)).toBe(1_000);
    const again = desk.borrow([window]).lease!;
    await desk.wait(SECOND_MS);
    desk.ask([window], { cost: 600 });
    desk.borrow([window], { ...desk.has(again), returned: [{ units: 10, agoMs: 0 }], isFinal: true });
    expect(desk.left(window)).toBe(400);
  });
});

describe('several counters of one question', () => {
  const minute = winner({ policy: 'minute', quota: 6_000, windowMs: MINUTE_MS });
  const day = winner({ policy: 'day', quota: 60_000, windowMs: 60 * MINUTE_MS, burst: 100 });

  test('lend what the narrowest allows, and each lends exactly that', () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([minute, day], { demand: 5_000 });
    expect(new Pawn().borrow([minute], { demand: 5_000 }).lease!.capacity).toBeGreaterThan(100);
    expect(lease!.capacity).toBeLessThanOrEqual(100);
    expect(lease!.capacity).toBe(new Pawn().borrow([day], { demand: 5_000 }).lease!.capacity);
    expect(lease!.unitsPerMs).toBeLessThanOrEqual(60_000 / (60 * MINUTE_MS));
    expect(desk.left(minute)).toBe(Math.floor(Math.min(6_000 - lease!.units, 6_000 - lease!.capacity)));
    expect(desk.left(day)).toBe(Math.floor(Math.min(100 - lease!.units, 100 - lease!.capacity)));
  });

  test('nothing when one of them has nothing', () => {
    const desk = new Pawn();
    const window = winner({ policy: 'window', quota: 50, algorithm: 'fixed_window' });
    desk.ask([window], { cost: 50 });
    const { lease, outcome } = desk.borrow([minute, window], { cost: 1 });
    expect([lease, outcome]).toEqual([undefined, 'denied']);
    expect(desk.left(minute)).toBe(6_000);
  });

  test('are another lease than each by itself', async () => {
    const desk = new Pawn();
    desk.ask([minute], { cost: 6_000 });
    const both = desk.borrow([minute, day]).lease!;
    const one = desk.borrow([minute]).lease!;
    const final = { incarnation: desk.incarnation, number: one.number, isFinal: true };
    desk.borrow([minute], final);
    await desk.wait(900);
    expect(desk.left(minute)).toBe(Math.floor(900 * (0.1 - both.unitsPerMs)));
  });
});

describe('shadow counters', () => {
  const shadow = winner({ policy: 'new', quota: 10, shadow: true });

  test('never limit a lease, and are charged what was spent', () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule, shadow]);
    expect(lease!.capacity).toBeGreaterThan(10);
    expect(desk.used(shadow)).toBe(0);
    const next = desk.borrow([rule, shadow], { ...desk.has(lease!), spent: 4 });
    expect(desk.used(shadow)).toBe(4);
    expect(next.counters[1]!.decision.outcome).toBe('allowed');
  });

  test('S03 say that they would have denied, and are charged no more than they held', () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule, shadow]);
    const next = desk.borrow([rule, shadow], { ...desk.has(lease!), spent: 400 });
    expect(next.counters[1]!.decision.outcome).toBe('denied');
    expect(next.outcome).toBe('allowed');
    expect(desk.used(shadow)).toBe(10);
  });
});

describe('lives of the owner', () => {
  test('what was lent before an eviction still counts, until it ends', async () => {
    const desk = new Pawn();
    // Slow enough to be written at all.
    const slow = winner({ quota: 6_000, windowMs: MINUTE_MS });
    desk.ask([slow], { cost: 5_000 });
    const { lease } = desk.borrow([slow], { demand: 200 });
    await desk.wait(SECOND_MS - 1);
    const again = desk.borrow([slow], { ...desk.has(lease!), demand: 200 }).lease!;
    await desk.wait(SECOND_MS);
    desk.owner.restart();
    const left = desk.left(slow);
    await desk.wait(1);
    expect(desk.left(slow)).toBe(left);
    await desk.wait(again.lifeMs);
    expect(desk.left(slow)).toBeGreaterThan(left + 50);
  });

  test('a write that comes long after the last question does not forget the time that parts were lent', async () => {
    const desk = new Pawn();
    const slow = winner({ quota: 6_000, windowMs: MINUTE_MS });
    desk.ask([slow], { cost: 3_000 });
    await desk.wait(100);
    const { lease } = desk.borrow([slow], { demand: 200 });
    const own = desk.left(slow);
    await desk.wait(800);
    desk.ask([winner({ policy: 'another', quota: 6_000 })]);
    // The write is due a second after the first.
    await desk.wait(100);
    desk.owner.restart();
    expect(desk.left(slow)).toBeCloseTo(own + 900 * (0.1 - lease!.unitsPerMs), -1);
  });

  test("a report on a lease of an earlier life is nobody's", async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule]);
    const report = { ...desk.has(lease!), isFinal: true };
    desk.owner.restart();
    const next = desk.borrow([rule]).lease!;
    expect(next.number).toBe(report.number);
    const left = desk.left(rule);
    desk.borrow([rule], report);
    expect(desk.left(rule)).toBe(left);
  });

  test('a small bucket that was empty when it was lent is not at rest as soon as the lease has ended', async () => {
    const desk = new Pawn();
    const small = winner({ quota: 1_000, windowMs: SECOND_MS, burst: 100 });
    desk.ask([small], { cost: 100 });
    const { lease } = desk.borrow([small], { demand: 5_000 });
    await desk.wait(lease!.lifeMs + 10);
    desk.owner.owner.sweep(START_MS + desk.world.time.elapsedMs);
    expect(desk.left(small)).toBe(10);
  });

  test('a counter of which something is lent does not rest, nor does it rest before it could be full', async () => {
    const desk = new Pawn();
    desk.ask([rule], { cost: 500 });
    const { lease } = desk.borrow([rule], { demand: 5_000 });
    await desk.wait(lease!.lifeMs - 1);
    desk.owner.owner.sweep(START_MS + desk.world.time.elapsedMs);
    expect(desk.left(rule)).toBeLessThan(1_000);
    await desk.wait(5 * SECOND_MS);
    desk.owner.owner.sweep(START_MS + desk.world.time.elapsedMs);
    expect([...desk.owner.owner.counters()]).toEqual([]);
  });
});

describe('rules that change', () => {
  const next = { activation: 2, builtAtMs: 0 };

  test('L11 a lower limit is lent from at once; what is out is over when it ends, and leaves no lockout', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 5_000 });
    const lower = winner({ quota: 100, windowMs: SECOND_MS });
    const lent = desk.borrow([lower], { ...desk.has(lease!), version: next, demand: 5_000 }).lease;
    expect(lent?.capacity ?? 0).toBeLessThanOrEqual(100);
    expect(lent?.unitsPerMs ?? 0).toBeLessThanOrEqual(0.1);
    await desk.wait(lease!.lifeMs + SECOND_MS);
    expect(desk.ask([lower], { version: next }).counters[0]!.remaining).toBe(99);
  });

  test('a limit of 0 lends nothing', () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule]);
    const none = winner({ quota: 0, windowMs: SECOND_MS });
    expect(desk.borrow([none], { ...desk.has(lease!), version: next }).lease).toBeUndefined();
  });

  test('an older ruleset does not bring its numbers back', () => {
    const desk = new Pawn();
    desk.borrow([winner({ quota: 100, windowMs: SECOND_MS })], { version: next, demand: 5_000 });
    const { lease } = desk.borrow([rule], { holder: 'b', demand: 5_000 });
    expect(lease?.capacity ?? 0).toBeLessThanOrEqual(100);
  });
});

describe('absurd messages', () => {
  const absurd = fc.oneof(
    fc.constantFrom(
      Number.NaN,
      Number.POSITIVE_INFINITY,
      Number.NEGATIVE_INFINITY,
      -1,
      -1e300,
      1e300,
      Number.MAX_VALUE,
      Number.MIN_VALUE,
      undefined as unknown as number,
      'ten' as unknown as number,
      null as unknown as number,
    ),
    fc.double(),
  );
  const report = fc.record({
    number: absurd,
    held: absurd,
    returned: fc.oneof(absurd as fc.Arbitrary<never>, fc.array(fc.record({ units: absurd, agoMs: absurd }))),
    spent: absurd,
    largestCost: absurd,
    patienceMs: absurd,
    unitsPerMs: absurd,
    demand: absurd,
    isFinal: fc.boolean(),
    ours: fc.boolean(),
    newest: fc.boolean(),
  });

  test('property: never give a counter more than it had, nor a number that is none', async () => {
    const shadow = winner({ policy: 'new', quota: 10, shadow: true });
    await fc.assert(
      fc.asyncProperty(fc.array(report, { minLength: 1, maxLength: 12 }), async (reports) => {
        const desk = new Pawn();
        let lease = desk.borrow([rule, shadow]).lease!;
        desk.ask([rule], { cost: desk.left(rule) });
        for (const { ours, newest, ...each } of reports) {
          const incarnation = ours ? desk.incarnation : 'another';
          const answer = desk.borrow([rule, shadow], {
            ...each,
            incarnation,
            ...(newest && { number: lease.number }),
          });
          lease = answer.lease ?? lease;
          for (const figure of [lease.units, lease.unitsPerMs, lease.capacity, lease.lifeMs, lease.renewInMs])
            expect(figure).toSatisfy((value: number) => value >= 0 && value <= 1e7);
          for (const counter of answer.counters) {
            expect(counter.share).toSatisfy((share: number) => share >= 0 && share <= 1);
            expect(counter.remaining).toSatisfy((left: number) => left >= 0 && left <= 1_000);
          }
        }
        // Whatever was claimed: once all leases have ended the counters are whole, and lend to others as ever.
        await desk.wait(MINUTE_MS);
        expect([desk.left(rule), desk.used(shadow) >= 0]).toEqual([1_000, true]);
        const other = desk.borrow([rule], { holder: 'another', demand: 500 }).lease!;
        expect(other.unitsPerMs).toBeGreaterThan(0.4);
        expect(other.units).toBeGreaterThan(10);
      }),
      { numRuns: 400 },
    );
  });

  test('a holder that returns what it never had gets no more than a lease can have held', async () => {
    const desk = new Pawn();
    const { lease } = desk.borrow([rule], { demand: 100 });
    desk.ask([rule], { cost: desk.left(rule) });
    await desk.wait(1);
    desk.borrow([rule], {
      ...desk.has(lease!),
      held: 1e9,
      returned: [{ units: 1e9, agoMs: 0 }],
      isFinal: true,
    });
    expect(desk.left(rule)).toBeLessThanOrEqual(2 * lease!.capacity + lease!.units + 2);
  });
});

test('a table of leases that is full lends to nobody new, and renews what is there', () => {
  // One caller's own owner would be split long before.
  const shared = class extends Pawn {
    override get owner() {
      return this.world.owner('shared/1');
    }
  };
  const desk = new shared();
  const large = winner({ quota: 1_000_000, windowMs: SECOND_MS });
  for (let holder = 0; holder < 4_096; holder += 1)
    desk.borrow([large], { holder: `isolate-${holder}`, demand: 10 });
  expect(desk.borrow([large], { holder: 'one too many', demand: 10 }).lease).toBeUndefined();
  expect(desk.borrow([large], { holder: 'isolate-7', demand: 10 }).lease).toBeDefined();
});
