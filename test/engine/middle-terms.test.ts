/** What a root lends to a middle owner: what must hold whatever the constants are, and a property over any number of them. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { capacity } from '../../src/core/decision.ts';
import { type MiddleAsk, type MiddleTerms, middleTerms } from '../../src/engine/middle-terms.ts';
import { limitOf, SECOND_MS } from './rules.ts';

const limit = limitOf({ quota: 1_000, windowMs: SECOND_MS });
const NOTHING = { unitsPerMs: 0, capacity: 0 };

type Parts = Partial<Omit<MiddleAsk, 'demand' | 'recent'>> & {
  own?: number;
  total?: number;
  /** What was asked for before a pause. */
  before?: { own: number; total: number };
};

/** A middle owner that has been lent to for long, of which 800 a second are asked; nobody else asks. */
function terms({ own = 800, total = own, before = { own, total }, ...parts }: Parts = {}): MiddleTerms {
  return middleTerms({
    limit,
    level: 1_000,
    lentToOthers: NOTHING,
    unitsPerMs: 0,
    held: 0,
    grants: 10,
    largestCost: 1,
    isShort: false,
    isPlenty: true,
    ...parts,
    demand: { unitsPerSecond: own, totalUnitsPerSecond: total },
    recent: { unitsPerSecond: before.own, totalUnitsPerSecond: before.total },
  });
}

describe('whoever has all the demand', () => {
  test('holds nearly all of the room, all that is in it, and as much of the rate as it may need', () => {
    const { units, unitsPerMs, capacity: room, isScarce, share } = terms();
    expect(room).toBeGreaterThanOrEqual(900);
    expect(room).toBeLessThan(1_000);
    expect(units).toBeGreaterThanOrEqual(900);
    expect(unitsPerMs).toBe(1);
    expect([isScarce, share]).toEqual([false, 1]);
  });

  test('needs no more units when it has them in hand', () => {
    const { units, capacity: room } = terms({ held: 950, level: 50 });
    expect(room).toBeCloseTo(950, 9);
    expect(units).toBe(0);
  });

  test('is lent at least so much more rate than it asks for that it can ask for more', () => {
    expect(terms({ own: 400, isPlenty: false }).unitsPerMs).toBeGreaterThan(0.45);
  });
});

describe('of several', () => {
  test('each has rate and room by its part of the demand', () => {
    const [large, small] = [600, 200].map((own) => terms({ own, total: 800 }));
    expect(large!.share).toBe(0.75);
    expect(small!.share).toBe(0.25);
    expect(large!.capacity / small!.capacity).toBeCloseTo(3, 9);
    expect(large!.unitsPerMs / small!.unitsPerMs).toBeCloseTo(3, 9);
  });

  test('one that nobody asks is lent no rate, and room for a request', () => {
    const { unitsPerMs, capacity: room } = terms({ own: 0, total: 800, largestCost: 7 });
    expect([unitsPerMs, room]).toEqual([0, 7]);
  });

  test('none is lent what others have', () => {
    const { unitsPerMs, capacity: room } = terms({ lentToOthers: { unitsPerMs: 0.9, capacity: 990 } });
    expect(unitsPerMs).toBeCloseTo(0.1, 9);
    expect(room).toBeCloseTo(10, 9);
  });

  test('none keeps much more than its part once more is asked for than comes in: whoever has too little finds the rest', () => {
    const scarce = { own: 600, total: 2_000, level: 0, isShort: true };
    const rateOf = (unitsPerMs: number, others = 0) =>
      terms({ ...scarce, unitsPerMs, lentToOthers: { unitsPerMs: others, capacity: 0 } }).unitsPerMs;
    expect(terms(scarce).isScarce).toBe(true);
    for (const far of [0, 0.2, 0.26, 0.38, 0.6]) expect(rateOf(far)).toBeCloseTo(0.3, 9);
    for (const near of [0.28, 0.31, 0.37]) expect(rateOf(near)).toBe(near);
    // A part of the rate is free for whoever has less, or nobody has more.
    expect(rateOf(0.35, 0.62)).toBe(0.35);
    expect(rateOf(0.35, 0.645)).toBeCloseTo(0.3, 9);
    // Whether it is too much is not sure here, and a rate that is lowered is nobody's for a while.
    expect(terms({ ...scarce, total: 1_050, unitsPerMs: 0.7 }).unitsPerMs).toBeGreaterThan(0.65);
  });

  test('there is room for its dearest request, though its part is smaller', () => {
    expect(terms({ own: 1, total: 900, largestCost: 50 }).capacity).toBeGreaterThanOrEqual(50);
  });
});

describe('a newcomer', () => {
  test('is lent half again what it asks for, until its fourth grant', () => {
    const rates = [0, 1, 2, 3].map((grants) => terms({ own: 100, grants }).unitsPerMs);
    const rooms = [0, 1, 2, 3].map((grants) => terms({ own: 100, grants }).capacity);
    for (const rate of rates.slice(0, 3)) expect(rate).toBeCloseTo(0.15, 9);
    for (const room of rooms.slice(0, 3)) expect(room).toBeLessThanOrEqual(100);
    expect(rooms[3]).toBeGreaterThan(900);
  });

  test('does not get half the bucket on the word of one request', () => {
    const { units, capacity: room } = terms({ own: 33, total: 66, grants: 0 });
    expect(room).toBeLessThan(50);
    expect(units).toBeLessThan(50);
  });

  test('is to ask again at once', () => {
    expect([0, 1, 2].map((grants) => terms({ grants }).renewInMs)).toEqual([0, 0, 0]);
    expect(terms().renewInMs).toBeGreaterThanOrEqual(500);
  });
});

describe('scarcity', () => {
  const short = { own: 1_000, total: 4_000, isShort: true };

  test('shares out all that is left, by demand', () => {
    const { isScarce, units, unitsPerMs } = terms({ ...short, level: 100 });
    expect(isScarce).toBe(true);
    expect(units).toBeGreaterThanOrEqual(25);
    expect(unitsPerMs).toBeLessThanOrEqual(0.3125);
  });

  test('leaves room with the root, where what one does not use comes to others', () => {
    const rooms = [1, 2, 1].map((part) => terms({ own: part * 1_000, total: 4_000, isShort: true }).capacity);
    expect(rooms.reduce((sum, room) => sum + room, 0)).toBeLessThanOrEqual(600);
  });

  test('is none while there is enough for all until they have reported again', () => {
    expect(terms({ own: 1_000, total: 1_500, level: 900 }).isScarce).toBe(false);
    expect(terms({ own: 1_000, total: 1_500, level: 100 }).isScarce).toBe(true);
  });

  test('is none where demand is below the rate, though somebody is short', () => {
    expect(terms({ own: 500, isShort: true, level: 0 }).isScarce).toBe(false);
  });

  test('is none for a newcomer, whose demand nobody knows', () => {
    expect(terms({ ...short, level: 0, grants: 2 }).isScarce).toBe(false);
  });
});

describe('a debt', () => {
  test('is paid back out of the rate before that is lent', () => {
    const [none, some, more] = [0, -200, -400].map((level) => terms({ own: 2_000, level }).unitsPerMs);
    expect(none).toBe(1);
    expect(some!).toBeLessThan(none!);
    expect(more!).toBeLessThan(some!);
  });

  test('leaves half of the rate to be lent, however large it is', () => {
    expect(terms({ own: 2_000, level: -1e6 }).unitsPerMs).toBeCloseTo(0.5, 9);
  });

  test('is never lent as units', () => {
    expect(terms({ level: -50 }).units).toBe(0);
  });
});

describe('calm', () => {
  /** It asked for nine tenths of what was asked for, and pauses. */
  const pausing = { own: 0, total: 50, before: { own: 450, total: 500 } };

  test('leaves what was lent by what was asked for before: a pause costs nothing', () => {
    const { unitsPerMs, capacity: room, share } = terms(pausing);
    expect(share).toBe(0.9);
    expect(unitsPerMs).toBeGreaterThan(0.8);
    expect(room).toBeGreaterThan(800);
  });

  test.each([
    ['somebody was short lately', { isPlenty: false }],
    ['more than half of the rate is asked for', { total: 600 }],
    ['nobody knows yet what is asked for', { grants: 2 }],
  ])('is over when %s', (_, parts) => {
    const { unitsPerMs, capacity: room } = terms({ ...pausing, ...parts });
    expect([unitsPerMs, room]).toEqual([0, 1]);
  });

  test('leaves a rate alone that is nearly what it should be', () => {
    expect(terms({ own: 2_000, total: 4_000, unitsPerMs: 0.6 }).unitsPerMs).toBe(0.6);
  });
});

describe('property: any number of them, one after the other', () => {
  const amount = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 5_000, noNaN: true }));
  const asking = fc.record({
    holder: fc.nat({ max: 5 }),
    own: amount,
    heldPart: fc.double({ min: 0, max: 1, noNaN: true }),
    grants: fc.nat({ max: 6 }),
    largestCost: fc.integer({ min: 1, max: 300 }),
    isShort: fc.boolean(),
    isPlenty: fc.boolean(),
  });
  const limits = fc
    .record({
      quota: fc.integer({ min: 1, max: 5_000 }),
      windowMs: fc.constantFrom(SECOND_MS, 60_000),
      part: fc.double({ min: 0.05, max: 3, noNaN: true }),
    })
    .map(({ part, ...rest }) => limitOf({ ...rest, burst: Math.max(1, Math.ceil(rest.quota * part)) }));

  test('all rates together are at most the rate, all rooms at most the burst, all units those that were there', () => {
    fc.assert(
      fc.property(
        limits,
        fc.array(asking, { minLength: 1, maxLength: 40 }),
        fc.double({ min: -2, max: 1, noNaN: true }),
        (whole, asks, levelPart) => {
          const lent = new Map<string, { unitsPerMs: number; capacity: number }>();
          const demand = new Map<string, number>();
          const sum = (of: 'unitsPerMs' | 'capacity', but = '') =>
            [...lent].reduce((all, [name, each]) => (name === but ? all : all + each[of]), 0);
          let level = capacity(whole) * levelPart;
          for (const { holder: number, own, heldPart, ...rest } of asks) {
            const holder = `${number}`;
            demand.set(holder, own);
            const total = [...demand.values()].reduce((all, each) => all + each, 0);
            const before = lent.get(holder) ?? NOTHING;
            const granted = middleTerms({
              ...rest,
              limit: whole,
              level,
              unitsPerMs: before.unitsPerMs,
              held: before.capacity * heldPart,
              lentToOthers: { unitsPerMs: sum('unitsPerMs', holder), capacity: sum('capacity', holder) },
              demand: { unitsPerSecond: own, totalUnitsPerSecond: total },
              recent: { unitsPerSecond: own, totalUnitsPerSecond: total },
            });
            for (const figure of Object.values(granted).map(Number)) {
              expect(Number.isFinite(figure)).toBe(true);
              expect(figure).toBeGreaterThanOrEqual(0);
            }
            expect(granted.units).toBeLessThanOrEqual(Math.max(0, level) * (1 + 1e-9));
            level -= granted.units;
            lent.set(holder, granted);
            expect(sum('unitsPerMs')).toBeLessThanOrEqual((whole.quota / whole.windowMs) * (1 + 1e-9));
            expect(sum('capacity')).toBeLessThanOrEqual(capacity(whole) * (1 + 1e-9));
          }
        },
      ),
      { numRuns: 1_000 },
    );
  });
});
