import { describe, expect, test } from 'vitest';
import { Desk } from './questions.ts';
import { DAY_MS, HOUR_MS, SECOND_MS, winner } from './rules.ts';

const version = (activation: number) => ({ version: { activation, builtAtMs: 0 } });
const hourly = (quota: number) => [winner({ quota, windowMs: HOUR_MS })];
const window = (quota: number, windowMs = HOUR_MS) => [
  winner({ quota, windowMs, algorithm: 'fixed_window' }),
];

describe('changed numbers keep the units used', () => {
  test('L01 10 to 20 with 10 used leaves 10', () => {
    const desk = new Desk();
    desk.admitted(hourly(10), 10, version(1));
    expect(desk.ask(hourly(20), { ...version(2), cost: 5 }).counters[0]?.remaining).toBe(5);
  });

  test('20 to 10 with 10 used leaves 0', () => {
    const desk = new Desk();
    desk.admitted(hourly(20), 10, version(1));
    expect(desk.ask(hourly(10), { ...version(2), cost: 0 }).counters[0]?.remaining).toBe(0);
  });

  test('L11 30, then 0, then 150: each holds at once for a caller that is known', () => {
    const desk = new Desk();
    expect(desk.admitted(hourly(30), 1, version(1))).toBe(1);
    expect(desk.admitted(hourly(0), 1, version(2))).toBe(0);
    expect(desk.admitted(hourly(150), 200, version(3))).toBe(150);
  });

  test('L13 what was denied is not counted when the limit is raised', () => {
    const desk = new Desk();
    expect(desk.admitted(window(10), 50, version(1))).toBe(10);
    expect(desk.admitted(window(20), 50, version(2))).toBe(10);
  });

  test('L15 lowered below what is there: 2 pass after a while, and it goes on refilling', async () => {
    const desk = new Desk();
    const five = [winner({ quota: 5, windowMs: 5 * SECOND_MS })];
    const two = [winner({ quota: 2, windowMs: 2 * SECOND_MS })];
    desk.ask(five, { ...version(1), cost: 0 });
    desk.ask(two, version(2));
    await desk.wait(10 * SECOND_MS);
    expect(desk.admitted(two, 3, version(2))).toBe(2);
    await desk.wait(SECOND_MS);
    expect(desk.admitted(two, 3, version(2))).toBe(1);
  });

  test('another algorithm keeps them too; a window of another length starts at 0', () => {
    const desk = new Desk();
    desk.admitted(window(10), 4, version(1));
    expect(desk.ask(hourly(10), { ...version(2), cost: 0 }).counters[0]?.remaining).toBe(6);
    const other = new Desk();
    other.admitted(window(10), 4, version(1));
    expect(other.ask(window(10, DAY_MS), { ...version(2), cost: 0 }).counters[0]?.remaining).toBe(10);
  });

  test('L09 the same numbers again, under a new ruleset each time, change nothing', () => {
    const desk = new Desk();
    desk.admitted(hourly(2), 2, version(1));
    for (let activation = 2; activation < 7; activation += 1) {
      expect(desk.admitted(hourly(2), 1, version(activation))).toBe(0);
    }
  });
});

describe('an isolate with an older ruleset', () => {
  test('cannot loosen a limit, and is told of the newer one', () => {
    const desk = new Desk();
    desk.admitted(hourly(2), 2, version(7));
    const question = {
      id: 'q',
      cost: 1,
      counters: [
        {
          id: hourly(1)[0]!.counterId,
          limit: hourly(1_000)[0]!.rule.limit!,
          shadow: false,
          unitsPerSecond: 1,
        },
      ],
    };
    const reply = desk.tell({ ...version(6), question });
    expect(reply).toMatchObject({
      version: { activation: 7, builtAtMs: 0 },
      answer: { outcome: 'denied', counters: [{ limit: { quota: 2 } }] },
    });
  });

  test('among bundled rulesets the later build is newer', () => {
    const desk = new Desk();
    desk.ask(hourly(2), { version: { activation: 0, builtAtMs: 2_000 }, cost: 2 });
    expect(desk.admitted(hourly(9), 1, { version: { activation: 0, builtAtMs: 1_000 } })).toBe(0);
    expect(desk.admitted(hourly(9), 9, { version: { activation: 0, builtAtMs: 3_000 } })).toBe(7);
  });

  test('is still told after the owner was evicted', async () => {
    const desk = new Desk();
    desk.ask(hourly(2), version(7));
    desk.owner.restart();
    expect(desk.tell(version(6)).version.activation).toBe(7);
    expect(desk.admitted(hourly(1_000), 5, version(6))).toBe(1);
  });
});

describe('clocks that step', () => {
  test('C01 back: nothing is drained, and no wait is longer than the bucket takes to fill', async () => {
    const desk = new Desk();
    const rule = [winner({ quota: 5, windowMs: 5 * SECOND_MS })];
    desk.admitted(rule, 3);
    desk.world.stepOwnerClock(-11 * SECOND_MS);
    expect(desk.admitted(rule, 1)).toBe(1);
    await desk.wait(200);
    expect(desk.admitted(rule, 1)).toBe(1);
    expect(desk.ask(rule).counters[0]?.decision).toEqual({
      outcome: 'denied',
      retryAfterMs: expect.closeTo(800, 3),
    });
  });

  test('C03 forward and back again: one refill, and no lockout', async () => {
    const desk = new Desk();
    const rule = [winner({ quota: 5, windowMs: 5 * SECOND_MS })];
    expect(desk.admitted(rule, 9)).toBe(5);
    desk.world.stepOwnerClock(11 * SECOND_MS);
    expect(desk.admitted(rule, 9)).toBe(5);
    desk.world.stepOwnerClock(-10 * SECOND_MS);
    expect(desk.admitted(rule, 9)).toBe(0);
    await desk.wait(SECOND_MS);
    expect(desk.admitted(rule, 9)).toBe(1);
  });

  test('C05 40 minutes ahead and back: the wait is never more than a full bucket', () => {
    const desk = new Desk();
    const rule = [winner({ quota: 2_000, windowMs: SECOND_MS, burst: 5_000 })];
    desk.world.stepOwnerClock(2_400 * SECOND_MS);
    desk.ask(rule, { cost: 5_000 });
    desk.world.stepOwnerClock(-2_400 * SECOND_MS);
    const wait = desk.ask(rule, { cost: 5_000 }).counters[0]?.decision;
    expect(wait).toEqual({ outcome: 'denied', retryAfterMs: expect.closeTo(2_500, 3) });
  });

  test('a fixed window keeps its count over a step back, and starts again with the present window', async () => {
    const desk = new Desk();
    const rule = window(3);
    await desk.wait(HOUR_MS + 1);
    desk.admitted(rule, 3);
    desk.world.stepOwnerClock(-2);
    expect(desk.admitted(rule, 1)).toBe(0);
    await desk.wait(2);
    expect(desk.admitted(rule, 9)).toBe(3);
  });

  test('also when the step back happens while the owner is away: no window is locked for long', async () => {
    const desk = new Desk();
    const rule = window(3);
    desk.world.stepOwnerClock(DAY_MS);
    desk.admitted(rule, 3);
    await desk.wait(SECOND_MS);
    desk.owner.restart();
    desk.world.stepOwnerClock(-DAY_MS);
    expect(desk.admitted(rule, 1)).toBe(0);
    await desk.wait(HOUR_MS);
    expect(desk.admitted(rule, 9)).toBe(3);
  });
});

describe('demand and shares', () => {
  const rule = [winner({ quota: 1_000 })];

  test('shares follow what each isolate reports, and add up to one', () => {
    const desk = new Desk();
    desk.ask(rule, { holder: 'a', unitsPerSecond: 30 });
    const [b] = desk.ask(rule, { holder: 'b', unitsPerSecond: 10 }).counters;
    const [a] = desk.ask(rule, { holder: 'a', unitsPerSecond: 30 }).counters;
    expect([a?.share, b?.share]).toEqual([0.75, 0.25]);
    expect(desk.ask(rule, { holder: 'c', unitsPerSecond: 0 }).counters[0]).toMatchObject({
      activeHolders: 3,
      share: 0,
    });
  });

  test('a repeated question is one report', () => {
    const desk = new Desk();
    for (let time = 0; time < 5; time += 1) desk.ask(rule, { id: 'q', holder: 'a' });
    expect(desk.ask(rule, { holder: 'b' }).counters[0]?.share).toBe(0.5);
  });
});

describe('a bounded owner', () => {
  const caller = (at: number) => winner({ caller: `${at}`, quota: 2, windowMs: HOUR_MS });
  const brief = (name: string) => winner({ caller: name, quota: 10, windowMs: SECOND_MS });

  test('G01 2,000 callers, one request each: never more counters than there is room for', () => {
    const desk = new Desk({ countersMax: 64 });
    for (let at = 0; at < 2_000; at += 1) desk.ask([caller(at)]);
    expect([...desk.owner.owner.counters()]).toHaveLength(64);
    expect(desk.owner.displaced).toBe(2_000 - 64);
  });

  test('G03 counters at rest go before any that says something', async () => {
    const desk = new Desk({ countersMax: 10 });
    for (let at = 0; at < 5; at += 1) desk.ask([caller(at)], { cost: 2 });
    for (let at = 0; at < 5; at += 1) desk.ask([brief(`brief ${at}`)]);
    await desk.wait(SECOND_MS);
    for (let at = 5; at < 10; at += 1) desk.ask([caller(at)], { cost: 2 });
    expect(desk.owner.displaced).toBe(0);
    for (let at = 0; at < 10; at += 1) expect(desk.ask([caller(at)]).outcome).toBe('denied');
  });

  test('one that is full looks for counters at rest once a second, and else only among the 16 oldest', async () => {
    const desk = new Desk({ countersMax: 40 });
    desk.ask([brief('old')]);
    await desk.wait(SECOND_MS);
    for (let at = 0; at < 40; at += 1) desk.ask([caller(at)]);
    desk.ask([brief('young')]);
    expect(desk.owner.displaced).toBe(1);
    await desk.wait(SECOND_MS / 2);
    desk.ask([caller(41)]);
    expect(desk.owner.displaced).toBe(2);
    await desk.wait(SECOND_MS / 2);
    desk.ask([caller(42)]);
    expect(desk.owner.displaced).toBe(2);
  });

  test('one of the oldest that is at rest gives way without a loss, however lately all were looked at', async () => {
    const desk = new Desk({ countersMax: 4 });
    for (let at = 0; at < 4; at += 1) desk.ask([caller(at)]);
    desk.ask([brief('new')]);
    expect(desk.owner.displaced).toBe(1);
    await desk.wait(SECOND_MS / 2);
    desk.ask([caller(5)]);
    expect(desk.owner.displaced).toBe(1);
  });

  test('a newcomer with two counters is limited by both, however full the owner is', () => {
    const desk = new Desk({ countersMax: 8 });
    for (let at = 0; at < 8; at += 1) desk.ask([caller(at)], { cost: 2 });
    const both = [
      winner({ policy: 'first', caller: 'new', quota: 3, windowMs: 2 * HOUR_MS }),
      winner({ policy: 'second', caller: 'new', quota: 50, windowMs: 2 * HOUR_MS }),
    ];
    expect(desk.admitted(both, 10)).toBe(3);
    expect([...desk.owner.owner.counters()]).toHaveLength(8);
  });
});
