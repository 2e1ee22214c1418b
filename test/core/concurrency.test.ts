/** Slots: so many requests in progress at once, each under a name of its own. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  available,
  carryOver,
  charge,
  decide,
  giveBack,
  hold,
  release,
  used,
} from '../../src/core/algorithms.ts';
import type { Slots } from '../../src/core/concurrency.ts';
import type { Limit } from '../../src/core/decision.ts';
import { limitOf } from './subject.ts';

const LIFE_MS = 30_000;

interface Step {
  readonly at?: number;
  readonly take?: string;
  readonly cost?: number;
  readonly gets?: 'ok' | number;
  readonly hold?: string;
  readonly release?: string;
  readonly left?: number;
  readonly used?: number;
}

function run(limit: Limit, steps: readonly Step[]): void {
  let state: Slots | undefined;
  let nowMs = 0;
  for (const [number, step] of steps.entries()) {
    const place = `step ${number}: ${JSON.stringify(step)}`;
    nowMs = step.at ?? nowMs;
    if (step.take !== undefined) {
      const taken = decide(limit, state, step.cost ?? 1, nowMs, step.take);
      state = taken.state as Slots | undefined;
      const { gets = 'ok' } = step;
      expect(taken.decision, place).toEqual(
        gets === 'ok' ? { outcome: 'allowed', delayMs: 0 } : { outcome: 'denied', retryAfterMs: gets },
      );
    }
    if (step.hold !== undefined) state = hold(limit, state, step.hold, nowMs) as Slots | undefined;
    if (step.release !== undefined) state = release(limit, state, step.release, nowMs) as Slots | undefined;
    if (step.left !== undefined) expect(available(limit, state, nowMs), place).toBe(step.left);
    if (step.used !== undefined) expect(used(limit, state, nowMs), place).toBe(step.used);
  }
}

const two = limitOf('concurrency', 2, LIFE_MS);
const none = limitOf('concurrency', 0, LIFE_MS);

describe('a slot', () => {
  test.each<readonly [string, Limit, readonly Step[]]>([
    [
      'is taken by each request, until there is none',
      two,
      [{ take: 'a' }, { take: 'b' }, { take: 'c', gets: 1_000, left: 0 }],
    ],
    [
      'is one, whatever the request costs',
      two,
      [
        { take: 'a', cost: 900, left: 1 },
        { take: 'b', cost: 900 },
        { take: 'c', gets: 1_000 },
      ],
    ],
    [
      'is not taken by a peek, full or not',
      two,
      [{ take: 'a', cost: 0, left: 2 }, { take: 'a' }, { take: 'b' }, { take: 'c', cost: 0 }],
    ],
    ['is not taken twice by one request', two, [{ take: 'a' }, { take: 'a', left: 1 }]],
    [
      'is not taken again from a full limit by one that has it',
      two,
      [{ take: 'a' }, { take: 'b' }, { take: 'a' }, { take: 'c', gets: 1_000 }],
    ],
    [
      'is free when it is let go',
      two,
      [{ take: 'a' }, { take: 'b' }, { release: 'a', left: 1 }, { take: 'c' }],
    ],
    [
      'I03 is let go once, however often it is said',
      two,
      [
        { take: 'a' },
        { take: 'b' },
        { release: 'a' },
        { release: 'a', left: 1 },
        { take: 'c' },
        { release: 'a', left: 0 },
      ],
    ],
    ['that nobody has can be let go, and nothing happens', two, [{ release: 'x', left: 2 }]],
    [
      'I05 I07 is free at the end of its life',
      two,
      [
        { take: 'a' },
        { take: 'b' },
        { at: LIFE_MS - 1, take: 'c', gets: 1 },
        { at: LIFE_MS, take: 'c', left: 1 },
      ],
    ],
    [
      'lives on when it is renewed',
      two,
      [{ take: 'a' }, { at: 20_000, hold: 'a' }, { at: LIFE_MS, left: 1 }, { at: 50_000, left: 2 }],
    ],
    [
      'that its owner has forgotten is taken again by its renewal, full or not',
      two,
      [{ take: 'a' }, { take: 'b' }, { hold: 'c', left: -1 }, { release: 'a', take: 'd', gets: 1_000 }],
    ],
    [
      'of one that never asked is not held without end: twice the limit is the most',
      two,
      [{ hold: 'a' }, { hold: 'b' }, { hold: 'c' }, { hold: 'd' }, { hold: 'e', left: -2, used: 4 }],
    ],
    [
      'is never there where the limit is 0',
      none,
      [
        { take: 'a', gets: LIFE_MS },
        { take: 'a', cost: 0 },
        { hold: 'a', left: 0 },
      ],
    ],
  ])('%s', (_, limit, steps) => run(limit, steps));

  test('of a denied request changes nothing', () => {
    const state = hold(two, hold(two, undefined, 'a', 0), 'b', 0);
    expect(decide(two, state, 1, 10, 'c').state).toBe(state);
  });

  test('is no unit: it is neither charged nor given back without a name', () => {
    const state = hold(two, undefined, 'a', 0);
    expect(charge(two, state, 5, 0)).toBe(state);
    expect(giveBack(two, state, { cost: 1, chargedAtMs: 0 }, 0)).toBe(state);
    expect(giveBack(two, state, { cost: 1, chargedAtMs: 0, id: 'a' }, 0)).toBeUndefined();
  });
});

describe('when the rule changes', () => {
  const state = hold(two, hold(two, undefined, 'a', 0), 'b', 0);
  const change = (from: Limit, to: Limit) =>
    carryOver({ limit: from, state, nowMs: 0 }, { limit: to, nowMs: 0 });

  test.each([
    ['to fewer', limitOf('concurrency', 1, LIFE_MS), -1],
    ['to more', limitOf('concurrency', 5, LIFE_MS), 3],
    ['to another life', limitOf('concurrency', 2, 1_000), 0],
  ])('%s, requests keep their slots', (_, limit, left) => {
    expect(available(limit, change(two, limit), 0)).toBe(left);
  });

  test('slots do not become units, nor units slots', () => {
    const bucket = limitOf('token_bucket', 10, 60_000);
    expect(change(two, bucket)).toBeUndefined();
    expect(
      carryOver({ limit: bucket, state: 60_000_000, nowMs: 0 }, { limit: two, nowMs: 0 }),
    ).toBeUndefined();
  });
});

test('property: I11 never more slots than the limit, and those are exactly the taken that were neither let go nor left to end', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
  const step = fc.record({
    deed: fc.constantFrom('take', 'take', 'take', 'release', 'renew'),
    id,
    gapMs: fc.constantFrom(0, 0, 1, 10, 60, 100),
  });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(step, { maxLength: 60 }), (quota, steps) => {
      const limit = limitOf('concurrency', quota, 100);
      const endsAtMs = new Map<string, number>();
      let state: Slots | undefined;
      let nowMs = 0;
      for (const { deed, id, gapMs } of steps) {
        nowMs += gapMs;
        for (const [held, endMs] of endsAtMs) if (endMs <= nowMs) endsAtMs.delete(held);
        if (deed === 'take') {
          const taken = decide(limit, state, 1, nowMs, id);
          state = taken.state as Slots | undefined;
          const isExpected = endsAtMs.has(id) || endsAtMs.size < quota;
          expect(taken.decision.outcome).toBe(isExpected ? 'allowed' : 'denied');
          if (isExpected) endsAtMs.set(id, nowMs + 100);
        } else if (deed === 'release') {
          state = release(limit, state, id, nowMs) as Slots | undefined;
          endsAtMs.delete(id);
        } else if (endsAtMs.has(id)) {
          state = hold(limit, state, id, nowMs) as Slots | undefined;
          endsAtMs.set(id, nowMs + 100);
        }
        expect(used(limit, state, nowMs)).toBe(endsAtMs.size);
      }
    }),
  );
});
