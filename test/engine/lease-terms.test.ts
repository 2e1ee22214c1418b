/**
 * What a holder is lent, as a table of what must hold whatever the constants are, and a property over everything an owner may ask.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { capacity } from '../../src/core/decision.ts';
import { isLendable, type LeaseAsk, leaseTerms } from '../../src/engine/lease-terms.ts';
import { DAY_MS, type LimitOptions, limitOf, SECOND_MS } from './rules.ts';

type Demand = LeaseAsk['demand'];

/** One hot holder of a thousand a second, whose bucket is full. */
function ask({
  demand = {},
  ...parts
}: Partial<Omit<LeaseAsk, 'demand'>> & { demand?: Partial<Demand> } = {}): LeaseAsk {
  const limit = parts.limit ?? limitOf({ quota: 1_000, windowMs: SECOND_MS });
  return {
    limit,
    level: capacity(limit),
    lentToOthers: { unitsPerMs: 0, capacity: 0 },
    held: 0,
    unitsPerMs: 0,
    isFirst: false,
    isTentative: false,
    patienceMs: 150,
    isDenied: false,
    cost: 1,
    largestCost: 1,
    lifeMsMax: Number.POSITIVE_INFINITY,
    ...parts,
    demand: { unitsPerSecond: 500, totalUnitsPerSecond: 500, holders: 1, ...demand },
  };
}

describe('the rate', () => {
  test('is a little more than the holder needs, while there is plenty', () => {
    const { unitsPerMs } = leaseTerms(ask())!;
    expect(unitsPerMs).toBeGreaterThan(0.5);
    expect(unitsPerMs).toBeLessThan(0.7);
  });

  test('is its part of the demand, when there is more demand than rate', () => {
    const terms = leaseTerms(
      ask({ demand: { unitsPerSecond: 1_000, totalUnitsPerSecond: 4_000, holders: 4 } }),
    );
    expect(terms!.unitsPerMs).toBeLessThan(0.25);
    expect(terms!.unitsPerMs).toBeGreaterThan(0.24);
  });

  test('leaves something free when all are equal, for whoever has less than its part', () => {
    const demand = { unitsPerSecond: 1_000, totalUnitsPerSecond: 4_000, holders: 4 };
    const lentToOthers = { unitsPerMs: 0.9, capacity: 0 };
    expect(leaseTerms(ask({ lentToOthers, demand }))!.unitsPerMs).toBeCloseTo(0.1, 9);
    expect(4 * leaseTerms(ask({ demand }))!.unitsPerMs).toBeLessThan(1);
  });

  test('stays when it is nearly what it would be now, within what is free: a change is lost while its word is on the way', () => {
    const rates = [0.5, 0.6, 0.4, 0.8].map((unitsPerMs) => leaseTerms(ask({ unitsPerMs }))!.unitsPerMs);
    expect(rates).toEqual([0.5, 0.6, expect.closeTo(0.55, 9), expect.closeTo(0.55, 9)]);
    const lentToOthers = { unitsPerMs: 0.48, capacity: 0 };
    expect(leaseTerms(ask({ unitsPerMs: 0.6, lentToOthers }))!.unitsPerMs).toBeCloseTo(0.52, 9);
  });

  test('that is more than its part does not stay where nothing is free for who comes', () => {
    const demand = { unitsPerSecond: 400, totalUnitsPerSecond: 2_000, holders: 5 };
    const lent = (others: number) =>
      leaseTerms(ask({ demand, unitsPerMs: 0.24, lentToOthers: { unitsPerMs: others, capacity: 0 } }))!
        .unitsPerMs;
    expect(lent(0.73)).toBeCloseTo(0.24, 9);
    expect(lent(0.755)).toBeCloseTo(0.99 / 5, 9);
  });

  test('of a newcomer is a part of what is free, whatever it seems to need', () => {
    const newcomer = { isFirst: true, demand: { unitsPerSecond: 10, totalUnitsPerSecond: 10 } };
    expect(leaseTerms(ask(newcomer))!.unitsPerMs).toBeGreaterThan(0.02);
    const lentToOthers = { unitsPerMs: 0.995, capacity: 0 };
    expect(leaseTerms(ask({ ...newcomer, lentToOthers }))!.unitsPerMs).toBeCloseTo(0.005, 9);
  });

  test('is at most what others have left', () => {
    const lentToOthers = { unitsPerMs: 0.9, capacity: 0 };
    expect(leaseTerms(ask({ lentToOthers }))!.unitsPerMs).toBeCloseTo(0.1, 9);
  });

  test('a demand that is larger than the sum of all that was reported is the whole of it', () => {
    const terms = leaseTerms(ask({ demand: { unitsPerSecond: 3_000, totalUnitsPerSecond: 10 } }));
    expect(terms!.unitsPerMs).toBeCloseTo(1, 9);
  });

  test('a window has none, and lends whole units', () => {
    const limit = limitOf({ quota: 999, windowMs: SECOND_MS, algorithm: 'fixed_window' });
    const { unitsPerMs, units } = leaseTerms(ask({ limit, level: 333, lifeMsMax: 700 }))!;
    expect(unitsPerMs).toBe(0);
    expect(units).toBeGreaterThan(0);
    expect(Number.isInteger(units)).toBe(true);
  });
});

describe('units and room', () => {
  test('leave something for the next holder', () => {
    const { units, capacity } = leaseTerms(ask({ demand: { unitsPerSecond: 100_000 } }))!;
    expect(units).toBeLessThanOrEqual(500);
    expect(capacity).toBeLessThanOrEqual(500);
  });

  test('what is in hand is not granted again', () => {
    const first = leaseTerms(ask())!;
    expect(leaseTerms(ask({ held: first.capacity }))!.units).toBe(0);
  });

  test('what the bucket could not hold once the room is lent is granted, so that it is not lost', () => {
    const limit = limitOf({ quota: 1_000, windowMs: SECOND_MS, burst: 100 });
    const { units, capacity } = leaseTerms(
      ask({ limit, demand: { holders: 1_000, unitsPerSecond: 10, totalUnitsPerSecond: 100_000 } }),
    )!;
    expect(units).toBeCloseTo(capacity, 9);
  });

  test('from an empty bucket there is the rate alone', () => {
    const terms = leaseTerms(ask({ level: 0 }))!;
    expect(terms.units).toBe(0);
    expect(terms.unitsPerMs).toBeGreaterThan(0);
  });

  test('a holder that is short gets units, also where its part of what is left is less than one', () => {
    const demand = { unitsPerSecond: 100, totalUnitsPerSecond: 900, holders: 9 };
    const lentToOthers = { unitsPerMs: 0.99, capacity: 900 };
    const { units } = leaseTerms(ask({ level: 10, lentToOthers, demand }))!;
    expect(units).toBeGreaterThan(1);
    expect(units).toBeLessThanOrEqual(2);
    expect(leaseTerms(ask({ level: 10, lentToOthers, demand, held: 20 }))!.units).toBe(0);
  });

  test('a dear request gets room for itself', () => {
    const demand = { unitsPerSecond: 1_200, totalUnitsPerSecond: 4_800, holders: 4 };
    expect(leaseTerms(ask({ cost: 300, demand }))!.capacity).toBeGreaterThanOrEqual(300);
  });

  test('nothing is lent to a request that has no room', () => {
    expect(leaseTerms(ask({ cost: 30, lentToOthers: { unitsPerMs: 0, capacity: 980 } }))).toBeUndefined();
    expect(leaseTerms(ask({ lentToOthers: { unitsPerMs: 0, capacity: 1_000 } }))).toBeUndefined();
  });

  test('nothing is lent of a window that is used up', () => {
    const limit = limitOf({ quota: 100, algorithm: 'fixed_window' });
    expect(leaseTerms(ask({ limit, level: 0, lifeMsMax: 5_000 }))).toBeUndefined();
  });
});

describe('how long', () => {
  test('at most until the window ends', () => {
    const limit = limitOf({ quota: 1_000, windowMs: SECOND_MS, algorithm: 'fixed_window' });
    expect(leaseTerms(ask({ limit, lifeMsMax: 70 }))!.lifeMs).toBe(70);
  });

  test.each([
    [0, 150, 400],
    [150, 150, 400],
    [300, 300, 600],
    [5_000, 500, SECOND_MS],
    [Number.POSITIVE_INFINITY, 500, SECOND_MS],
  ])(
    'a second at least; of a holder that waits %f ms for an answer, %i ms while it has asked once, %i ms for its first lease',
    (patienceMs, tentativeMs, firstMs) => {
      const terms = (parts: Partial<LeaseAsk>) =>
        leaseTerms(ask({ ...parts, patienceMs, demand: { holders: 40 } }))!;
      expect(terms({}).lifeMs).toBe(SECOND_MS);
      expect(terms({ isFirst: true })).toMatchObject({ renewInMs: 100, lifeMs: firstMs });
      expect(terms({ isFirst: true, isTentative: true })).toMatchObject({ lifeMs: tentativeMs });
    },
  );

  test.each([1, 10, 100, 1_000, 4_096])(
    '%i holders ask no more often than an owner can answer',
    (holders) => {
      for (const level of [0, 1_000]) {
        const demand = { unitsPerSecond: 100, totalUnitsPerSecond: 100 * holders, holders };
        const terms = leaseTerms(ask({ demand, level }));
        if (terms === undefined) continue;
        expect((holders * 1_000) / terms.renewInMs).toBeLessThanOrEqual(401);
        expect(terms.lifeMs).toBeGreaterThanOrEqual(2 * terms.renewInMs);
      }
    },
  );

  test('the first lease is renewed soon, since others may be about to come', () => {
    const soon = leaseTerms(ask({ isFirst: true }))!;
    expect(soon.renewInMs).toBeLessThan(leaseTerms(ask())!.renewInMs);
  });
});

test.each([
  ['bucket that more is asked of than comes in, and that is soon empty', 'token_bucket', 1_200, 300, 50],
  ['bucket that lasts for a while', 'token_bucket', 1_200, 1_000, 500],
  ['bucket of which there is enough', 'token_bucket', 1_000, 300, 500],
  ['window, which has no rate to hand on', 'fixed_window', 1_200, 300, 500],
] as const)('a lease of a %s, is renewed in time', (_, algorithm, totalUnitsPerSecond, level, renewInMs) => {
  const limit = limitOf({ quota: 1_000, windowMs: SECOND_MS, algorithm });
  const demand = { unitsPerSecond: 600, totalUnitsPerSecond, holders: 2 };
  expect(leaseTerms(ask({ limit, level, demand }))).toMatchObject({ renewInMs, isScarce: false });
});

describe('scarcity', () => {
  const overload = { unitsPerSecond: 1_000, totalUnitsPerSecond: 4_000, holders: 4 };
  test.each([
    ['empty, under overload', { level: 0, demand: overload }, true],
    ['denied, under overload', { isDenied: true, demand: overload }, true],
    ['plenty left, under overload', { demand: overload }, false],
    ['empty, at half the rate', { level: 0 }, false],
    ['denied, at half the rate: units will come', { isDenied: true }, false],
  ])('%s', (_, parts, isScarce) => {
    expect(leaseTerms(ask(parts))!.isScarce).toBe(isScarce);
  });
});

describe('limits that lend', () => {
  const limits: readonly (readonly [string, LimitOptions, boolean])[] = [
    ['a burst of 100 ms', { quota: 1_000, windowMs: SECOND_MS, burst: 100 }, true],
    ['a burst of less', { quota: 1_000, windowMs: SECOND_MS, burst: 99 }, false],
    ['a window', { quota: 5, algorithm: 'fixed_window' }, true],
    ['a quota of 0', { quota: 0 }, false],
    ['a window of 0', { quota: 0, algorithm: 'fixed_window' }, false],
    ['a queue', { quota: 1_000, algorithm: 'leaky_bucket', maxDelayMs: 100 }, false],
    ['a sliding window', { quota: 1_000, algorithm: 'sliding_window' }, false],
    ['a log', { quota: 1_000, algorithm: 'sliding_log' }, false],
    ['slots', { quota: 1_000, algorithm: 'concurrency' }, false],
  ];
  test.each(limits)('%s', (_, options, expected) => {
    expect(isLendable(limitOf(options))).toBe(expected);
  });
});

test('property: never more than there is, finite, and of use', () => {
  const limit = fc
    .record({
      quota: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 1e9 })),
      windowMs: fc.constantFrom(SECOND_MS, 60_000, DAY_MS, 365 * DAY_MS),
      algorithm: fc.constantFrom('token_bucket' as const, 'fixed_window' as const),
      part: fc.double({ min: 0.01, max: 3, noNaN: true }),
    })
    .map(({ part, ...options }) =>
      limitOf({
        ...options,
        burst: options.algorithm === 'token_bucket' ? Math.ceil(options.quota * part) : options.quota,
      }),
    );
  const amount = fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e9, noNaN: true }));
  const part = fc.double({ min: 0, max: 1, noNaN: true });
  const cost = fc.integer({ min: 0, max: 1_000 });
  const asks = fc
    .record({
      limit,
      level: part,
      lentRate: part,
      before: part,
      lentRoom: part,
      held: part,
      isFirst: fc.boolean(),
      isTentative: fc.boolean(),
      patienceMs: fc.constantFrom(0, 150, 500, Number.POSITIVE_INFINITY),
      isDenied: fc.boolean(),
      cost,
      moreCost: cost,
      lifeMsMax: fc.constantFrom(1, 100, 5_000, Number.POSITIVE_INFINITY),
      demand: fc.record({
        unitsPerSecond: amount,
        totalUnitsPerSecond: amount,
        holders: fc.integer({ min: 0, max: 4_096 }),
      }),
    })
    .map(({ lentRate, lentRoom, moreCost, before, ...rest }): LeaseAsk => {
      const rate = rest.limit.quota / rest.limit.windowMs;
      const lentToOthers = { unitsPerMs: rate * lentRate, capacity: capacity(rest.limit) * lentRoom };
      const free = capacity(rest.limit) - lentToOthers.capacity;
      const held = free * rest.held;
      const level = Math.max(0, free - held) * rest.level;
      return {
        ...rest,
        lentToOthers,
        held,
        level,
        unitsPerMs: rate * before,
        largestCost: rest.cost + moreCost,
      };
    });
  fc.assert(
    fc.property(asks, (asked) => {
      const terms = leaseTerms(asked);
      if (terms === undefined) return;
      const { limit, lentToOthers, level, lifeMsMax } = asked;
      const slack = 1 + 1e-9;
      const { units, unitsPerMs, capacity: room, lifeMs, renewInMs } = terms;
      for (const figure of [units, unitsPerMs, room, lifeMs, renewInMs]) {
        expect(figure).toBeGreaterThanOrEqual(0);
        expect(Number.isFinite(figure)).toBe(true);
      }
      expect(units).toBeLessThanOrEqual(level * slack);
      expect(room + lentToOthers.capacity).toBeLessThanOrEqual(capacity(limit) * slack);
      expect(unitsPerMs + lentToOthers.unitsPerMs).toBeLessThanOrEqual(
        (limit.quota / limit.windowMs) * slack,
      );
      expect(lifeMs).toBeLessThanOrEqual(lifeMsMax);
      expect(room).toBeGreaterThanOrEqual(Math.max(1, asked.cost));
    }),
    { numRuns: 3_000 },
  );
});
