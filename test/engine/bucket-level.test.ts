import { describe, expect, test } from 'vitest';
import { levelOf, refit } from '../../src/engine/bucket-level.ts';
import { limitOf, SECOND_MS } from './rules.ts';

const at = (logicalMs: number) => ({ rawMs: 0, logicalMs });

/** One unit each 100 ms, up to 20. */
const limit = limitOf({ quota: 10, windowMs: SECOND_MS, burst: 20 });

describe('the level of a bucket', () => {
  test.each([
    ['that nobody has asked for is the burst', undefined, 5_000, 20],
    ['that was full long ago is the burst', 1_000_000, 5_000, 20],
    ['that will be full in 1 s is ten units lower', 6_000_000, 5_000, 10],
    ['that will be full in 3 s is a debt of ten', 8_000_000, 5_000, -10],
  ])('%s', (_, state, nowMs, level) => {
    expect(levelOf({ limit, state }, at(nowMs))).toBe(level);
  });
});

describe('a bucket that is put under another limit', () => {
  const smaller = limitOf({ quota: 100, windowMs: SECOND_MS, burst: 5 });

  test.each([
    ['has the level that it is given', 3, 3],
    ['keeps a debt', -7, -7],
    ['keeps a part of a unit', 0.25, 0.25],
    ['loses what does not fit', 12, 5],
  ])('%s', (_, given, level) => {
    const bucket = { limit, state: undefined };
    refit(bucket, smaller, given, at(1_000));
    expect(bucket.limit).toBe(smaller);
    expect(levelOf(bucket, at(1_000))).toBeCloseTo(level, 9);
  });

  test('refills at the new rate from then on', () => {
    const bucket = { limit, state: undefined };
    refit(bucket, smaller, -1, at(1_000));
    expect(levelOf(bucket, at(1_040))).toBeCloseTo(3, 9);
    expect(levelOf(bucket, at(9_000))).toBe(5);
  });
});
