import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Demand } from '../../src/engine/demand.ts';

describe('shares', () => {
  test('follow the arrivals, and halve against newer ones every five seconds', () => {
    const demand = new Demand();
    demand.arrive('a', 8, 0);
    expect(demand.share('a', 0)).toBe(1);
    demand.arrive('b', 4, 5_000);
    expect([demand.share('a', 5_000), demand.share('b', 5_000)]).toEqual([0.5, 0.5]);
    demand.arrive('b', 6, 10_000);
    expect([demand.share('a', 10_000), demand.share('b', 10_000)]).toEqual([0.2, 0.8]);
  });

  test('are 0 for whoever never came, or came for nothing', () => {
    const demand = new Demand();
    demand.arrive('peeks', 0, 0);
    expect([demand.share('peeks', 0), demand.share('never', 0)]).toEqual([0, 0]);
  });

  test('property: add up to one at any instant, however the arrivals came', () => {
    const arrival = fc.record({
      holder: fc.constantFrom('a', 'b', 'c', 'd'),
      cost: fc.integer({ min: 1, max: 50 }),
      waitMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(arrival, { minLength: 1, maxLength: 40 }), (arrivals) => {
        const demand = new Demand();
        let nowMs = 0;
        for (const { holder, cost, waitMs } of arrivals) {
          nowMs += waitMs;
          demand.arrive(holder, cost, nowMs);
        }
        const shares = ['a', 'b', 'c', 'd'].map((holder) => demand.share(holder, nowMs));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 6);
      }),
    );
  });
});

describe('holders', () => {
  test('are forgotten fifty seconds after they last came', () => {
    const demand = new Demand();
    demand.arrive('a', 1, 0);
    demand.arrive('b', 1, 49_999);
    expect(demand.activeHolders).toBe(2);
    demand.arrive('b', 1, 50_000);
    expect(demand.activeHolders).toBe(1);
    expect(demand.share('b', 50_000)).toBe(1);
  });

  test('are at most 4,096', () => {
    const demand = new Demand();
    for (let at = 0; at < 5_000; at += 1) demand.arrive(`holder ${at}`, 1, 0);
    expect(demand.activeHolders).toBe(4_096);
    expect(demand.share('holder 4999', 0)).toBeCloseTo(1 / 4_096, 9);
  });
});
