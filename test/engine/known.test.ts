import { describe, expect, test } from 'vitest';
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
  all.learn(
    { ...base, limit: limitOf(limit), ...report } as CounterReport,
    { incarnation: 'life', sentMs: 990 },
    1_000,
  );
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
  all.learn(report as CounterReport, { incarnation: 'life', sentMs: 0 }, 0);
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

describe('an owner that has just started knows no holders', () => {
  const limit = limitOf({ quota: 60 });

  function sharesOf(...told: readonly (readonly [atMs: number, life: string, share: number])[]) {
    const all = new Known();
    return told.map(([atMs, life, share]) => {
      const decision = { outcome: 'allowed', delayMs: 0 } as const;
      const report = { id: 'c', decision, limit, remaining: 3, resetMs: 7_000, activeHolders: 1, share };
      all.learn(report as CounterReport, { incarnation: life, sentMs: atMs }, atMs);
      return all.level('c', atMs)?.share;
    });
  }

  test('until they have asked, the smaller share counts', () => {
    const shares = sharesOf(
      [0, 'first', 1],
      [500, 'first', 0.25],
      [10_000, 'second', 1],
      [10_500, 'second', 0.2],
      [11_999, 'second', 0.5],
      [12_000, 'second', 0.5],
      [12_001, 'second', 1],
    );
    expect(shares).toEqual([1, 0.25, 0.25, 0.2, 0.25, 0.5, 1]);
  });

  test('and then what it said, though it says nothing more', () => {
    const all = new Known();
    const report = { id: 'c', limit, remaining: 3, resetMs: 7_000, share: 0.25 } as CounterReport;
    all.learn(report, { incarnation: 'first', sentMs: 0 }, 0);
    all.learn({ ...report, share: 1 }, { incarnation: 'second', sentMs: 1_000 }, 1_000);
    expect([2_999, 3_000].map((atMs) => all.level('c', atMs)?.share)).toEqual([0.25, 1]);
  });

  test('through one short life after the other', () => {
    expect(sharesOf([0, 'first', 0.25], [1_000, 'second', 1], [2_000, 'third', 1])).toEqual([
      0.25, 0.25, 0.25,
    ]);
  });

  test('but of a counter that is asked for now and then only, the old share says nothing any more', () => {
    expect(sharesOf([0, 'first', 0.01], [10_001, 'second', 1])).toEqual([0.01, 1]);
  });

  test('a share of 0 was nobody’s, and makes no other less', () => {
    expect(sharesOf([0, 'first', 0], [1_000, 'second', 0.05])).toEqual([0, 0.05]);
  });
});

describe('replies that overtake each other', () => {
  const limit = limitOf({ quota: 60 });
  const base = { id: 'c', decision: { outcome: 'allowed', delayMs: 0 }, limit, resetMs: MINUTE_MS } as const;
  const learn = (all: Known, remaining: number, { sentMs, nowMs }: { sentMs: number; nowMs: number }) =>
    all.learn(
      { ...base, remaining, activeHolders: 1, share: 1 } as unknown as CounterReport,
      { incarnation: 'life', sentMs },
      nowMs,
    );

  test('the one to the question that was sent last counts', () => {
    const all = new Known();
    learn(all, 20, { sentMs: 1_000, nowMs: 1_010 });
    learn(all, 50, { sentMs: 500, nowMs: 1_020 });
    expect(all.level('c', 1_020)?.remaining).toBe(20);
    learn(all, 10, { sentMs: 1_000, nowMs: 1_030 });
    expect(all.level('c', 1_030)?.remaining).toBe(10);
  });

  test('also after the clock was set back', () => {
    const all = new Known();
    learn(all, 20, { sentMs: 3_600_000, nowMs: 3_600_010 });
    learn(all, 50, { sentMs: 500, nowMs: 510 });
    expect(all.level('c', 510)?.remaining).toBe(50);
  });
});
