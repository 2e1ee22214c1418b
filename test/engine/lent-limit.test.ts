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
  const asItIs: readonly [string, Decision, number][] = [
    ['an allowance is one', ALLOWED, 1],
    ['a short wait is as long as it is', denied(300), 1],
    ['too much for the rule never fits', IMPOSSIBLE, 61],
  ];
  test.each(asItIs)('%s', (_, decision, cost) => {
    expect(toldBy(rule, decision, cost)).toEqual(decision);
  });

  const byTheRule: readonly [string, Decision, number][] = [
    ['a lease that barely refills is not the rule', denied(86_400_000), 1],
    ['a dearer request may wait for longer', denied(86_400_000), 10],
    ['too much for what is lent fits another time', IMPOSSIBLE, 10],
  ];
  test.each(byTheRule)(
    '%s: the wait is what the rule takes for the cost, and until the root’s next word',
    (_, decision, cost) => {
      const told = toldBy(rule, decision, cost);
      expect(told).toEqual({ outcome: 'denied', retryAfterMs: expect.any(Number) });
      const { retryAfterMs } = told as { retryAfterMs: number };
      expect(retryAfterMs).toBeGreaterThan(cost * 1_000);
      expect(retryAfterMs).toBeLessThanOrEqual((cost + 1) * 1_000);
    },
  );

  test('a rule that is switched off says when to ask again by itself', () => {
    const off = limitOf({ quota: 0 });
    expect(toldBy(off, denied(MINUTE_MS), 1)).toEqual(denied(MINUTE_MS));
  });
});
