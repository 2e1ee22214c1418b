import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEBTS_PER_BLOCK_MAX, restore, STORAGE_FORMAT } from '../../src/engine/write-behind.ts';
import { Desk } from './questions.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, winner } from './rules.ts';

const hourly = [winner({ quota: 100, windowMs: HOUR_MS })];
const perSecond = [winner({ quota: 10, windowMs: SECOND_MS })];

describe('when it is written', () => {
  test('at once when nothing was written for a second', async () => {
    const desk = new Desk();
    desk.ask(hourly);
    expect(desk.owner.writes).toBe(1);
    await desk.wait(SECOND_MS);
    desk.ask(hourly);
    expect(desk.owner.writes).toBe(2);
  });

  test('else when that second has passed, once for all that came meanwhile', async () => {
    const desk = new Desk();
    for (let at = 0; at < 50; at += 1) {
      desk.ask(hourly);
      await desk.wait(10);
    }
    expect(desk.owner.writes).toBe(1);
    await desk.wait(499);
    expect(desk.owner.writes).toBe(1);
    await desk.wait(1);
    expect(desk.owner.writes).toBe(2);
    desk.owner.restart();
    expect(desk.used(hourly[0]!)).toBeCloseTo(50, 0);
  });

  test('never, while all that changed will be at rest within five seconds', async () => {
    const desk = new Desk();
    for (let at = 0; at < 100; at += 1) {
      desk.admitted(perSecond, 10);
      await desk.wait(100);
    }
    expect(desk.owner.writes).toBe(0);
  });

  test('not for a denied question, nor for a peek', async () => {
    const desk = new Desk();
    desk.ask(hourly, { cost: 100 });
    await desk.wait(2 * SECOND_MS);
    desk.admitted(hourly, 10);
    desk.ask(hourly, { cost: 0 });
    await desk.wait(2 * SECOND_MS);
    expect(desk.owner.writes).toBe(1);
  });

  test('what rests soon is written along with what does not', async () => {
    const desk = new Desk();
    const slow = winner({ policy: 'slow', quota: 10, windowMs: 4 * SECOND_MS });
    desk.ask([slow], { cost: 10 });
    desk.ask(hourly);
    desk.owner.restart();
    expect(desk.used(slow)).toBe(10);
  });

  test('a clock that stepped back does not put it off', async () => {
    const desk = new Desk();
    desk.ask(hourly);
    desk.world.stepOwnerClock(-HOUR_MS);
    desk.ask(hourly);
    expect(desk.owner.writes).toBe(2);
  });

  test.each([1, 4, 5, 6, 10, 20, 40])(
    'spending a burst of %i, waiting to be forgotten and spending again gains nothing',
    async (burst) => {
      const desk = new Desk();
      const rule = [winner({ quota: 60, windowMs: MINUTE_MS, burst })];
      let admitted = 0;
      for (let time = 0; time < 30; time += 1) {
        admitted += desk.admitted(rule, 50);
        await desk.wait(10 * SECOND_MS);
        desk.owner.restart();
      }
      expect(admitted).toBe(burst + 29 * Math.min(burst, 10));
    },
  );

  test('a charge that was written and given back is written again: an eviction does not bring it back', async () => {
    const desk = new Desk();
    const one = [winner({ quota: 1, windowMs: HOUR_MS })];
    desk.ask(one, { id: 'q' });
    desk.tell({ giveBacks: ['q'] });
    await desk.wait(10 * SECOND_MS);
    desk.owner.restart();
    expect(desk.ask(one).outcome).toBe('allowed');
  });
});

test('G09 an hourly limit is one of an hour: six idle minutes and an eviction do not lift it', async () => {
  const desk = new Desk();
  const five = [winner({ quota: 5, windowMs: HOUR_MS, algorithm: 'fixed_window' })];
  desk.admitted(five, 5);
  await desk.wait(6 * MINUTE_MS);
  desk.owner.restart();
  expect(desk.ask(five).outcome).toBe('denied');
});

describe('blocks', () => {
  const callers = Array.from({ length: 200 }, (_, at) =>
    winner({ caller: `${at}`, quota: 10, windowMs: HOUR_MS }),
  );

  test('200 callers are as many rows as there are blocks', async () => {
    const desk = new Desk({ blocks: 4 });
    for (const caller of callers) desk.ask([caller]);
    await desk.wait(SECOND_MS);
    expect([...desk.owner.rows.keys()].sort()).toEqual(['block:0', 'block:1', 'block:2', 'block:3']);
    desk.owner.restart();
    expect(callers.map((caller) => Math.round(desk.used(caller)))).toEqual(callers.map(() => 1));
  });

  test('a block in which nothing says anything any more is removed, and wakes nobody', async () => {
    const desk = new Desk();
    desk.ask([winner({ quota: 10, windowMs: MINUTE_MS, caller: 'long' })], { cost: 10 });
    expect([...desk.owner.rows.keys()]).toEqual(['block:0']);
    await desk.wait(2 * MINUTE_MS);
    desk.ask([winner({ quota: 10, windowMs: MINUTE_MS, caller: 'other' })], { id: 'q', cost: 10 });
    desk.tell({ giveBacks: ['q'] });
    await desk.wait(SECOND_MS);
    expect([...desk.owner.rows.keys()]).toEqual([]);
    desk.owner.restart();
    expect(desk.owner.owner.restInMs(desk.world.ports.nowMs())).toBe(0);
  });
});

describe('what is read back', () => {
  const block = (id: string, parts: object = {}) => ({
    format: STORAGE_FORMAT,
    clock: { rawMs: 5, logicalMs: 5 },
    version: { activation: 1, builtAtMs: 0 },
    counters: [{ id, limit: hourly[0]!.rule.limit!, state: 1, version: { activation: 1, builtAtMs: 0 } }],
    debts: [],
    ...parts,
  });

  test('the format before and the one after, and no other', () => {
    const rows = [0, 1, 2, 3].map(
      (format) => [`block:${format}`, block(`of format ${format}`, { format })] as const,
    );
    const stored = restore(rows);
    expect(stored?.counters.map(({ id }) => id)).toEqual(['of format 0', 'of format 1', 'of format 2']);
  });

  test('G07 nothing from rows that are none of ours', () => {
    const odd = ['text', null, undefined, 7, [], { format: '1' }, { format: 9 }].map(
      (row, at) => [`block:${at}`, row] as const,
    );
    expect(restore([])).toBeUndefined();
    expect(restore([...odd, ['other', block('b')]])).toBeUndefined();
    expect(restore([...odd, ['block:9', block('b')]])?.counters.map(({ id }) => id)).toEqual(['b']);
  });

  test('the clock that has gone furthest and the newest version, whichever blocks they stand in', () => {
    const rows = [
      block('a', { clock: { rawMs: 9, logicalMs: 7 }, version: { activation: 1, builtAtMs: 3 } }),
      block('b', { clock: { rawMs: 2, logicalMs: 8 }, version: { activation: 1, builtAtMs: 1 } }),
      block('c', { clock: { rawMs: 6, logicalMs: 6 }, version: { activation: 2, builtAtMs: 0 } }),
    ].map((row, at) => [`block:${at}`, row] as const);
    for (const stored of [restore(rows), restore(rows.toReversed())]) {
      expect(stored?.clock).toEqual({ rawMs: 2, logicalMs: 8 });
      expect(stored?.version).toEqual({ activation: 2, builtAtMs: 0 });
    }
  });

  test('debts of all blocks, in order of time', () => {
    const debts = [
      { id: 'old', atMs: 1 },
      { id: 'new', atMs: 3 },
    ];
    const between = [{ id: 'between', atMs: 2 }];
    const stored = restore([
      ['block:0', block('a', { debts })],
      ['block:1', block('b', { debts: between })],
    ]);
    expect(stored?.debts.map(({ id }) => id)).toEqual(['old', 'between', 'new']);
  });

  test('a window written before the raw clock stepped back ends where it would have then, and not in the future', async () => {
    const desk = new Desk({ blocks: 16 });
    const [before, since] = ['before', 'since'].map((caller) =>
      winner({ caller, quota: 1, windowMs: HOUR_MS, algorithm: 'fixed_window' }),
    );
    desk.ask([before!]);
    desk.world.stepOwnerClock(-24 * HOUR_MS);
    desk.ask([before!]);
    await desk.wait(SECOND_MS);
    desk.ask([since!]);
    expect(desk.owner.rows.size).toBe(2);
    desk.owner.restart();
    expect(desk.ask([before!]).outcome).toBe('denied');
    await desk.wait(HOUR_MS);
    expect(desk.ask([before!]).outcome).toBe('allowed');
  });
});

describe('debts', () => {
  const rule = winner({ quota: 100, windowMs: MINUTE_MS });
  const debt = (id: string, units = 1) => ({ id, counterId: rule.counterId, limit: rule.rule.limit!, units });

  test.each([1, 16])('one that is repeated after an eviction is charged once (%i blocks)', async (blocks) => {
    const desk = new Desk({ blocks });
    desk.tell({ debts: [debt('d', 60)] });
    await desk.wait(SECOND_MS);
    desk.owner.restart();
    const before = desk.used(rule);
    desk.tell({ debts: [debt('d', 60)] });
    expect(desk.used(rule)).toBe(before);
    desk.tell({ debts: [debt('e', 1)] });
    expect(desk.used(rule)).toBe(before + 1);
  });

  test('its id outlives its charge: it is kept for as long as an isolate repeats it', async () => {
    const desk = new Desk();
    desk.tell({ debts: [debt('small', 1)] });
    await desk.wait(5 * MINUTE_MS);
    desk.owner.restart();
    expect(desk.owner.owner.restInMs(desk.world.ports.nowMs())).toBe(30 * SECOND_MS);
    desk.tell({ debts: [debt('small', 1)] });
    expect(desk.used(rule)).toBe(0);
  });

  test('ids that no isolate repeats any more are not written again', async () => {
    const desk = new Desk();
    desk.tell({ debts: [debt('old')] });
    await desk.wait(6 * MINUTE_MS);
    expect(desk.owner.owner.restInMs(desk.world.ports.nowMs())).toBe(0);
    desk.ask(hourly);
    expect(desk.owner.rows.get('block:0')).toMatchObject({ debts: [] });
  });

  test('a block remembers the newest 256, through several evictions', async () => {
    const desk = new Desk();
    for (let at = 0; at < 300; at += 1) {
      desk.tell({ debts: [debt(`d${at}`)] });
      await desk.wait(10);
      if (at % 100 === 99) {
        await desk.wait(SECOND_MS);
        desk.owner.restart();
      }
    }
    const { debts } = desk.owner.rows.get('block:0') as { debts: { id: string }[] };
    expect(debts.map(({ id }) => id)).toEqual(
      Array.from({ length: DEBTS_PER_BLOCK_MAX }, (_, at) => `d${at + 44}`),
    );
  });
});

test('property: a crash at any moment loses at most a second of charges and five seconds of refill', async () => {
  const step = fc.record({
    waitMs: fc.integer({ min: 0, max: 3_000 }),
    cost: fc.integer({ min: 1, max: 8 }),
    isGivenBack: fc.boolean(),
  });
  const limit = fc.record({
    quota: fc.integer({ min: 1, max: 200 }),
    windowMs: fc.constantFrom(SECOND_MS, 10 * SECOND_MS, MINUTE_MS),
    burst: fc.integer({ min: 1, max: 40 }),
  });
  await fc.assert(
    fc.asyncProperty(limit, fc.array(step, { minLength: 1, maxLength: 25 }), async (options, steps) => {
      const desk = new Desk();
      const rule = winner(options);
      const changes: { atMs: number; units: number }[] = [];
      for (const [at, { waitMs, cost, isGivenBack }] of steps.entries()) {
        await desk.wait(waitMs);
        const atMs = desk.world.time.elapsedMs;
        const { outcome } = desk.ask([rule], { id: `q${at}`, cost });
        if (outcome !== 'allowed') continue;
        changes.push({ atMs, units: cost });
        if (isGivenBack) {
          desk.tell({ giveBacks: [`q${at}`] });
          changes.push({ atMs, units: -cost });
        }
      }
      const before = desk.used(rule);
      desk.owner.restart();
      const lost = before - desk.used(rule);
      const lastSecond = changes.filter(({ atMs }) => atMs > desk.world.time.elapsedMs - SECOND_MS);
      const sum = (sign: number) =>
        lastSecond.reduce((total, { units }) => total + Math.max(0, sign * units), 0);
      const refill = (5 * SECOND_MS * options.quota) / options.windowMs;
      expect(lost).toBeLessThanOrEqual(sum(1) + refill + 1e-6);
      expect(-lost).toBeLessThanOrEqual(sum(-1) + refill + 1e-6);
    }),
    { numRuns: 150 },
  );
});
