import { describe, expect, test } from 'vitest';
import { advanceAt, moved, newAdvance, stopped } from '../../src/engine/advance.ts';
import { limitOf, SECOND_MS } from './rules.ts';

/** A hundred a second, up to 200. */
const limit = limitOf({ quota: 100, windowMs: SECOND_MS, burst: 200 });

const begun = (parts: Partial<Parameters<typeof newAdvance>[1]> = {}) =>
  newAdvance(limit, { share: 0.25, largestCost: 1, units: Number.POSITIVE_INFINITY, ...parts }, 0);

describe('a new advance', () => {
  test.each([
    ['of a quarter is a quarter of the burst', {}, 50, 50, 0.025],
    ['has room for a request at least', { largestCost: 80 }, 80, 80, 0.025],
    ['has never more room than the limit', { largestCost: 500 }, 200, 200, 0.025],
    ['begins with what it is given', { units: 3 }, 3, 50, 0.025],
    ['may begin with a debt', { units: -3 }, -3, 50, 0.025],
    ['refills so many times faster as is said', { margin: 1.2 }, 50, 50, 0.03],
    ['of nothing is nothing, whatever a request costs', { share: 0, largestCost: 80 }, 0, 0, 0],
  ])('%s', (_, parts, units, capacity, unitsPerMs) => {
    const advance = begun(parts);
    expect([advance.units, advance.capacity]).toEqual([units, capacity]);
    expect(advance.unitsPerMs).toBeCloseTo(unitsPerMs, 12);
  });
});

describe('as time passes', () => {
  test.each([
    ['it refills at its rate', 0, 400, 10],
    ['it refills to its room and no further', 45, 60_000, 50],
    ['it refills from below 0', -20, 400, -10],
    ['what is in it beyond its room stays', 70, 60_000, 70],
  ])('%s', (_, units, atMs, expected) => {
    expect(advanceAt({ ...begun(), units }, atMs).units).toBeCloseTo(expected, 9);
  });

  test('it makes no difference how often one looks', () => {
    let looked = begun({ units: 0 });
    for (let atMs = 1; atMs <= 700; atMs += 1) looked = advanceAt(looked, atMs);
    expect(looked.units).toBeCloseTo(17.5, 9);
  });

  test('what is taken is taken from what has come in by then', () => {
    expect(moved(begun({ units: 0 }), -15, 400).units).toBeCloseTo(-5, 9);
  });

  test('once stopped it keeps what is in it', () => {
    const rested = stopped(begun({ units: 0 }), 400);
    expect(rested.units).toBeCloseTo(10, 9);
    expect(advanceAt(rested, 60_000).units).toBeCloseTo(10, 9);
  });
});
