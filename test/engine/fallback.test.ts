import { describe, expect, test } from 'vitest';
import { BucketTable } from '../../src/core/bucket-table.ts';
import { Fallback, type FallbackRequest } from '../../src/engine/fallback.ts';
import { Known } from '../../src/engine/known.ts';
import type { CounterReport } from '../../src/engine/messages.ts';
import { MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const SILENT_SINCE_MS = 10_000;

function start(options: WinnerOptions, told?: Partial<CounterReport> & { atMs?: number }) {
  const rule = winner(options);
  const known = new Known();
  if (told !== undefined) {
    const { atMs = SILENT_SINCE_MS, ...report } = told;
    const base = {
      remaining: 0,
      resetMs: MINUTE_MS,
      activeHolders: 1,
      share: 1,
      decision: { outcome: 'allowed', delayMs: 0 },
    } as const;
    known.learn(
      { ...base, id: rule.counterId, limit: rule.rule.limit!, ...report } as CounterReport,
      { incarnation: 'life', sentMs: atMs },
      atMs,
    );
  }
  const fallback = new Fallback(new BucketTable({ slots: 64, seed: 1 }), known);
  const decide = (afterMs: number, more: Partial<FallbackRequest> = {}) => {
    const request = {
      winners: [rule],
      cost: 1,
      largestCost: 1,
      silentSinceMs: SILENT_SINCE_MS,
      owedUnits: () => 0,
      heldSlots: () => 0,
      ...more,
    };
    return fallback.decide(request, SILENT_SINCE_MS + afterMs);
  };
  /** How many of equal requests pass in one instant. */
  const admitted = (afterMs: number, more?: Partial<FallbackRequest>) => {
    let count = 0;
    while (count < 10_000 && decide(afterMs, more).isAdmitted) count += 1;
    return count;
  };
  return { decide, admitted, fallback, rule };
}

describe('a told share', () => {
  test('starts with its part of what was left, and refills at its part of the rate, times 1.2', () => {
    const { admitted } = start({ quota: 600 }, { share: 0.5, remaining: 400 });
    expect(admitted(0)).toBe(200);
    expect(admitted(SECOND_MS)).toBe(6);
    expect(admitted(11 * SECOND_MS)).toBe(60);
  });

  test('holds at most its part of the burst', () => {
    const { admitted } = start({ quota: 600, burst: 100 }, { share: 0.5, remaining: 0 });
    expect(admitted(MINUTE_MS)).toBe(50);
  });

  test('what was told before the outage has refilled until it began', () => {
    const { admitted } = start(
      { quota: 60 },
      { remaining: 10, share: 1, atMs: SILENT_SINCE_MS - 5_000, resetMs: 50_000 },
    );
    expect(admitted(0)).toBe(Math.floor(15 * shareLeft(5_000)));
  });

  test('what a late answer told during the outage has refilled only since', () => {
    const { admitted } = start({ quota: 600 }, { remaining: 3, share: 1, atMs: SILENT_SINCE_MS + 10_000 });
    expect(admitted(10_000)).toBe(3);
  });

  test('what the isolate owes its owner already is taken off', () => {
    const { admitted } = start({ quota: 600 }, { share: 1, remaining: 100 });
    expect(admitted(0, { owedUnits: () => 70 })).toBe(30);
  });

  test('of 0, of an isolate that has only peeked, counts as blind', () => {
    const { admitted } = start({ quota: 600 }, { share: 0, remaining: 600 });
    expect(admitted(0)).toBe(30);
  });

  test('that is old goes halfway to the blind share every ten seconds', () => {
    const { admitted } = start(
      { quota: 1_000, windowMs: 1_000 * MINUTE_MS },
      {
        share: 0.85,
        remaining: 1_000,
        atMs: SILENT_SINCE_MS - 10_000,
      },
    );
    expect(admitted(0)).toBe(450);
  });

  test('below the blind share stays as it is', () => {
    const { admitted } = start({ quota: 1_000 }, { share: 0.02, remaining: 1_000, atMs: 0 });
    expect(admitted(0)).toBe(20);
  });
});

describe('an isolate that was never told', () => {
  test("takes the rule's blind share of the burst and the rate", () => {
    const { admitted } = start({ quota: 6_000, blindShare: 0.1 });
    expect(admitted(0)).toBe(600);
    expect(admitted(SECOND_MS)).toBe(12);
  });

  test('has room for one request of the largest cost, or nobody could send one', () => {
    const { decide, admitted } = start({ quota: 20 });
    expect(decide(0, { cost: 5, largestCost: 8 }).isAdmitted).toBe(true);
    expect(admitted(0, { largestCost: 8 })).toBe(3);
  });

  test('but never for more than the rule itself has', () => {
    const { decide } = start({ quota: 5 });
    expect(decide(0, { cost: 6, largestCost: 10 }).reports[0]?.outcome).toBe('impossible');
    expect(decide(0, { cost: 5, largestCost: 10 }).isAdmitted).toBe(true);
  });
});

describe('each outage', () => {
  test('starts with what its owner has then, not with what the last bucket still held', () => {
    const { admitted } = start(
      { quota: 600, blindShare: 1 },
      { share: 1, remaining: 10, atMs: SILENT_SINCE_MS },
    );
    expect(admitted(0)).toBe(10);
    expect(admitted(1, { silentSinceMs: SILENT_SINCE_MS + 1 })).toBe(10);
    expect(admitted(1 + SECOND_MS, { silentSinceMs: SILENT_SINCE_MS + 1 })).toBe(12);
  });

  test('that is long ends with a full bucket and no more', () => {
    const { admitted } = start({ quota: 600 }, { share: 1, remaining: 0 });
    expect(admitted(0)).toBe(0);
    expect(admitted(2 * MINUTE_MS)).toBe(600);
    expect(admitted(4 * MINUTE_MS)).toBe(600);
  });
});

test('a quota of 0 admits nothing', () => {
  const { decide } = start({ quota: 0 });
  expect(decide(MINUTE_MS).reports[0]).toMatchObject({ outcome: 'denied', source: 'fallback' });
});

test.each(['fixed_window', 'sliding_window', 'sliding_log', 'leaky_bucket'] as const)(
  'a %s falls back to a token bucket of the same quota',
  (algorithm) => {
    const { admitted } = start({ quota: 600, algorithm }, { share: 0.5, remaining: 100 });
    expect(admitted(0)).toBe(50);
    expect(admitted(SECOND_MS)).toBe(6);
  },
);

test('all or nothing over the counters of one owner', () => {
  const narrow = winner({ policy: 'narrow', quota: 20 });
  const { decide, admitted, rule } = start({ policy: 'wide', quota: 2_000 });
  const winners = [rule, narrow];
  expect(admitted(0, { winners })).toBe(1);
  expect(decide(0, { winners }).reports.map(({ outcome }) => outcome)).toEqual(['allowed', 'denied']);
  expect(admitted(0)).toBe(99);
});

function shareLeft(ageMs: number): number {
  return 0.05 + 0.95 * 2 ** (-ageMs / 10_000);
}
