/** Figures by hand: of 100 a second with a burst of 400, of which a region starts with a quarter. */
import { describe, expect, test } from 'vitest';
import { boundOf } from '../../src/engine/bound.ts';
import type { Rule } from '../../src/policy/ruleset.ts';
import { SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const ONE = { isolates: 1, blindIsolates: 0, largestCost: 1 };

const ruleOf = (options: Partial<WinnerOptions> = {}): Rule =>
  winner({ quota: 100, windowMs: SECOND_MS, burst: 400, scope: 'regional', ...options }).rule;

function regional(
  { regions = 1, largestCost = 1 }: { regions?: number; largestCost?: number },
  options: Partial<WinnerOptions> = {},
) {
  return boundOf(ruleOf(options), { ...ONE, regions, largestCost })!.regional!;
}

describe('a cold start', () => {
  test('is the credit of each region, with three seconds of its refill', () => {
    // 100 at once and 25 a second.
    expect(regional({ regions: 1 }).coldStartUnits).toBe(175);
    expect(regional({ regions: 3 }).coldStartUnits).toBe(525);
  });

  test('has room for a request in each, and never more than the burst', () => {
    expect(regional({ largestCost: 150 }).coldStartUnits).toBe(150 + 75);
    expect(regional({ largestCost: 9_999 }).coldStartUnits).toBe(400 + 75);
  });

  test('without credit is a request of each', () => {
    expect(regional({ regions: 4, largestCost: 7 }, { startCredit: 0 }).coldStartUnits).toBe(28);
  });
});

describe('a partition', () => {
  test('of one region from its root is two limits: its own last share times 1.2, and what the root goes on with', () => {
    const { partition, coldStartUnits } = regional({ regions: 1 });
    expect(partition.rateFactor).toBeCloseTo(2.2, 9);
    expect(partition.unitsPerSecond).toBeCloseTo(220, 9);
    expect(partition.burstUnits).toBe(800 + coldStartUnits);
  });

  test('of several adds a request and a start in each of the others', () => {
    const { partition } = regional({ regions: 3, largestCost: 5 });
    expect(partition.rateFactor).toBeCloseTo(2.7, 9);
    expect(partition.unitsPerSecond).toBeCloseTo(270, 9);
    expect(partition.burstUnits).toBe(800 + 2 * 5 + 525);
  });
});

describe('a loss of memory', () => {
  test('of the root is a full one, beside what the leases of the old one go on with: they live for 5 s', () => {
    expect(regional({ regions: 3 }).rootCrashUnits).toBe(400 + 500);
  });

  test('of a region is what any owner loses, or a start if that is more', () => {
    // A second of 1,000 charges is more than the counter has, so any owner loses 400.
    expect(regional({ regions: 3 }).regionCrashUnits).toBe(400);
    expect(regional({ regions: 3 }, { startCredit: 1 }).regionCrashUnits).toBe(400 + 300);
  });
});

describe('where regions share nothing', () => {
  test.each([
    ['a rule of one owner', ruleOf({ scope: 'global' })],
    ['a rule of each isolate', ruleOf({ scope: 'local' })],
    [
      'a limit that is split for good',
      { ...ruleOf(), regional: { startCredit: 0.25, weights: { weur: 1 } } },
    ],
  ])('%s has no such bound', (_, rule) => {
    expect(boundOf(rule, { ...ONE, regions: 3 })!.regional).toBeUndefined();
  });
});

test('in sentences', () => {
  const { sentences } = boundOf(ruleOf(), { ...ONE, regions: 3 })!;
  expect(sentences).toContain('3 regions at a cold start: 525 units above the limit, which are paid back');
  expect(sentences).toContain(
    'regions cut off: at most 1327 units at once and 270 a second after that, 2.7 times the rate, all sides together',
  );
  expect(sentences).toContain(
    "a region's owner crashes: 400 units may be admitted again; the root: 900 units",
  );
});
