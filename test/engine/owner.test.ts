import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Desk, questionOf } from './questions.ts';
import { HOUR_MS, limitOf, SECOND_MS, winner } from './rules.ts';

describe('all counters of a question together, or none', () => {
  test('M01 what stands before the denying limit is not charged', () => {
    const desk = new Desk();
    const wide = winner({ policy: 'wide', quota: 100 });
    const narrow = winner({ policy: 'narrow', quota: 1 });
    expect(desk.admitted([wide, narrow], 10)).toBe(1);
    expect([desk.used(wide), desk.used(narrow)]).toEqual([1, 1]);
  });

  test('M03 what a short limit refuses does not count towards the long one', async () => {
    const desk = new Desk();
    const minute = winner({ policy: 'minute', quota: 10, algorithm: 'sliding_log' });
    const halfHour = winner({
      policy: 'half-hour',
      quota: 30,
      windowMs: HOUR_MS / 2,
      algorithm: 'sliding_log',
    });
    let admitted = 0;
    for (let at = 0; at < 31; at += 1) {
      admitted += desk.admitted([minute, halfHour], 1);
      await desk.wait(120_000 / 31);
    }
    expect(admitted).toBe(20);
    expect(desk.used(halfHour)).toBe(20);
  });

  test('M05 a caller that is refused does not use up the counter it shares', () => {
    const desk = new Desk();
    const user = (caller: string) => winner({ policy: 'user', caller, quota: 4, windowMs: HOUR_MS });
    const tenant = (caller: string) => winner({ policy: 'tenant', caller, quota: 4, windowMs: HOUR_MS });
    expect(desk.admitted([user('u1'), tenant('CH')], 5)).toBe(4);
    expect(desk.admitted([user('u2'), tenant('CH')], 2)).toBe(0);
    expect(desk.admitted([user('u2'), tenant('TC')], 4)).toBe(4);
  });

  test('M07 two questions for the last unit: one gets it, and the other leaves no trace', () => {
    const desk = new Desk();
    const extra = winner({ policy: 'extra', quota: 10 });
    const last = winner({ policy: 'last', quota: 1 });
    expect(desk.admitted([extra, last], 2)).toBe(1);
    expect(desk.used(extra)).toBe(1);
  });

  test('an impossible cost outranks a denial, and both leave every counter as it was', () => {
    const desk = new Desk();
    const [small, large] = [winner({ policy: 'small', quota: 3 }), winner({ policy: 'large', quota: 10 })];
    desk.ask([large], { cost: 8 });
    expect(desk.ask([small, large], { cost: 5 }).outcome).toBe('impossible');
    expect([desk.used(small), desk.used(large)]).toEqual([0, 8]);
  });

  test('property: a denied question changes nothing', () => {
    const algorithm = fc.constantFrom(
      'token_bucket',
      'leaky_bucket',
      'fixed_window',
      'sliding_window',
      'sliding_log',
    );
    const counter = fc.record({ algorithm, quota: fc.integer({ min: 0, max: 6 }) });
    const asked = fc.record({
      cost: fc.integer({ min: 0, max: 7 }),
      waitMs: fc.integer({ min: 0, max: 20_000 }),
    });
    fc.assert(
      fc.asyncProperty(
        fc.array(counter, { minLength: 1, maxLength: 4 }),
        fc.array(asked, { maxLength: 20 }),
        async (counters, questions) => {
          const desk = new Desk();
          const winners = counters.map((options, at) => winner({ policy: `p${at}`, ...options }));
          for (const { cost, waitMs } of questions) {
            await desk.wait(waitMs);
            const before = winners.map((each) => desk.used(each));
            const { outcome } = desk.ask(winners, { cost });
            if (outcome !== 'allowed' || cost === 0) {
              expect(winners.map((each) => desk.used(each))).toEqual(before);
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('R01 read, decide and write are one step', () => {
  test('1,000 interleaved questions from many isolates on a limit of 5 admit exactly 5', async () => {
    const desk = new Desk();
    const five = winner({ quota: 5, windowMs: HOUR_MS });
    const ask = async (at: number) => {
      await null;
      return desk.ask([five], { holder: `isolate-${at % 40}` });
    };
    const answers = await Promise.all(Array.from({ length: 1_000 }, (_, at) => ask(at)));
    expect(answers.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(5);
    expect(desk.used(five)).toBe(5);
  });
});

describe('a message that comes again', () => {
  test('a repeated question is charged once and gets its first answer, whatever has happened since', () => {
    const desk = new Desk();
    const rule = winner({ quota: 5 });
    const first = desk.ask([rule], { id: 'q', cost: 3 });
    desk.ask([rule], { cost: 2 });
    expect(desk.ask([rule], { id: 'q', cost: 3 })).toEqual(first);
    expect(first).toMatchObject({ outcome: 'allowed', counters: [{ remaining: 2 }] });
    expect(desk.used(rule)).toBe(5);
  });

  test('a repeated denial stays one, though units have come back', async () => {
    const desk = new Desk();
    const rule = winner({ quota: 60 });
    desk.ask([rule], { cost: 60 });
    desk.ask([rule], { id: 'q' });
    await desk.wait(2 * SECOND_MS);
    expect(desk.ask([rule], { id: 'q' }).outcome).toBe('denied');
    expect(desk.ask([rule], { id: 'another' }).outcome).toBe('allowed');
  });

  test('a question is remembered for 15 seconds, longer than the platform repeats a call', async () => {
    const desk = new Desk();
    const rule = winner({ quota: 5, windowMs: HOUR_MS, algorithm: 'fixed_window' });
    desk.ask([rule], { id: 'q' });
    await desk.wait(15 * SECOND_MS);
    desk.ask([rule], { id: 'other' });
    desk.ask([rule], { id: 'q' });
    expect(desk.used(rule)).toBe(2);
  });
});

describe('what is given back', () => {
  test('goes back once, however often it is told', () => {
    const desk = new Desk();
    const rule = winner({ quota: 10, windowMs: HOUR_MS, algorithm: 'fixed_window' });
    desk.ask([rule], { id: 'kept', cost: 4 });
    desk.ask([rule], { id: 'q', cost: 3 });
    for (let time = 0; time < 3; time += 1) desk.tell({ giveBacks: ['q'] });
    expect(desk.used(rule)).toBe(4);
  });

  test('before its question: the question then charges nothing and is denied', () => {
    const desk = new Desk();
    const rule = winner({ quota: 10 });
    desk.tell({ giveBacks: ['q'] });
    expect(desk.ask([rule], { id: 'q', cost: 3 }).outcome).toBe('denied');
    expect(desk.used(rule)).toBe(0);
  });

  test('then asked again: the charge does not come back', () => {
    const desk = new Desk();
    const rule = winner({ quota: 10, windowMs: HOUR_MS, algorithm: 'fixed_window' });
    desk.ask([rule], { id: 'q' });
    desk.tell({ giveBacks: ['q'] });
    desk.ask([rule], { id: 'q' });
    expect(desk.used(rule)).toBe(0);
  });

  test('of a denied or an unknown question: nothing', () => {
    const desk = new Desk();
    const rule = winner({ quota: 2, windowMs: HOUR_MS, algorithm: 'fixed_window' });
    desk.ask([rule], { cost: 2 });
    desk.ask([rule], { id: 'denied' });
    desk.tell({ giveBacks: ['denied', 'never heard of'] });
    expect(desk.used(rule)).toBe(2);
  });

  test('I09 in the next window: that window keeps its count, which is never below 0', async () => {
    const desk = new Desk();
    const rule = winner({ quota: 1, windowMs: 10 * SECOND_MS, algorithm: 'fixed_window' });
    await desk.wait(9 * SECOND_MS);
    desk.ask([rule], { id: 'q' });
    await desk.wait(2 * SECOND_MS);
    expect(desk.ask([rule]).outcome).toBe('allowed');
    desk.tell({ giveBacks: ['q'] });
    expect(desk.admitted([rule], 3)).toBe(0);
    expect(desk.used(rule)).toBe(1);
  });

  test('over several counters, shadow ones included', () => {
    const desk = new Desk();
    const counters = [
      winner({ policy: 'one', quota: 5, windowMs: HOUR_MS, algorithm: 'fixed_window' }),
      winner({ policy: 'two', quota: 5, windowMs: HOUR_MS, algorithm: 'sliding_log' }),
      winner({ policy: 'two', quota: 5, windowMs: HOUR_MS, algorithm: 'fixed_window', shadow: true }),
    ];
    desk.ask(counters, { id: 'q', cost: 2 });
    expect(counters.map((each) => desk.used(each))).toEqual([2, 2, 2]);
    desk.tell({ giveBacks: ['q'] });
    expect(counters.map((each) => desk.used(each))).toEqual([0, 0, 0]);
  });
});

describe('shadow counters', () => {
  test('get back only what they were charged', () => {
    const desk = new Desk();
    const fixed = { windowMs: HOUR_MS, algorithm: 'fixed_window' } as const;
    const shadow = winner({ quota: 1, shadow: true, ...fixed });
    const enforced = winner({ quota: 5, ...fixed });
    desk.ask([enforced, shadow]);
    desk.ask([enforced, shadow], { id: 'q' });
    desk.tell({ giveBacks: ['q'] });
    expect([desk.used(enforced), desk.used(shadow)]).toEqual([1, 1]);
  });

  test('S01 one that is used up never decides: 2 of 5 pass the enforced limit behind it', () => {
    const desk = new Desk();
    const shadow = winner({ quota: 1, shadow: true });
    const enforced = winner({ quota: 2 });
    expect(desk.admitted([shadow, enforced], 5)).toBe(2);
  });

  test('S03 says that it would have denied, while the answer admits', () => {
    const desk = new Desk();
    const shadow = winner({ quota: 1, shadow: true });
    const enforced = winner({ quota: 5 });
    desk.ask([enforced, shadow]);
    expect(desk.ask([enforced, shadow])).toMatchObject({
      outcome: 'allowed',
      counters: [{ decision: { outcome: 'allowed' } }, { decision: { outcome: 'denied' } }],
    });
    expect([desk.used(enforced), desk.used(shadow)]).toEqual([2, 1]);
  });

  test('is charged only for what is admitted', () => {
    const desk = new Desk();
    const shadow = winner({ quota: 10, shadow: true });
    const enforced = winner({ quota: 2 });
    desk.admitted([enforced, shadow], 5);
    expect(desk.used(shadow)).toBe(2);
  });

  test('alone: admits everything, charges what it can', () => {
    const desk = new Desk();
    const shadow = winner({ quota: 2, shadow: true });
    expect(desk.admitted([shadow], 5)).toBe(5);
    expect(desk.used(shadow)).toBe(2);
  });
});

describe('debts', () => {
  const rule = winner({ quota: 10, windowMs: HOUR_MS });
  const debt = (id: string, units: number) => ({
    id,
    counterId: rule.counterId,
    limit: rule.rule.limit!,
    units,
  });

  test('R05 one that is larger than what is left drains the counter, into debt', () => {
    const desk = new Desk();
    desk.ask([rule], { cost: 7 });
    desk.tell({ debts: [debt('d', 5)] });
    expect(desk.used(rule)).toBe(12);
    expect(desk.ask([rule])).toMatchObject({
      outcome: 'denied',
      counters: [{ remaining: 0, decision: { retryAfterMs: (3 * HOUR_MS) / 10 } }],
    });
  });

  test('are charged once by their id, however often they come', () => {
    const desk = new Desk();
    for (let time = 0; time < 3; time += 1) desk.tell({ debts: [debt('d', 2)] });
    desk.tell({ debts: [debt('d', 2), debt('e', 1)] });
    expect(desk.used(rule)).toBe(3);
  });

  test('are charged before the question that brings them is decided', () => {
    const desk = new Desk();
    expect(desk.ask([rule], { cost: 1, debts: [debt('d', 10)] }).outcome).toBe('denied');
  });

  test('go at most one quota below empty', () => {
    const desk = new Desk();
    desk.tell({ debts: [debt('d', 1_000)] });
    expect(desk.used(rule)).toBe(20);
  });

  test('are remembered for longer than an isolate repeats them', async () => {
    const desk = new Desk();
    desk.tell({ debts: [debt('d', 3)] });
    await desk.wait(300_000);
    desk.tell({ debts: [debt('e', 1)] });
    const before = desk.used(rule);
    desk.tell({ debts: [debt('d', 3)] });
    expect(desk.used(rule)).toBe(before);
  });

  test('bring no numbers of their own: an old ruleset cannot come back with one', () => {
    const desk = new Desk();
    const now = winner({ quota: 2, windowMs: HOUR_MS });
    desk.ask([now]);
    desk.tell({ debts: [{ ...debt('d', 1), limit: limitOf({ quota: 1_000, windowMs: HOUR_MS }) }] });
    const older = { activation: 0, builtAtMs: 0 };
    expect(desk.ask([winner({ quota: 1_000, windowMs: HOUR_MS })], { version: older }).outcome).toBe(
      'denied',
    );
  });
});

describe('a correction or a debt of no number of units', () => {
  const algorithms = [
    'token_bucket',
    'leaky_bucket',
    'fixed_window',
    'sliding_window',
    'sliding_log',
  ] as const;
  const absurd = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, '5', '-5', undefined, {}];

  test.each(absurd)('%s changes no counter, of whatever algorithm', (said) => {
    const desk = new Desk();
    const units = said as number;
    const winners = algorithms.map((algorithm) => winner({ quota: 10, algorithm, policy: algorithm }));
    desk.ask(winners, { cost: 4 });
    const states = () => [...desk.owner.owner.counters()].map(({ state }) => structuredClone(state));
    const before = states();
    for (const { counterId, rule } of winners) {
      const counter = { id: counterId, limit: rule.limit! };
      desk.tell({ corrections: [{ id: `correction of ${counterId}`, counters: [counter], units }] });
      desk.tell({ debts: [{ id: `debt of ${counterId}`, counterId, limit: rule.limit!, units }] });
    }
    expect(states()).toEqual(before);
    expect(winners.map((each) => desk.used(each))).toEqual([4, 4, 4, 4, 4]);
  });
});

describe('a peek', () => {
  test('costs nothing, and draws the line where a charge does (M09)', () => {
    const desk = new Desk();
    const rule = winner({ quota: 1, windowMs: HOUR_MS });
    expect(desk.ask([rule], { cost: 0 }).counters[0]?.remaining).toBe(1);
    expect(desk.ask([rule]).outcome).toBe('allowed');
    expect(desk.ask([rule], { cost: 0 }).counters[0]?.remaining).toBe(0);
    expect(desk.ask([rule]).outcome).toBe('denied');
  });

  test('may be repeated for ever and always tells the present', () => {
    const desk = new Desk();
    const rule = winner({ quota: 3 });
    desk.ask([rule], { id: 'peek', cost: 0 });
    desk.ask([rule]);
    expect(desk.ask([rule], { id: 'peek', cost: 0 }).counters[0]?.remaining).toBe(2);
  });
});

test('a message without a question gets a reply without an answer', () => {
  const reply = new Desk().tell({});
  expect(reply).toEqual({ format: 1, incarnation: 'anne#1', version: { activation: 1, builtAtMs: 0 } });
});

test('a question that came twice at once is one question', () => {
  const desk = new Desk();
  const rule = winner({ quota: 5 });
  const question = questionOf('q', [rule], { cost: 2 });
  const [first, second] = [desk.tell({ question }), desk.tell({ question })];
  expect(second).toEqual(first);
  expect(desk.used(rule)).toBe(2);
});
