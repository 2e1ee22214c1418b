import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Random } from '../../scripts/sim/random.ts';
import { Demand } from '../../src/engine/demand.ts';
import { Meter } from '../../src/engine/meter.ts';

describe('shares', () => {
  test('follow the reports, whenever they came, of which the sum counts less the older they are', () => {
    const demand = new Demand();
    demand.report('a', 8, 0);
    expect(demand.share('a')).toBe(1);
    demand.report('b', 8, 5_000);
    expect([demand.share('a'), demand.share('b')]).toEqual([0.5, 0.5]);
    expect(demand.totalUnitsPerSecond(5_000)).toBe(12);
  });

  test('are those of a steady demand after two reports: the first of a holder says little', () => {
    const demand = new Demand();
    demand.report('old', 10, 0);
    demand.report('old', 10, 1_000);
    demand.report('new', 68, 1_000);
    demand.report('new', 10, 1_500);
    expect(demand.share('new')).toBeCloseTo(0.5, 9);
  });

  test('move half of the way to a new demand in the first three and a half seconds', () => {
    const demand = new Demand();
    const both = (one: number, other: number, nowMs: number) => {
      demand.report('a', one, nowMs);
      demand.report('b', other, nowMs);
      return demand.share('a');
    };
    for (let nowMs = 0; nowMs <= 30_000; nowMs += 500) both(10, 10, nowMs);
    for (let nowMs = 30_500; nowMs < 33_500; nowMs += 500) both(20, 0, nowMs);
    expect(both(20, 0, 33_500)).toBeCloseTo(0.75, 2);
  });

  test('property: what holders are told at moments of their own adds up to one within a fiftieth, where demand is steady but for chance', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = new Random(seed);
        const demand = new Demand();
        const told: number[] = [];
        // Twelve holders take turns, each twice a second, the last of them asking for twelve times as much as the first.
        for (let at = 0; at < 480; at += 1) {
          const holder = at % 12;
          demand.report(`${holder}`, (holder + 1) * (0.6 + 0.8 * random.next()), (at * 500) / 12);
          told[holder] = demand.share(`${holder}`);
        }
        const sum = told.reduce((all, share) => all + share, 0);
        expect(Math.abs(sum - 1)).toBeLessThan(0.02);
        for (const [holder, share] of told.entries()) expect((share * 78) / (holder + 1)).toBeCloseTo(1, 0);
      }),
      { numRuns: 200 },
    );
  });

  test('a report takes the place of the one before', () => {
    const demand = new Demand();
    demand.report('a', 8, 0);
    demand.report('b', 8, 0);
    demand.report('a', 24, 0);
    expect([demand.share('a'), demand.totalUnitsPerSecond(0)]).toEqual([0.75, 32]);
  });

  test('are 0 for whoever never reported, or has no demand', () => {
    const demand = new Demand();
    demand.report('idle', 0, 0);
    expect([demand.share('idle'), demand.share('never')]).toEqual([0, 0]);
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
        const shares = ['a', 'b', 'c', 'd'].map((holder) => demand.share(holder));
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 6);
      }),
    );
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
    expect(demand.share('b')).toBeCloseTo(1, 9);
  });

  test('that have not reported for two seconds are no recent demand', () => {
    const demand = new Demand();
    demand.report('gone', 500, 0);
    demand.report('here', 10, 1_999);
    expect(demand.recentUnitsPerSecond(1_999)).toBeGreaterThan(300);
    expect(demand.recentUnitsPerSecond(2_000)).toBeCloseTo(10, 2);
    expect(demand.totalUnitsPerSecond(2_000)).toBeGreaterThan(300);
  });

  test('are at most 4,096', () => {
    const demand = new Demand();
    for (let at = 0; at < 5_000; at += 1) demand.report(`holder ${at}`, 1, 0);
    expect(demand.activeHolders).toBe(4_096);
    expect(demand.share('holder 4999')).toBeCloseTo(1 / 4_096, 9);
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
