import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Demand } from '../../src/engine/demand.ts';
import { Meter } from '../../src/engine/meter.ts';

describe('shares', () => {
  test('follow the reports, and halve against newer ones every five seconds', () => {
    const demand = new Demand();
    demand.report('a', 8, 0);
    expect(demand.share('a', 0)).toBe(1);
    demand.report('b', 4, 5_000);
    expect([demand.share('a', 5_000), demand.share('b', 5_000)]).toEqual([0.5, 0.5]);
    expect(demand.totalUnitsPerSecond(5_000)).toBe(8);
  });

  test('a report takes the place of the one before', () => {
    const demand = new Demand();
    demand.report('a', 8, 0);
    demand.report('b', 8, 0);
    demand.report('a', 24, 0);
    expect([demand.share('a', 0), demand.totalUnitsPerSecond(0)]).toEqual([0.75, 32]);
  });

  test('are 0 for whoever never reported, or has no demand', () => {
    const demand = new Demand();
    demand.report('idle', 0, 0);
    expect([demand.share('idle', 0), demand.share('never', 0)]).toEqual([0, 0]);
  });

  test('property: add up to one at any instant, however the reports came', () => {
    const report = fc.record({
      holder: fc.constantFrom('a', 'b', 'c', 'd'),
      unitsPerSecond: fc.integer({ min: 1, max: 50 }),
      waitMs: fc.integer({ min: 0, max: 4_000 }),
    });
    fc.assert(
      fc.property(fc.array(report, { minLength: 1, maxLength: 40 }), (reports) => {
        const demand = new Demand();
        let nowMs = 0;
        for (const { holder, unitsPerSecond, waitMs } of reports) {
          nowMs += waitMs;
          demand.report(holder, unitsPerSecond, nowMs);
        }
        const shares = ['a', 'b', 'c', 'd'].map((holder) => demand.share(holder, nowMs));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 6);
      }),
    );
  });
});

describe('what holders are told', () => {
  const HOLDERS = ['a', 'b', 'c', 'd'];

  test('property: adds up to at most one, at whatever moments they asked, and whichever single words were lost', () => {
    const question = fc.record({
      holder: fc.constantFrom(...HOLDERS),
      unitsPerSecond: fc.integer({ min: 1, max: 50 }),
      waitMs: fc.integer({ min: 0, max: 2_000 }),
      isLost: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(question, { minLength: 1, maxLength: 60 }), (questions) => {
        const demand = new Demand();
        const known = new Map<string, { share: number; atMs: number; wasLost: boolean }>();
        let nowMs = 0;
        for (const { holder, unitsPerSecond, waitMs, isLost } of questions) {
          nowMs += waitMs;
          demand.report(holder, unitsPerSecond, nowMs);
          const share = demand.tell(holder, nowMs);
          const before = known.get(holder);
          const wasLost = isLost && before?.wasLost === false;
          known.set(holder, wasLost ? { ...before, wasLost } : { share, atMs: nowMs, wasLost });
          const recent = [...known.values()].filter(({ atMs }) => nowMs - atMs < 10_000);
          expect(recent.reduce((sum, each) => sum + each.share, 0)).toBeLessThanOrEqual(1 + 1e-9);
        }
      }),
    );
  });

  test('is its part for each, once all have asked three times', () => {
    const demand = new Demand();
    const demands = [4, 3, 2, 1];
    const askAll = () =>
      HOLDERS.map((holder, at) => {
        demand.report(holder, demands[at]!, 0);
        return demand.tell(holder, 0);
      });
    expect(askAll()[0]).toBe(1);
    askAll();
    askAll();
    for (const [at, share] of askAll().entries()) expect(share).toBeCloseTo(demands[at]! / 10, 9);
  });

  test('is nothing for a newcomer while others were told all of it, and frees what a holder that is gone was told', () => {
    const demand = new Demand();
    demand.report('a', 1, 0);
    expect(demand.tell('a', 0)).toBe(1);
    demand.report('b', 1, 9_999);
    expect(demand.tell('b', 9_999)).toBe(0);
    demand.report('b', 1, 10_000);
    expect(demand.tell('b', 10_000)).toBe(1);
    expect(demand.tell('never', 10_000)).toBe(0);
  });
});

describe('holders', () => {
  test('are forgotten ten seconds after they last reported', () => {
    const demand = new Demand();
    demand.report('a', 1, 0);
    demand.report('b', 1, 9_999);
    expect(demand.activeHolders).toBe(2);
    demand.report('b', 1, 10_000);
    expect(demand.activeHolders).toBe(1);
    expect(demand.share('b', 10_000)).toBeCloseTo(1, 9);
  });

  test('are at most 4,096', () => {
    const demand = new Demand();
    for (let at = 0; at < 5_000; at += 1) demand.report(`holder ${at}`, 1, 0);
    expect(demand.activeHolders).toBe(4_096);
    expect(demand.share('holder 4999', 0)).toBeCloseTo(1 / 4_096, 9);
  });
});

describe('a meter', () => {
  test.each([10, 100, 1_000])('reads %i a second after a second of that', (rate) => {
    const meter = new Meter(0);
    const gapMs = 1_000 / rate;
    for (let nowMs = gapMs / 2; nowMs < 1_000; nowMs += gapMs) meter.arrive(1, nowMs);
    expect(meter.unitsPerSecond(1_000) / rate).toBeGreaterThan(0.95);
    expect(meter.unitsPerSecond(1_000) / rate).toBeLessThan(1.05);
  });

  test('does not take one early arrival for a flood', () => {
    const meter = new Meter(0);
    meter.arrive(1, 0);
    expect(meter.unitsPerSecond(0)).toBeLessThan(40);
  });

  test('falls to a third in a second of silence', () => {
    const meter = new Meter(0);
    for (let nowMs = 0; nowMs < 10_000; nowMs += 10) meter.arrive(1, nowMs);
    expect(meter.unitsPerSecond(11_000) / meter.unitsPerSecond(10_000)).toBeCloseTo(Math.exp(-1), 3);
  });

  test('forgets what turned out not to count', () => {
    const meter = new Meter(0);
    meter.arrive(5, 100);
    meter.takeBack(5, 100);
    expect(meter.unitsPerSecond(100)).toBe(0);
  });
});
