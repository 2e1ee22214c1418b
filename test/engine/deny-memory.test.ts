import { describe, expect, test } from 'vitest';
import { type Denied, DenyMemory } from '../../src/engine/deny-memory.ts';
import { HOUR_MS, limitOf, SECOND_MS } from './rules.ts';

/** One unit comes back every 100 ms. */
const limit = limitOf({ quota: 10, windowMs: SECOND_MS });
const slow = limitOf({ quota: 10, windowMs: HOUR_MS });

function remembering(denied: Partial<Denied> = {}) {
  const memory = new DenyMemory();
  memory.remember({ counterId: 'c', cost: 1, limit, retryAfterMs: 500, activeHolders: 1, ...denied }, 0);
  return memory;
}

describe('what is denied without asking', () => {
  test.each([
    { name: 'the same cost', cost: 1, denied: { cost: 1 }, waitMs: 500 },
    { name: 'a larger cost, which waits for its further units', cost: 3, denied: { cost: 1 }, waitMs: 700 },
    { name: 'a smaller cost: not denied', cost: 1, denied: { cost: 2 }, waitMs: undefined },
    { name: 'a peek: not denied', cost: 0, denied: { cost: 1 }, waitMs: undefined },
    {
      name: 'a cost that can never fit: its owner says so',
      cost: 11,
      denied: { cost: 1 },
      waitMs: undefined,
    },
  ])('$name', ({ cost, denied, waitMs }) => {
    expect(remembering(denied).retryAfterMs('c', cost, 0)).toBe(waitMs);
  });

  test.each([
    { algorithm: 'fixed_window', waitMs: 500 },
    { algorithm: 'leaky_bucket', waitMs: 500 },
    { algorithm: 'sliding_window', waitMs: undefined },
    { algorithm: 'sliding_log', waitMs: undefined },
  ] as const)('a larger cost on a $algorithm', ({ algorithm, waitMs }) => {
    const denied = { limit: limitOf({ quota: 10, windowMs: SECOND_MS, algorithm }) };
    expect(remembering(denied).retryAfterMs('c', 3, 0)).toBe(waitMs);
    expect(remembering(denied).retryAfterMs('c', 1, 0)).toBe(500);
  });

  test('everything on a quota of 0, for the wait that its owner told', () => {
    const memory = remembering({ limit: limitOf({ quota: 0 }), retryAfterMs: 60_000 });
    expect([1, 7].map((cost) => memory.retryAfterMs('c', cost, 500))).toEqual([59_500, 59_500]);
  });

  test('another counter is not', () => {
    expect(remembering().retryAfterMs('another', 1, 0)).toBeUndefined();
  });

  test('until the retry time, and no longer', () => {
    const memory = remembering();
    expect([0, 400, 499].map((atMs) => memory.retryAfterMs('c', 1, atMs))).toEqual([500, 100, 1]);
    expect(memory.retryAfterMs('c', 1, 500)).toBeUndefined();
  });

  test('the wait falls as time passes, and is that of the counter, not that of the memory', () => {
    const memory = remembering({ limit: slow, retryAfterMs: 360_000 });
    expect(memory.retryAfterMs('c', 1, 999)).toBe(359_001);
  });
});

describe('after a second the owner is asked again', () => {
  test('by one request at a time, while the rest wait for what was last told', () => {
    const memory = remembering({ limit: slow, retryAfterMs: 360_000 });
    expect(memory.retryAfterMs('c', 1, 1_000)).toBeUndefined();
    const rechecks = memory.rechecks('c')!;
    rechecks.began(1_000);
    expect(memory.retryAfterMs('c', 1, 1_001)).toBe(358_999);
    rechecks.ended();
    expect(memory.retryAfterMs('c', 1, 1_002)).toBeUndefined();
  });

  test('later when so many isolates ask that one call a second each were a flood: holders / 400 seconds', () => {
    const memory = remembering({ limit: slow, retryAfterMs: 360_000, activeHolders: 2_000 });
    expect(memory.retryAfterMs('c', 1, 4_999)).toBe(355_001);
    expect(memory.retryAfterMs('c', 1, 5_000)).toBeUndefined();
  });

  test('one that began and was never heard of again does not close the door for ever', () => {
    const memory = remembering({ limit: slow, retryAfterMs: 360_000 });
    memory.rechecks('c')!.began(1_000);
    expect(memory.retryAfterMs('c', 1, 3_000)).toBe(357_000);
    expect(memory.retryAfterMs('c', 1, 3_001)).toBeUndefined();
  });
});

describe('after the retry time', () => {
  test.each([
    { name: 'one', atMs: 500, passing: 1 },
    { name: 'a second unit is back', atMs: 600, passing: 2 },
    { name: 'five more are back', atMs: 1_000, passing: 6 },
  ])('as many may ask at once as units can have come back: $name', ({ atMs, passing }) => {
    const memory = remembering();
    let asked = 0;
    while (memory.retryAfterMs('c', 1, atMs) === undefined && asked < 50) {
      memory.rechecks('c')!.began(atMs);
      asked += 1;
    }
    expect(asked).toBe(passing);
    expect(memory.retryAfterMs('c', 1, atMs)).toBeGreaterThanOrEqual(1);
  });

  test('a window that started again has its whole quota back', () => {
    const memory = remembering({
      limit: limitOf({ quota: 10, windowMs: SECOND_MS, algorithm: 'fixed_window' }),
    });
    for (let at = 0; at < 11; at += 1) {
      expect(memory.retryAfterMs('c', 1, 500)).toBeUndefined();
      memory.rechecks('c')!.began(500);
    }
    expect(memory.retryAfterMs('c', 1, 500)).toBe(1);
  });
});

describe('several denials of one counter', () => {
  test('the smallest cost that was denied is what counts', () => {
    const memory = remembering({ cost: 5, retryAfterMs: 900 });
    memory.remember({ counterId: 'c', cost: 2, limit, retryAfterMs: 600, activeHolders: 1 }, 0);
    expect(memory.retryAfterMs('c', 2, 0)).toBe(600);
    expect(memory.retryAfterMs('c', 5, 0)).toBe(900);
  });

  test('a larger one does not prolong the wait of a smaller', () => {
    const memory = remembering({ cost: 1, retryAfterMs: 100 });
    memory.remember({ counterId: 'c', cost: 10, limit, retryAfterMs: 1_000, activeHolders: 1 }, 0);
    expect(memory.retryAfterMs('c', 1, 0)).toBe(100);
    expect(memory.retryAfterMs('c', 1, 100)).toBeUndefined();
  });

  test('a larger one tells as well how long the smaller waits', () => {
    const memory = remembering({ cost: 1, retryAfterMs: 5_000 });
    memory.remember({ counterId: 'c', cost: 3, limit, retryAfterMs: 2_200, activeHolders: 1 }, 3_000);
    expect(memory.retryAfterMs('c', 1, 3_000)).toBe(2_000);
  });

  test('a larger one stands by itself when the smaller would be admitted by now', () => {
    const memory = remembering({ cost: 1, retryAfterMs: 500 });
    memory.remember({ counterId: 'c', cost: 3, limit, retryAfterMs: 100, activeHolders: 1 }, 0);
    expect(memory.retryAfterMs('c', 1, 0)).toBeUndefined();
    expect(memory.retryAfterMs('c', 3, 0)).toBe(100);
  });

  test('on a sliding count a larger one says nothing about the smaller', () => {
    const sliding = limitOf({ quota: 10, windowMs: SECOND_MS, algorithm: 'sliding_log' });
    const memory = remembering({ limit: sliding, retryAfterMs: 100 });
    memory.remember({ counterId: 'c', cost: 5, limit: sliding, retryAfterMs: 900, activeHolders: 1 }, 0);
    expect(memory.retryAfterMs('c', 1, 0)).toBe(100);
  });

  test('a new one of the same cost takes the place of the old', () => {
    const memory = remembering({ retryAfterMs: 500 });
    memory.remember({ counterId: 'c', cost: 1, limit, retryAfterMs: 300, activeHolders: 1 }, 400);
    expect(memory.retryAfterMs('c', 1, 400)).toBe(300);
  });

  test('an old larger one does not make a new smaller one deny less', () => {
    const memory = remembering({ cost: 5, retryAfterMs: 500 });
    memory.remember({ counterId: 'c', cost: 7, limit, retryAfterMs: 300, activeHolders: 1 }, 501);
    expect(memory.retryAfterMs('c', 5, 501)).toBeUndefined();
    expect(memory.retryAfterMs('c', 7, 501)).toBe(300);
  });
});

describe('what makes it forget', () => {
  test('one counter, or all', () => {
    const memory = remembering();
    memory.remember({ counterId: 'd', cost: 1, limit, retryAfterMs: 500, activeHolders: 1 }, 0);
    memory.forget('c');
    expect([memory.retryAfterMs('c', 1, 0), memory.retryAfterMs('d', 1, 0)]).toEqual([undefined, 500]);
    memory.forgetAll();
    expect(memory.retryAfterMs('d', 1, 0)).toBeUndefined();
  });

  test('16,384 newer ones', () => {
    const memory = remembering();
    for (let at = 0; at < 16_384; at += 1) {
      memory.remember({ counterId: `${at}`, cost: 1, limit, retryAfterMs: 500, activeHolders: 1 }, 0);
    }
    expect(memory.retryAfterMs('c', 1, 0)).toBeUndefined();
    expect(memory.retryAfterMs('0', 1, 0)).toBe(500);
  });
});
