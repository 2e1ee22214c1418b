/** Clamps at their owner: obeyed by isolates that have not heard of them, in whatever order words come, and past an eviction. */
import { describe, expect, test } from 'vitest';
import type { Clamp, ClampAction } from '../../src/policy/clamp.ts';
import { clampWinner } from '../../src/policy/clamp.ts';
import { counterId, type Pairs, rulePrefix, type Winner } from '../../src/policy/counter.ts';
import { Desk } from './questions.ts';
import { HOUR_MS, limitOf, winner as plain, SECOND_MS } from './rules.ts';
import { START_MS } from './world.ts';

const ANNE: Pairs = [['user', 'anne']];

/** As the matcher makes them: the id ends with the caller. */
function winner(options: Parameters<typeof plain>[0], pairs = ANNE): Winner {
  const made = plain(options);
  return { ...made, counterId: counterId(rulePrefix('test', made.rule), pairs), pairs };
}

function clamp(action: ClampAction | 'none', revision: number, forMs = HOUR_MS, quota = 2): Clamp {
  const limit = action === 'limit' ? { limit: limitOf({ quota }) } : {};
  return { domain: 'test', pairs: ANNE, action, ...limit, untilMs: START_MS + forMs, revision };
}

const LIMIT = winner({ quota: 10 });

/** A holder that has nothing yet. */
const FIRST_ASK = {
  incarnation: '',
  number: 0,
  held: 0,
  returned: [],
  spent: 0,
  largestCost: 1,
  patienceMs: 0,
  isFinal: false,
};

describe('an isolate that has not heard of the clamp', () => {
  test('S05 deny: is refused until the clamp ends, however often it asks, and nothing is charged', async () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('deny', 1, 60_000)] });
    const answer = desk.ask([LIMIT]);
    expect(answer.outcome).toBe('denied');
    expect(answer.counters[0]).toMatchObject({ decision: { retryAfterMs: 60_000 }, remaining: 0 });
    expect(desk.used(LIMIT)).toBe(0);
    await desk.wait(59_999);
    expect(desk.admitted([LIMIT], 100)).toBe(0);
    await desk.wait(1);
    expect(desk.admitted([LIMIT], 11)).toBe(10);
  });

  test('unlimited: is admitted, and nothing is charged', () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('unlimited', 1)] });
    expect(desk.admitted([LIMIT], 50)).toBe(50);
    expect(desk.used(LIMIT)).toBe(0);
  });

  test('limit: the clamp’s own numbers hold as well, and the shorter of the two decides', () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('limit', 1)] });
    expect(desk.admitted([LIMIT], 10)).toBe(2);
    expect(desk.used(LIMIT)).toBe(2);
    const wide = new Desk();
    wide.tell({ clamps: [clamp('limit', 1, HOUR_MS, 100)] });
    expect(wide.admitted([LIMIT], 20)).toBe(10);
  });

  test('is told, with its answer', () => {
    const desk = new Desk();
    const made = clamp('deny', 1);
    desk.tell({ clamps: [made] });
    const question = {
      id: 'q',
      cost: 1,
      counters: [{ id: LIMIT.counterId, limit: LIMIT.rule.limit!, shadow: false, unitsPerSecond: 1 }],
    };
    expect(desk.tell({ question }).clamps).toEqual([made]);
    expect(desk.tell({}).clamps).toBeUndefined();
  });

  test('asks for a lease and gets none', () => {
    const hot = winner({ quota: 100_000, windowMs: SECOND_MS, consistency: 'leased' });
    const question = (id: string) => ({
      id,
      cost: 1,
      lease: FIRST_ASK,
      counters: [{ id: hot.counterId, limit: hot.rule.limit!, shadow: false, unitsPerSecond: 1_000 }],
    });
    for (const action of ['deny', 'limit', 'unlimited'] as const) {
      const desk = new Desk();
      expect(desk.tell({ question: question('before') }).answer?.lease).toBeDefined();
      desk.tell({ clamps: [clamp(action, 1)] });
      expect(desk.tell({ question: question('after') }).answer?.lease).toBeUndefined();
    }
  });
});

test('an isolate that has heard of it asks about the clamp’s counter, which is charged once', () => {
  const desk = new Desk();
  const made = clamp('limit', 1) as Clamp & { limit: NonNullable<Clamp['limit']> };
  desk.tell({ clamps: [made] });
  const own = clampWinner(made, { seed: 0 });
  expect(desk.admitted([LIMIT, own], 1)).toBe(1);
  expect(desk.used(own)).toBe(1);
  expect(desk.admitted([LIMIT], 5)).toBe(1);
});

test('another caller of the same owner is not concerned', () => {
  const desk = new Desk();
  desk.tell({ clamps: [clamp('deny', 1)] });
  expect(desk.ask([winner({ quota: 10 }, [['user', 'bert']])]).outcome).toBe('allowed');
  expect(desk.ask([winner({ quota: 10 }, [['host', '|4:user4:anne']])]).outcome).toBe('allowed');
});

describe('words about one caller', () => {
  test('out of order: the last one counts', () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('none', 2)] });
    desk.tell({ clamps: [clamp('deny', 1)] });
    expect(desk.ask([LIMIT]).outcome).toBe('allowed');
    desk.tell({ clamps: [clamp('deny', 3)] });
    desk.tell({ clamps: [clamp('deny', 3)] });
    expect(desk.ask([LIMIT]).outcome).toBe('denied');
  });

  test('a new ruleset changes nothing about them', () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('deny', 1)] });
    const raised = winner({ quota: 1_000 });
    expect(desk.ask([raised], { version: { activation: 9, builtAtMs: 9 } }).outcome).toBe('denied');
  });

  test('survive an eviction and the removal of everything that is at rest', async () => {
    const desk = new Desk();
    desk.tell({ clamps: [clamp('deny', 1)] });
    await desk.wait(1_000);
    desk.owner.restart();
    expect(desk.ask([LIMIT]).outcome).toBe('denied');
    await desk.wait(HOUR_MS / 2);
    desk.owner.restart();
    expect(desk.ask([LIMIT]).outcome).toBe('denied');
    await desk.wait(HOUR_MS);
    expect(desk.ask([LIMIT]).outcome).toBe('allowed');
  });
});

describe('operators’ views', () => {
  test('inspecting says what is left, charges nothing, and makes nobody a holder', () => {
    const desk = new Desk();
    expect(desk.admitted([LIMIT], 3)).toBe(3);
    const named = [
      { id: LIMIT.counterId, limit: LIMIT.rule.limit! },
      { id: 'never seen', limit: limitOf({ quota: 7 }) },
    ];
    const { inspected } = desk.tell({ holder: 'admin', inspect: named });
    expect(inspected?.map(({ remaining, activeHolders }) => [remaining, activeHolders])).toEqual([
      [7, 1],
      [7, 0],
    ]);
    expect(desk.used(LIMIT)).toBe(3);
  });

  test('L01 after a raised limit the view goes by the new numbers', () => {
    const desk = new Desk();
    expect(desk.admitted([LIMIT], 10)).toBe(10);
    const raised = winner({ quota: 20 });
    expect(desk.admitted([raised], 5, { version: { activation: 2, builtAtMs: 0 } })).toBe(5);
    const { inspected } = desk.tell({ inspect: [{ id: LIMIT.counterId, limit: LIMIT.rule.limit! }] });
    expect(inspected?.[0]).toMatchObject({ remaining: 5, limit: { quota: 20 } });
  });

  test('a reset counter is full, past an eviction too', async () => {
    const desk = new Desk();
    const daily = winner({ quota: 10, windowMs: 24 * HOUR_MS });
    expect(desk.admitted([daily], 11)).toBe(10);
    await desk.wait(2_000);
    desk.tell({ reset: [daily.counterId, 'never seen'] });
    await desk.wait(2_000);
    desk.owner.restart();
    expect(desk.admitted([daily], 11)).toBe(10);
  });

  test('what is lent of a reset counter stays lent', () => {
    const desk = new Desk();
    const hot = winner({ quota: 1_000, windowMs: SECOND_MS, consistency: 'leased' });
    const counters = [{ id: hot.counterId, limit: hot.rule.limit!, shadow: false, unitsPerSecond: 500 }];
    const grant = desk.tell({ question: { id: 'q', cost: 0, lease: FIRST_ASK, counters } }).answer?.lease;
    desk.tell({ reset: [hot.counterId] });
    expect(grant?.units).toBeGreaterThan(0);
    expect(desk.admitted([hot], 1_000) + grant!.units).toBeLessThanOrEqual(1_000);
  });
});
