import { describe, expect, test } from 'vitest';
import { MiddlePace } from '../../src/engine/middle-pace.ts';

/** One that has asked at 1,000 and was answered so much later. */
function answered(tookMs = 150): MiddlePace {
  const pace = new MiddlePace();
  pace.reported(1_000);
  pace.heard(1_000, 1_000 + tookMs);
  return pace;
}

describe('the next word', () => {
  test('is never due of itself', () => {
    expect(new MiddlePace().dueMs).toBe(Number.POSITIVE_INFINITY);
  });

  test('is due at the earliest of what is asked for', () => {
    const pace = new MiddlePace();
    pace.by(500);
    pace.by(900);
    expect(pace.dueMs).toBe(500);
    pace.by(100);
    expect(pace.dueMs).toBe(100);
    pace.rest();
    expect(pace.dueMs).toBe(Number.POSITIVE_INFINITY);
  });

  test('is due a second after one that nobody has answered', () => {
    const pace = new MiddlePace();
    pace.reported(1_000);
    expect(pace.dueMs).toBe(2_000);
    pace.by(5_000);
    expect(pace.dueMs).toBe(2_000);
  });

  test('is due when the answer says, counted from the answer, and not just after it', () => {
    const pace = answered(150);
    pace.after(700);
    expect(pace.dueMs).toBe(1_850);
    pace.after(0);
    expect(pace.dueMs).toBe(1_200);
  });
});

describe('news', () => {
  test('may be told at once by one that has not asked yet', () => {
    expect(new MiddlePace().soonestMs).toBeLessThan(0);
  });

  test('waits while an answer is awaited', () => {
    const pace = new MiddlePace();
    pace.reported(1_000);
    expect(pace.soonestMs).toBe(Number.POSITIVE_INFINITY);
    pace.heard(1_000, 1_150);
    expect(pace.soonestMs).toBe(1_200);
  });
});

describe('how far ahead a shortage has to be seen', () => {
  test('is more than a usual answer takes', () => {
    expect(new MiddlePace().aheadMs).toBeGreaterThan(150);
    expect(answered(150).aheadMs).toBeCloseTo(275, 9);
  });

  test('follows what answers take', () => {
    const pace = new MiddlePace();
    for (let atMs = 0; atMs < 50_000; atMs += 1_000) {
      pace.reported(atMs);
      pace.heard(atMs, atMs + 20);
    }
    expect(pace.aheadMs).toBeGreaterThan(20);
    expect(pace.aheadMs).toBeLessThan(100);
  });
});
