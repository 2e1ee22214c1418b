import { describe, expect, test } from 'vitest';
import { caseOf } from '../../scripts/sim/scenarios.ts';
import { simulate } from '../../scripts/sim/simulation.ts';
import { priceOf, pricesOf } from '../../src/engine/price.ts';
import { DAY_MS, type LimitOptions, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const ONE = { isolates: 1, cost: 1 };

const ruleOf = (options: WinnerOptions & LimitOptions) => winner({ windowMs: SECOND_MS, ...options }).rule;

describe('a million requests', () => {
  test.each([
    {
      name: 'of a strict caller of 100 a second',
      rule: { quota: 100 },
      calls: 1e6,
      rows: 1e4,
      seconds: 1e4,
      dollars: 0.176,
    },
    {
      name: 'of a strict caller of 10 a second',
      rule: { quota: 10 },
      calls: 1e6,
      rows: 1e5,
      seconds: 1e5,
      dollars: 0.41,
    },
    {
      name: 'of a quota by the day',
      rule: { quota: 8_640, windowMs: DAY_MS },
      calls: 1e6,
      rows: 1e6,
      seconds: 5e4,
      dollars: 1.23,
    },
  ])('$name', ({ rule, calls, rows, seconds, dollars }) => {
    const price = priceOf([ruleOf(rule)], ONE)!;
    expect(price).toMatchObject({ isLeased: false, calls });
    expect(price.rows).toBeCloseTo(rows, 3);
    expect(price.objectSeconds).toBeCloseTo(seconds, 3);
    expect(price.dollars).toBeCloseTo(dollars, 6);
  });

  test('a request that costs ten units comes a tenth as often', () => {
    expect(priceOf([ruleOf({ quota: 100 })], { isolates: 1, cost: 10 })).toEqual(
      priceOf([ruleOf({ quota: 10 })], ONE),
    );
  });

  test('policies of one owner are asked together, at the pace of the tightest', () => {
    const both = [ruleOf({ quota: 100 }), ruleOf({ quota: 10, policy: 'daily' })];
    expect(priceOf(both, ONE)).toEqual(priceOf([ruleOf({ quota: 10 })], ONE));
  });

  test('requests in progress take a second call for the slot that is let go', () => {
    const slots = ruleOf({ quota: 10, algorithm: 'concurrency', windowMs: 30 * SECOND_MS });
    expect(priceOf([ruleOf({ quota: 100 }), slots], ONE)?.calls).toBe(2e6);
    expect(priceOf([slots], ONE)).toMatchObject({ requestsPerSecond: 1, calls: 2e6 });
  });

  test.each([
    { consistency: 'leased', quota: 80, isolates: 10, isLeased: true },
    { consistency: 'leased', quota: 79, isolates: 10, isLeased: false },
    { consistency: 'auto', quota: 340, isolates: 10, isLeased: true },
    { consistency: 'auto', quota: 339, isolates: 10, isLeased: false },
    { consistency: 'auto', quota: 1_000, isolates: 100, isLeased: true },
    { consistency: 'strict', quota: 1_000, isolates: 1, isLeased: false },
  ] as const)(
    '$consistency, $quota a second over $isolates isolates: leased is $isLeased',
    ({ quota, consistency, isolates, isLeased }) => {
      const price = priceOf([ruleOf({ quota, consistency })], { isolates, cost: 1 })!;
      expect(price.isLeased).toBe(isLeased);
      expect(price.calls).toBeCloseTo(isLeased ? (isolates * 2e6) / quota : 1e6, 3);
    },
  );

  test.each([
    ['local', ruleOf({ quota: 100, scope: 'local' })],
    ['of a quota of 0', ruleOf({ quota: 0 })],
  ])('%s costs nothing', (_name, rule) => {
    expect(priceOf([rule], ONE)).toBeUndefined();
  });
});

test('each owner of a request has a price, for the policies that it holds; local ones have none', () => {
  const policyOf = (policy: string, options: WinnerOptions) => {
    const { rule, counterId, owner, pairs } = winner({ ...options, policy });
    return { policy, rule, counted: { counterId, owner, pairs } };
  };
  const prices = pricesOf(
    [
      policyOf('default', { quota: 60 }),
      policyOf('daily', { quota: 600, windowMs: DAY_MS }),
      policyOf('team', { quota: 600, owner: 'bob' }),
      policyOf('flood', { quota: 600, scope: 'local', owner: 'carol' }),
    ],
    ONE,
  );
  expect(prices.map(({ owner, policies }) => [owner, policies])).toEqual([
    ['anne', ['default', 'daily']],
    ['bob', ['team']],
  ]);
});

test('of a hot key on leases it is what the simulator counts', async () => {
  const leased = await simulate(caseOf('hot-key 0.8x'), { seed: 1 });
  // 16,000 of 20,000 a second are asked for.
  const most = ruleOf({ quota: 16_000, consistency: 'auto' });
  const perThousand = priceOf([most], { isolates: 8, cost: 1 })!.calls / 1_000;
  // Cold starts and the jitter of renewals come on top.
  expect(leased.figures.callsPerThousand / perThousand).toBeGreaterThan(0.8);
  expect(leased.figures.callsPerThousand / perThousand).toBeLessThan(1.25);
});
