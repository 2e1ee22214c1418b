import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Winner } from '../../src/policy/counter.ts';
import { answers, stalled } from './network.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, winner } from './rules.ts';
import { type Isolate, type RequestOptions, type TimedVerdict, World } from './world.ts';

function start(network = () => answers()) {
  const world = new World({ network });
  return { world, isolate: world.isolate() };
}

async function askTimes(
  isolate: Isolate,
  winners: readonly Winner[],
  times: number,
  options?: RequestOptions,
) {
  const verdicts: TimedVerdict[] = [];
  for (let time = 0; time < times; time += 1) verdicts.push(await isolate.ask(winners, options));
  return verdicts;
}

const admitted = (verdicts: readonly TimedVerdict[]) =>
  verdicts.filter(({ outcome }) => outcome === 'allowed').length;

const fixed = (quota: number, more = {}) =>
  winner({ quota, windowMs: HOUR_MS, algorithm: 'fixed_window', ...more });

describe('a request on a healthy network', () => {
  test('is decided by its owner, and told what is left', async () => {
    const { isolate } = start();
    expect(await isolate.ask([winner({ quota: 5 })])).toMatchObject({
      outcome: 'allowed',
      source: 'owner',
      tookMs: 2,
      retryAfterMs: 0,
      policies: [{ policy: 'default', outcome: 'allowed', level: { remaining: 4, resetMs: 12_000 } }],
    });
  });

  test('without a rule makes no call', async () => {
    const { world, isolate } = start();
    expect(await isolate.ask([])).toMatchObject({ outcome: 'allowed', source: 'none', policies: [] });
    expect(world.calls).toEqual([]);
  });

  test('of cost 0 is a peek: it asks, and charges nothing', async () => {
    const { world, isolate } = start();
    const rule = fixed(1);
    await isolate.ask([rule]);
    expect(await isolate.ask([rule], { cost: 0 })).toMatchObject({
      outcome: 'allowed',
      policies: [{ level: { remaining: 0 } }],
    });
    expect(world.used(rule)).toBe(1);
  });

  test('that can never fit is impossible, without a wait', async () => {
    const { isolate } = start();
    expect(await isolate.ask([winner({ quota: 5 })], { cost: 6 })).toMatchObject({
      outcome: 'impossible',
      retryAfterMs: 0,
    });
  });

  test('on a leaky bucket is told how long to wait before it goes on', async () => {
    const { world, isolate } = start();
    const rule = winner({ quota: 10, windowMs: SECOND_MS, algorithm: 'leaky_bucket', maxDelayMs: 500 });
    const requests = [0, 1, 2].map(() => isolate.send([rule]));
    const verdicts = await world.time.settle(Promise.all(requests));
    expect(verdicts.map(({ delayMs }) => delayMs)).toEqual([0, 100, 200]);
  });

  test('A21 is told the longest wait of the policies that deny it, by the owner and from memory', async () => {
    const { world, isolate } = start();
    const hour = fixed(1, { policy: 'hour' });
    const day = fixed(1, { policy: 'day', windowMs: 24 * HOUR_MS });
    await world.isolate().ask([hour, day]);
    const [first, remembered] = await askTimes(isolate, [hour, day], 2);
    expect(first).toMatchObject({ outcome: 'denied', source: 'owner' });
    expect(first?.retryAfterMs).toBeGreaterThan(23 * HOUR_MS);
    expect(remembered).toMatchObject({ outcome: 'denied', source: 'deny_memory' });
    expect(remembered?.retryAfterMs).toBeGreaterThan(23 * HOUR_MS);
  });
});

describe('F05 a denial is not an error', () => {
  test('it comes from the owner, and no fallback hears of it', async () => {
    const { world, isolate } = start();
    const rule = fixed(2);
    expect((await askTimes(isolate, [rule], 3)).map(({ outcome }) => outcome)).toEqual([
      'allowed',
      'allowed',
      'denied',
    ]);
    expect([world.counted('fallback_decision'), world.counted('owner_failure')]).toEqual([0, 0]);
  });
});

describe('deny memory', () => {
  test("R09 the boundary is the owner's: of a limit of 10, the tenth passes and the eleventh does not", async () => {
    const { isolate } = start();
    const outcomes = (await askTimes(isolate, [fixed(10)], 12)).map(({ outcome }) => outcome);
    expect(outcomes).toEqual([...Array(10).fill('allowed'), 'denied', 'denied']);
  });

  test('a denied flood costs about one call a second', async () => {
    const { world, isolate } = start();
    const rule = winner({ quota: 100, windowMs: HOUR_MS });
    await askTimes(isolate, [rule], 100);
    const before = world.calls.length;
    for (let at = 0; at < 1_000; at += 1) {
      expect((await isolate.ask([rule])).outcome).toBe('denied');
      await world.time.advance(3);
    }
    expect(world.calls.length - before).toBeLessThanOrEqual(5);
  });

  test('peeks between the denied make it forget nothing', async () => {
    const { world, isolate } = start();
    const rule = fixed(1);
    await askTimes(isolate, [rule], 2);
    const before = world.calls.length;
    for (let time = 0; time < 10; time += 1) {
      expect((await isolate.ask([rule], { cost: 0 })).source).toBe('owner');
      expect((await isolate.ask([rule])).source).toBe('deny_memory');
    }
    expect(world.calls).toHaveLength(before + 10);
  });

  test('a smaller request that is admitted makes a larger one wait for its units too', async () => {
    const { isolate } = start(() => answers({ thereMs: 0, backMs: 0 }));
    const rule = [winner({ quota: 3, windowMs: 3 * SECOND_MS })];
    await isolate.ask(rule);
    expect((await isolate.ask(rule, { cost: 3 })).retryAfterMs).toBe(1_000);
    expect((await isolate.ask(rule)).outcome).toBe('allowed');
    expect((await isolate.ask(rule, { cost: 3 })).retryAfterMs).toBe(2_000);
  });

  test('a charge of its own that is given back makes it forget', async () => {
    const { world, isolate } = start();
    const last = fixed(1, { policy: 'last', owner: 'last' });
    const empty = fixed(1, { policy: 'empty', owner: 'empty' });
    await world.isolate().ask([empty]);
    world.network = ({ owner }) => answers({ thereMs: owner === 'empty' ? 50 : 1 });
    const refused = isolate.send([last, empty]);
    await world.time.advance(10);
    expect((await isolate.ask([last])).outcome).toBe('denied');
    expect((await world.time.settle(refused)).outcome).toBe('denied');
    await world.time.advance(5);
    expect(await isolate.ask([last])).toMatchObject({ outcome: 'allowed', source: 'owner' });
  });

  test('a new ruleset makes it forget', async () => {
    const { isolate } = start();
    await askTimes(isolate, [fixed(1)], 3);
    const version = { activation: 2, builtAtMs: 0 };
    expect(await isolate.ask([fixed(2)], { version })).toMatchObject({ outcome: 'allowed', source: 'owner' });
  });

  test('a denial under older rules that comes after newer ones is not remembered', async () => {
    const { world, isolate } = start(() => answers({ thereMs: 1, backMs: 20 }));
    await world.isolate().ask([fixed(1)]);
    const older = isolate.send([fixed(1)]);
    await world.time.advance(5);
    const version = { activation: 2, builtAtMs: 0 };
    void isolate.send([], { version });
    expect(await world.time.settle(older)).toMatchObject({ outcome: 'denied', source: 'owner' });
    expect(await isolate.ask([fixed(2)], { version })).toMatchObject({ outcome: 'allowed', source: 'owner' });
  });

  test('a clock that steps back does not prolong it', async () => {
    const { world, isolate } = start();
    const rule = winner({ quota: 2, windowMs: SECOND_MS });
    await askTimes(isolate, [rule], 3);
    world.stepIsolateClock(-HOUR_MS);
    expect((await isolate.ask([rule])).outcome).toBe('denied');
    await world.time.advance(SECOND_MS);
    expect((await isolate.ask([rule])).outcome).toBe('allowed');
  });

  test('a quota of 0 denies with a wait that is a number', async () => {
    const { isolate } = start();
    const verdicts = await askTimes(isolate, [winner({ quota: 0 })], 3);
    expect(verdicts.map(({ outcome, source }) => [outcome, source])).toEqual([
      ['denied', 'owner'],
      ['denied', 'deny_memory'],
      ['denied', 'deny_memory'],
    ]);
    for (const { retryAfterMs } of verdicts) expect(retryAfterMs).toBeGreaterThan(0);
  });

  test('property: through the gate one isolate is admitted exactly what its owner alone would admit', async () => {
    const request = fc.record({
      cost: fc.integer({ min: 0, max: 4 }),
      waitMs: fc.integer({ min: 0, max: 700 }),
    });
    const limit = fc.record({
      algorithm: fc.constantFrom(
        'token_bucket',
        'leaky_bucket',
        'fixed_window',
        'sliding_window',
        'sliding_log',
      ),
      quota: fc.integer({ min: 1, max: 6 }),
    });
    const immediate = () => answers({ thereMs: 0, backMs: 0 });
    await fc.assert(
      fc.asyncProperty(limit, fc.array(request, { maxLength: 40 }), async (options, requests) => {
        const rule = [winner({ windowMs: 2 * SECOND_MS, ...options })];
        const [gated, ideal] = [start(immediate), start(immediate)];
        for (const { cost, waitMs } of requests) {
          await gated.world.time.advance(waitMs);
          await ideal.world.time.advance(waitMs);
          const verdict = await gated.isolate.ask(rule, { cost });
          const alone = await ideal.world.isolate().ask(rule, { cost });
          expect(verdict.outcome).toBe(alone.outcome);
          expect(verdict.retryAfterMs).toBeCloseTo(alone.retryAfterMs, 3);
        }
      }),
      { numRuns: 100 },
    );
  });
});

describe('local rules', () => {
  const local = (quota: number) => winner({ policy: 'flood', scope: 'local', quota });

  test('come first: a denial ends there, without a call', async () => {
    const { world, isolate } = start();
    const verdicts = await askTimes(isolate, [local(2), fixed(10)], 4);
    expect(verdicts.map(({ outcome, source }) => [outcome, source])).toEqual([
      ['allowed', 'owner'],
      ['allowed', 'owner'],
      ['denied', 'local'],
      ['denied', 'local'],
    ]);
    expect(world.calls).toHaveLength(2);
  });

  test('get back what they charged when an owner, or the memory of one, denies', async () => {
    const { isolate } = start();
    const flood = local(10);
    await askTimes(isolate, [flood, fixed(1)], 9);
    expect(admitted(await askTimes(isolate, [flood], 20))).toBe(9);
  });

  test('in shadow are charged by what passes, and reported', async () => {
    const { isolate } = start();
    const shadow = winner({ policy: 'flood', scope: 'local', quota: 1, shadow: true });
    const verdicts = await askTimes(isolate, [fixed(5)], 3, { shadow: [shadow] });
    expect(verdicts.map(({ shadowDenied }) => shadowDenied)).toEqual([[], ['flood'], ['flood']]);
  });

  test('alone make no call and take no time', async () => {
    const { world, isolate } = start();
    expect(await isolate.ask([local(1)])).toMatchObject({ outcome: 'allowed', source: 'local', tookMs: 0 });
    expect(world.calls).toEqual([]);
  });
});

describe('shadow counters', () => {
  test('at the same owner ride along, and never decide', async () => {
    const { world, isolate } = start();
    const shadow = fixed(1, { policy: 'trial', shadow: true });
    const verdicts = await askTimes(isolate, [fixed(5)], 3, { shadow: [shadow] });
    expect(verdicts.map(({ outcome }) => outcome)).toEqual(['allowed', 'allowed', 'allowed']);
    expect(verdicts.map(({ shadowDenied }) => shadowDenied)).toEqual([[], ['trial'], ['trial']]);
    expect([world.calls.length, world.counted('shadow_denied')]).toEqual([3, 2]);
  });

  test('at an owner of their own are asked in the background, and a slow one holds nobody up', async () => {
    const { world, isolate } = start();
    world.network = ({ owner }) => answers({ thereMs: owner === 'slow' ? 400 : 1 });
    const shadow = fixed(1, { policy: 'trial', owner: 'slow', shadow: true });
    expect(await isolate.ask([fixed(5)], { shadow: [shadow] })).toMatchObject({
      outcome: 'allowed',
      tookMs: 2,
    });
    await world.time.runOut();
    expect(world.used(shadow)).toBe(1);
    expect([isolate.unfinished, world.problems]).toEqual([0, []]);
  });

  test('are not charged for what is denied', async () => {
    const { world, isolate } = start();
    const shadows = [
      fixed(9, { policy: 'trial', shadow: true }),
      fixed(9, { policy: 'trial', owner: 'other', shadow: true }),
    ];
    await askTimes(isolate, [fixed(2)], 5, { shadow: shadows });
    await world.time.runOut();
    expect(shadows.map((shadow) => world.used(shadow))).toEqual([2, 2]);
  });
});

describe('several owners', () => {
  const user = fixed(2, { policy: 'user', owner: 'user' });
  const organisation = fixed(100, { policy: 'organisation', owner: 'organisation' });

  test('are asked at once: the wait is that of the slower', async () => {
    const { world, isolate } = start();
    world.network = ({ owner }) => answers({ thereMs: owner === 'user' ? 40 : 60 });
    expect((await isolate.ask([user, organisation])).tookMs).toBe(61);
  });

  test('what one charged is given back when the other denies, once', async () => {
    const { world, isolate } = start();
    const verdicts = await askTimes(isolate, [user, organisation], 3);
    expect(admitted(verdicts)).toBe(2);
    await world.time.runOut();
    expect([world.used(user), world.used(organisation)]).toEqual([2, 2]);
  });

  test('a denial is answered without waiting for the others, and what they then charge is given back', async () => {
    const { world, isolate } = start();
    await isolate.ask([user], { cost: 2 });
    const other = world.isolate();
    world.network = ({ owner }) => answers({ thereMs: owner === 'organisation' ? 120 : 1 });
    expect(await other.ask([user, organisation])).toMatchObject({ outcome: 'denied', tookMs: 2 });
    await world.time.runOut();
    expect(world.used(organisation)).toBe(0);
    expect(world.counted('give_back')).toBe(1);
  });

  test('also when that answer comes long after the deadline', async () => {
    const { world, isolate } = start();
    await askTimes(isolate, [organisation], 1);
    await isolate.ask([user], { cost: 2 });
    const other = world.isolate();
    await other.ask([organisation]);
    world.network = ({ owner, call }) => {
      const isSlow = owner === 'organisation' && call.question !== undefined;
      return answers({ thereMs: isSlow ? 4_000 : 1 });
    };
    expect((await other.ask([user, organisation])).outcome).toBe('denied');
    await world.time.runOut();
    expect(world.used(organisation)).toBe(2);
  });

  test('the one that is known to be empty is asked first, and the others not at all', async () => {
    const { world, isolate } = start();
    const narrow = fixed(2, { policy: 'user', owner: 'user', algorithm: 'sliding_window' });
    await askTimes(isolate, [narrow, organisation], 2);
    const before = world.callsTo('organisation').length;
    await world.time.advance(2 * SECOND_MS);
    expect((await isolate.ask([narrow, organisation])).source).toBe('owner');
    await world.time.advance(2 * SECOND_MS);
    expect((await isolate.ask([narrow, organisation])).outcome).toBe('denied');
    expect(world.callsTo('organisation')).toHaveLength(before);
  });

  test('one after the other they have one deadline together', async () => {
    const { world, isolate } = start();
    await askTimes(isolate, [user, organisation], 2);
    await world.time.advance(2 * SECOND_MS);
    world.network = stalled;
    const verdict = await isolate.ask([user, organisation]);
    expect(world.callsTo('user')).toHaveLength(3);
    expect(verdict.tookMs).toBe(150);
  });
});

describe('a cold isolate', () => {
  test('100 at once on 100 a minute: all admitted, though only 64 may ask at a time', async () => {
    const { world, isolate } = start();
    world.network = () => answers({ thereMs: 15, backMs: 15 });
    const rule = winner({ quota: 100, windowMs: MINUTE_MS });
    const requests = Array.from({ length: 100 }, () => isolate.send([rule]));
    expect(admitted(await world.time.settle(Promise.all(requests)))).toBe(100);
    expect(world.counted('fallback_decision')).toBe(0);
  });
});

test('property: on a healthy network a denied request leaves every counter as it was', async () => {
  const counter = fc.record({
    owner: fc.constantFrom('a', 'b', 'c'),
    quota: fc.integer({ min: 1, max: 4 }),
    scope: fc.constantFrom('global' as const, 'local' as const),
  });
  const request = fc.record({
    picks: fc.array(fc.nat({ max: 5 }), { minLength: 1, maxLength: 4 }),
    cost: fc.integer({ min: 1, max: 3 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(counter, { minLength: 1, maxLength: 6 }),
      fc.array(request, { maxLength: 15 }),
      async (counters, requests) => {
        const { world, isolate } = start();
        const winners = counters.map(({ scope, ...options }, at) =>
          scope === 'local'
            ? winner({ policy: `p${at}`, ...options, scope, windowMs: 1_000 * HOUR_MS })
            : fixed(options.quota, { policy: `p${at}`, ...options }),
        );
        const spent = winners.map(() => 0);
        for (const { picks, cost } of requests) {
          const chosen = [...new Set(picks.map((pick) => pick % winners.length))];
          const verdict = await isolate.ask(
            chosen.map((at) => winners[at]!),
            { cost },
          );
          if (verdict.outcome === 'allowed') for (const at of chosen) spent[at]! += cost;
        }
        await world.time.runOut();
        for (const [at, rule] of winners.entries()) {
          if (rule.rule.scope === 'global') expect(world.used(rule)).toBe(spent[at]);
          else expect(admitted(await askTimes(isolate, [rule], 5))).toBe(rule.rule.limit!.quota - spent[at]!);
        }
        expect(world.problems).toEqual([]);
      },
    ),
    { numRuns: 100 },
  );
});
