import { expect, test } from 'vitest';
import { Known } from '../../src/engine/known.ts';
import type { CounterReport } from '../../src/engine/messages.ts';
import { type LimitOptions, limitOf, MINUTE_MS } from './rules.ts';

function known(limit: LimitOptions, report: Partial<CounterReport>) {
  const all = new Known();
  const base = {
    id: 'c',
    decision: { outcome: 'allowed', delayMs: 0 },
    remaining: 0,
    resetMs: MINUTE_MS,
    activeHolders: 1,
    share: 1,
  } as const;
  all.learn({ ...base, limit: limitOf(limit), ...report } as CounterReport, 'life', 1_000);
  return (afterMs: number) => all.level('c', 1_000 + afterMs);
}

test('nothing is known of a counter that nobody spoke of', () => {
  expect(new Known().level('c', 0)).toBeUndefined();
});

test('a bucket is taken to refill at its rate, in whole units, up to its burst', () => {
  const level = known({ quota: 60, burst: 10 }, { remaining: 3, resetMs: 7_000 });
  expect([0, 999, 1_000, 6_999, 7_000, MINUTE_MS].map((afterMs) => level(afterMs)?.remaining)).toEqual([
    3, 3, 4, 9, 10, 10,
  ]);
  expect(level(2_500)?.resetMs).toBe(4_500);
});

test.each(['fixed_window', 'sliding_window', 'sliding_log', 'leaky_bucket'] as const)(
  'a %s is taken as it was told, until it is over',
  (algorithm) => {
    const level = known({ quota: 60, algorithm }, { remaining: 3, resetMs: 20_000 });
    expect([0, 19_999, 20_000].map((afterMs) => level(afterMs)?.remaining)).toEqual([3, 3, 60]);
  },
);

test('a debt that its owner has charged since is taken off, and has to be refilled as well', () => {
  const all = new Known();
  const limit = limitOf({ quota: 60, burst: 10 });
  const decision = { outcome: 'allowed', delayMs: 0 } as const;
  const report = { id: 'c', decision, limit, remaining: 3, resetMs: 7_000, activeHolders: 1, share: 1 };
  all.learn(report as CounterReport, 'life', 0);
  all.charged('c', 5);
  all.charged('of another', 5);
  expect([0, 2_000, 3_000, 11_999, 12_000].map((atMs) => all.level('c', atMs)?.remaining)).toEqual([
    0, 0, 1, 9, 10,
  ]);
});

test('a clock that stands where it stood before the reply changes nothing', () => {
  expect(known({ quota: 60 }, { remaining: 3 })(-500)).toMatchObject({ remaining: 3, resetMs: MINUTE_MS });
});

test('a quota of 0 has nothing left, for ever', () => {
  expect(known({ quota: 0 }, { remaining: 0, resetMs: 0 })(MINUTE_MS)?.remaining).toBe(0);
});

test('an owner that has just started knows no holders: until they have asked, the smaller share counts', () => {
  const all = new Known();
  const limit = limitOf({ quota: 60 });
  const told = (share: number, incarnation: string, atMs: number) => {
    const decision = { outcome: 'allowed', delayMs: 0 } as const;
    const report = { id: 'c', decision, limit, remaining: 3, resetMs: 7_000, activeHolders: 1, share };
    all.learn(report as CounterReport, incarnation, atMs);
    return all.level('c', atMs)?.share;
  };
  expect(told(1, 'first life', 0)).toBe(1);
  expect(told(0.25, 'first life', 500)).toBe(0.25);
  expect(told(1, 'second life', 10_000)).toBe(0.25);
  expect(told(0.2, 'second life', 10_500)).toBe(0.2);
  expect(told(0.5, 'second life', 11_999)).toBe(0.25);
  expect(told(0.5, 'second life', 12_000)).toBe(0.5);
  expect(told(1, 'second life', 12_001)).toBe(1);
});
