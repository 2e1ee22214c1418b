import { describe, expect, test } from 'vitest';
import type { Decision } from '../../src/core/decision.ts';
import { ALLOWED, denied, IMPOSSIBLE } from '../../src/core/decision.ts';
import { lentLimit, toldBy } from '../../src/engine/lent-limit.ts';
import { limitOf, MINUTE_MS } from './rules.ts';

/** One unit a second, up to 60. */
const rule = limitOf({ quota: 60, windowMs: MINUTE_MS });

describe('a rule’s limit as it is lent', () => {
  test('has the rate and the room that were lent, in the rule’s window', () => {
    expect(lentLimit(rule, 0.0005, 12)).toEqual({ ...rule, quota: 30, burst: 12 });
  });

  test('with nothing lent has numbers that a bucket can be reckoned with', () => {
    const { quota, burst } = lentLimit(rule, 0, 0);
    expect(quota).toBeGreaterThan(0);
    expect(burst).toBeGreaterThan(0);
    expect(Number.isFinite(MINUTE_MS / quota)).toBe(true);
    expect(burst).toBeLessThan(0.001);
  });

  test('of a rule that is switched off stays switched off', () => {
    const off = limitOf({ quota: 0, burst: 10 });
    expect(lentLimit(off, 0.5, 10)).toEqual(off);
  });
});

describe('a decision as it is told', () => {
  const cases: readonly [string, Decision, number, Decision][] = [
    ['an allowance is one', ALLOWED, 1, ALLOWED],
    ['a short wait is as long as it is', denied(300), 1, denied(300)],
    // By then there is another word from the root: a second, and what the rule takes for the cost.
    ['a lease that barely refills is not the rule', denied(86_400_000), 1, denied(2_000)],
    ['a dearer request may wait for longer', denied(86_400_000), 10, denied(11_000)],
    ['too much for what is lent fits another time', IMPOSSIBLE, 10, denied(11_000)],
    ['too much for the rule never fits', IMPOSSIBLE, 61, IMPOSSIBLE],
  ];
  test.each(cases)('%s', (_, decision, cost, expected) => {
    expect(toldBy(rule, decision, cost)).toEqual(expected);
  });

  test('a rule that is switched off says when to ask again by itself', () => {
    const off = limitOf({ quota: 0 });
    expect(toldBy(off, denied(MINUTE_MS), 1)).toEqual(denied(MINUTE_MS));
  });
});
