/**
 * Leases as a request meets them: real gates and owners, a scripted network between them.
 */
import { describe, expect, test } from 'vitest';
import type { Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { answerLost, answers, healthy, questionLost, stalled } from './network.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { callOf, FIRST_VERSION, type Isolate, type RequestOptions, World } from './world.ts';

const NEXT_VERSION = { ...FIRST_VERSION, activation: 2 };

/** A thousand a second, leased from the first request on. */
const hot = (options: Partial<WinnerOptions> = {}) =>
  winner({ quota: 1_000, windowMs: SECOND_MS, consistency: 'leased', ...options });

/** Sends requests at a steady pace; leaves an isolate that has a lease, if it may have one. */
interface Warming extends RequestOptions {
  readonly forMs?: number;
  readonly everyMs?: number;
}

async function warm(
  world: World,
  isolate: Isolate,
  rules: readonly Winner[],
  { forMs = 600, everyMs = 5, ...options }: Warming = {},
) {
  const sent = [];
  for (let ms = 0; ms < forMs; ms += everyMs) {
    sent.push(isolate.send(rules, options));
    await world.time.advance(everyMs);
  }
  return world.time.settle(Promise.all(sent));
}

async function leased(rules: readonly Winner[] = [hot()], options: Warming = {}) {
  const world = new World();
  const isolate = world.isolate();
  await warm(world, isolate, rules, options);
  return { world, isolate };
}

const sources = (verdicts: readonly Verdict[]) => new Set(verdicts.map(({ source }) => source));

function isPromise(verdict: Verdict | Promise<Verdict>): verdict is Promise<Verdict> {
  return verdict instanceof Promise;
}

test('a holder that is asked less than before gives up what it does not need, and says so', async () => {
  const { world, isolate } = await leased();
  const before = world.calls.length;
  await warm(world, isolate, [hot()], { forMs: 3_000, everyMs: 50 });
  const questions = world.calls.slice(before).flatMap(({ call }) => call.question ?? []);
  const giving = questions.filter(({ lease }) => lease?.unitsPerMs !== undefined);
  expect(giving.length).toBeGreaterThan(0);
  for (const { lease, counters } of giving)
    expect(lease!.unitsPerMs! * SECOND_MS).toBeCloseTo(1.1 * counters[0]!.unitsPerSecond, 6);
});

describe('an allowed request of a leased key', () => {
  test('is answered at once, without a promise, a call or a timer of its own', async () => {
    const { world, isolate } = await leased();
    const [calls, pending] = [world.calls.length, world.time.pending];
    const verdict = isolate.decide([hot()]);
    expect(isPromise(verdict)).toBe(false);
    expect(verdict).toMatchObject({ outcome: 'allowed', source: 'lease', retryAfterMs: 0 });
    expect([world.calls.length, world.time.pending]).toEqual([calls, pending]);
  });

  test('costs few calls: a thousand in five seconds', async () => {
    const { world, isolate } = await leased();
    const before = world.calls.length;
    const verdicts = await warm(world, isolate, [hot()], { forMs: 5_000 });
    expect(sources(verdicts)).toEqual(new Set(['lease']));
    expect(world.calls.length - before).toBeLessThanOrEqual(20);
  });

  test('a peek is, too, and takes nothing', async () => {
    const { world, isolate } = await leased();
    await world.time.advance(20);
    const before = isolate.decide([hot()], { cost: 0 }) as Verdict;
    expect(before).toMatchObject({ outcome: 'allowed', source: 'lease' });
    expect(isolate.decide([hot()], { cost: 0 })).toEqual(before);
  });

  test('a counter that needs no lease beside it is asked for, and only that', async () => {
    const strict = winner({ policy: 'strict', owner: 'other', quota: 1_000 });
    const { world, isolate } = await leased();
    const before = world.callsTo('anne').length;
    const verdict = await isolate.ask([hot(), strict]);
    expect(verdict.policies.map(({ source }) => source)).toEqual(['lease', 'owner']);
    expect([world.callsTo('anne').length, world.callsTo('other').length]).toEqual([before, 1]);
  });
});

describe('who leases', () => {
  const fewASecond = { everyMs: 100, forMs: 3_000 };
  const table: readonly (readonly [string, Winner, object, boolean])[] = [
    ['strict, however hot', hot({ consistency: 'strict' }), {}, false],
    ['leased, however cold', hot(), fewASecond, true],
    ['auto, hot', hot({ consistency: 'auto' }), {}, true],
    ['auto, cold', hot({ consistency: 'auto', quota: 900 }), fewASecond, false],
    ['auto, cold, a limit for hot keys', hot({ consistency: 'auto' }), { forMs: 300, everyMs: 100 }, true],
    ['auto, a small limit', hot({ consistency: 'auto', quota: 10, burst: 1_000 }), {}, false],
    ['auto, a limit that is large enough', hot({ consistency: 'auto', quota: 60, burst: 1_000 }), {}, true],
    ['leased, a small limit', hot({ quota: 100, windowMs: MINUTE_MS }), fewASecond, true],
    ['leased, a burst of 99 ms', hot({ burst: 99 }), {}, false],
    ['leased, a burst of 100 ms', hot({ burst: 100 }), {}, true],
    ['leased, a window', hot({ algorithm: 'fixed_window' }), {}, true],
    ['leased, a sliding window', hot({ algorithm: 'sliding_window' }), {}, false],
    ['leased, a log', hot({ algorithm: 'sliding_log' }), {}, false],
    ['leased, a queue', hot({ algorithm: 'leaky_bucket', maxDelayMs: 1_000 }), {}, false],
    ['leased, a cost of half the burst in the rules', hot(), { largestCost: 500 }, true],
    ['leased, a cost of more', hot(), { largestCost: 501 }, false],
  ];
  test.each(table)('%s', async (_, rule, options, isLeased) => {
    const world = new World();
    const verdicts = await warm(world, world.isolate(), [rule], options);
    expect(sources(verdicts).has('lease')).toBe(isLeased);
    expect(world.counted('lease_granted') > 0).toBe(isLeased);
  });

  test('auto, a limit for hot keys: what is asked for now and then is not lent, and costs a call each', async () => {
    const world = new World();
    const rule = hot({ consistency: 'auto' });
    const verdicts = await warm(world, world.isolate(), [rule], { forMs: 5_000, everyMs: 400 });
    expect(world.counted('lease_granted')).toBe(0);
    expect(world.counted('owner_call')).toBe(verdicts.length);
    expect(verdicts.every(({ source }) => source === 'owner')).toBe(true);
  });

  test('auto, a limit for hot keys: of the first questions of many isolates at once nearly all are lent something', async () => {
    const world = new World();
    const rule = hot({ consistency: 'auto' });
    const sent = Array.from({ length: 20 }, () => world.isolate().send([rule]));
    await world.time.settle(Promise.all(sent));
    expect(world.counted('lease_granted')).toBeGreaterThanOrEqual(15);
  });

  test.each(['auto', 'leased'] as const)(
    '%s: a few at once, now and then, need no lease, and none of them waits in line for one',
    async (consistency) => {
      const world = new World({ network: () => answers({ thereMs: 30, backMs: 30 }) });
      const isolate = world.isolate();
      for (let round = 0; round < 5; round += 1) {
        const four = Array.from({ length: 4 }, () => isolate.send([hot({ consistency })]));
        const verdicts = await world.time.settle(Promise.all(four));
        expect(verdicts.every(({ outcome }) => outcome === 'allowed')).toBe(true);
        expect(sources(verdicts)).not.toContain('fallback');
        await world.time.advance(8_000);
      }
    },
  );

  test('a holder that turns slow loses nothing: what it does not spend comes back', async () => {
    const day = winner({ quota: 10_000, windowMs: 86_400_000, consistency: 'leased' });
    const world = new World();
    const isolate = world.isolate();
    const verdicts = [
      ...(await warm(world, isolate, [day], { forMs: 3_000, everyMs: 10 })),
      ...(await warm(world, isolate, [day], { forMs: 9_000, everyMs: 600 })),
    ];
    await world.time.advance(5_000);
    const admitted = verdicts.filter(({ outcome }) => outcome === 'allowed').length;
    expect(admitted).toBe(verdicts.length);
    // A day's bucket refills about one unit meanwhile.
    expect(Math.abs(world.used(day) - admitted)).toBeLessThan(3);
  });

  test('a request with a counter that does not lease is decided by a call, together with the others of its owner', async () => {
    const strict = hot({ policy: 'strict', consistency: 'strict' });
    const { isolate } = await leased([hot(), strict]);
    expect((await isolate.ask([hot(), strict])).source).toBe('owner');
  });

  test('two counters of one owner are one lease', async () => {
    const day = hot({ policy: 'day', quota: 100_000, windowMs: 86_400_000 });
    const { isolate } = await leased([hot(), day]);
    expect(isolate.decide([hot(), day])).toMatchObject({
      source: 'lease',
      policies: [{ source: 'lease' }, { source: 'lease' }],
    });
  });
});

describe('a cold isolate', () => {
  test.each(['strict', 'leased', 'auto'] as const)(
    'R09 100 at once on 100 a minute are all admitted, the next is not (%s)',
    async (consistency) => {
      const world = new World();
      const isolate = world.isolate();
      const rule = winner({ quota: 100, consistency });
      const burst = Array.from({ length: 100 }, () => isolate.send([rule]));
      const verdicts = await world.time.settle(Promise.all(burst));
      expect(verdicts.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(100);
      expect(await isolate.ask([rule])).toMatchObject({ outcome: 'denied' });
      expect(world.counted('fallback_decision')).toBe(0);
    },
  );
});

describe('when another owner denies', () => {
  const full = winner({ policy: 'full', owner: 'full', quota: 5 });

  test('leased units are back at once', async () => {
    const { world, isolate } = await leased();
    const none = winner({ policy: 'none', owner: 'none', quota: 0 });
    const handed = () => {
      let count = 0;
      while (!isPromise(isolate.decide([hot()])) && count < 2_000) count += 1;
      return count;
    };
    // The denial is not remembered yet, so the lease is spent first.
    const denied = isolate.send([hot(), none]);
    const verdict = await world.time.settle(denied);
    expect(verdict).toMatchObject({ outcome: 'denied' });
    const twin = await leased();
    await twin.world.time.settle(twin.isolate.send([], {}));
    await twin.world.time.advance(world.time.elapsedMs - twin.world.time.elapsedMs);
    const other = (() => {
      let count = 0;
      while (!isPromise(twin.isolate.decide([hot()])) && count < 2_000) count += 1;
      return count;
    })();
    expect(handed()).toBe(other);
  });

  test('M05 the demand of the others is not larger for it, also when the denial is remembered', async () => {
    const world = new World();
    const isolate = world.isolate();
    await warm(world, isolate, [full, hot()], { forMs: 2_000 });
    expect(world.counted('deny_memory_hit')).toBeGreaterThan(200);
    await isolate.ask([hot()], { cost: 0 });
    const { question } = world.callsTo('anne').at(-1)!.call;
    expect(question!.counters[0]!.unitsPerSecond).toBeLessThan(2);
  });
});

describe('a lease that has run dry', () => {
  test('M05 the demand for the counters of other owners is what it let through', async () => {
    const world = new World();
    const isolate = world.isolate();
    const user = hot({ policy: 'user', owner: 'user', quota: 100 });
    await warm(world, isolate, [user, hot()], { forMs: 4_000, everyMs: 2 });
    await world.time.settle(isolate.send([hot({ policy: 'strict', consistency: 'strict' }), hot()]));
    const { question } = world.callsTo('anne').at(-1)!.call;
    const asked = question!.counters.find(({ id }) => id === hot().counterId)!;
    expect(asked.unitsPerSecond).toBeLessThan(160);
  });

  test('a cost that it has no room for is not denied by it, however scarce units are', async () => {
    const world = new World();
    const isolate = world.isolate();
    const rule = hot({ quota: 100 });
    await warm(world, isolate, [rule], { forMs: 2_000, everyMs: 1 });
    expect(isolate.decide([rule])).toMatchObject({ outcome: 'denied', source: 'lease' });
    const before = world.calls.length;
    await isolate.ask([rule], { cost: 50, largestCost: 50 });
    const asked = world.calls.slice(before).map(({ call }) => call.question?.cost);
    expect(asked).toContain(50);
  });

  test('two counters of one lease: the demand of neither shrinks, so they are lent as much as ever', async () => {
    const rules = [hot({ quota: 100 }), hot({ policy: 'hour', quota: 360_000, windowMs: 3_600_000 })];
    const world = new World();
    const isolate = world.isolate();
    const verdicts = await warm(world, isolate, rules, { forMs: 4_000, everyMs: 2 });
    expect(verdicts.some(({ outcome, source }) => outcome === 'denied' && source === 'lease')).toBe(true);
    const { question } = world.callsTo('anne').at(-1)!.call;
    for (const { unitsPerSecond } of question!.counters) expect(unitsPerSecond).toBeGreaterThan(400);
  });

  test('says how long until the next unit, and hardly calls', async () => {
    const world = new World();
    const isolate = world.isolate();
    const rule = hot({ quota: 100 });
    await warm(world, isolate, [rule], { forMs: 2_000, everyMs: 1 });
    const before = world.calls.length;
    const verdicts = await warm(world, isolate, [rule], { forMs: 2_000, everyMs: 1 });
    const denied = verdicts.filter(({ outcome }) => outcome === 'denied');
    expect(denied.length).toBeGreaterThan(1_700);
    for (const { retryAfterMs } of denied)
      expect(retryAfterMs).toSatisfy((ms: number) => ms >= 1 && ms <= 1_000);
    expect(world.calls.length - before).toBeLessThanOrEqual(60);
    expect(verdicts.length - denied.length).toBeGreaterThan(190);
  });

  test('a cost above what it holds is decided by its owner', async () => {
    const { world, isolate } = await leased([hot()], { largestCost: 400 });
    const before = world.calls.length;
    const verdict = await isolate.ask([hot()], { cost: 400, largestCost: 400 });
    expect(verdict.outcome).toBe('allowed');
    expect(world.calls.length).toBeGreaterThan(before);
  });
});

describe('deny memory', () => {
  test('does not hide a lease', async () => {
    const rule = hot();
    const shape = [rule, hot({ policy: 'strict', consistency: 'strict', quota: 1_000_000 })];
    const { world, isolate } = await leased([rule]);
    // The owner's own bucket is emptied, and it says so to a request that it decides itself.
    const debts = [{ id: 'debt', counterId: rule.counterId, limit: rule.rule.limit!, units: 1_500 }];
    world.owner().handle(callOf({ holder: 'another', debts }));
    const denied = await isolate.ask(shape);
    expect(denied.outcome).toBe('denied');
    expect(isolate.decide([rule])).toMatchObject({ outcome: 'allowed', source: 'lease' });
  });
});

describe('what is not spent', () => {
  test('goes back before the lease ends', async () => {
    const { world, isolate } = await leased([hot({ quota: 100, windowMs: MINUTE_MS })], {
      forMs: 20,
      everyMs: 10,
    });
    await world.time.runOut();
    const final = world.calls.filter(({ call }) => call.question?.lease?.isFinal === true);
    expect(final).toHaveLength(1);
    expect(world.used(hot())).toBeLessThan(2.1);
    expect(isolate.unfinished).toBe(0);
  });

  test('nothing is sent for a lease that was spent', async () => {
    const world = new World();
    const isolate = world.isolate();
    const window = hot({ quota: 10, windowMs: MINUTE_MS, algorithm: 'fixed_window' });
    await warm(world, isolate, [window], { forMs: 100, everyMs: 2 });
    await world.time.runOut();
    expect(world.calls.some(({ call }) => call.question?.lease?.isFinal)).toBe(false);
    expect(isolate.unfinished).toBe(0);
  });

  test('a key that has gone cold is not leased any more', async () => {
    const { world, isolate } = await leased([hot({ consistency: 'auto' })]);
    await warm(world, isolate, [hot({ consistency: 'auto' })], { forMs: 6_000, everyMs: 400 });
    const before = world.calls.length;
    const verdicts = await warm(world, isolate, [hot({ consistency: 'auto' })], {
      forMs: 4_000,
      everyMs: 400,
    });
    expect(sources(verdicts)).toEqual(new Set(['owner']));
    expect(world.calls.length - before).toBe(verdicts.length);
  });

  test('a shadow counter beside it is charged what was spent, also of the last lease', async () => {
    const shadow = winner({ policy: 'new', quota: 1_000, windowMs: 30 * 86_400_000, shadow: true });
    const { world } = await leased([hot()], { shadow: [shadow] });
    await world.time.runOut();
    expect(world.used(shadow)).toBeCloseTo(120, 1);
  });
});

describe('rules that change', () => {
  test.each([
    ['strict', hot({ consistency: 'strict' })],
    ['a window that slides', hot({ algorithm: 'sliding_window' })],
    ['nothing at all', hot({ quota: 0, burst: 0 })],
  ])('L11 to %s: the lease in hand is not spent any more', async (_, rule) => {
    const { isolate } = await leased();
    const verdict = await isolate.ask([rule], { version: NEXT_VERSION });
    expect(verdict.source).toBe('owner');
  });

  test('to strict: what is in hand goes back with the first question, so nobody inside the limit is denied', async () => {
    const limit = { quota: 1_000, windowMs: 30 * 86_400_000 };
    const { world, isolate } = await leased([hot(limit)]);
    let admitted = 120;
    for (let sent = 0; sent < 1_000; sent += 1) {
      const { outcome } = await isolate.ask([hot({ ...limit, consistency: 'strict' })], {
        version: NEXT_VERSION,
      });
      if (outcome === 'allowed') admitted += 1;
    }
    expect(world.problems).toEqual([]);
    expect(admitted).toBe(1_000);
  });

  test('a lease that was asked for under the old ones is renewed as soon as it has come', async () => {
    const world = new World({ network: () => answers({ thereMs: 1, backMs: 40 }) });
    const isolate = world.isolate();
    void isolate.send([hot()]);
    await world.time.advance(20);
    void isolate.send([hot({ policy: 'another', owner: 'another' })], { version: NEXT_VERSION });
    await world.time.advance(30);
    expect(isolate.decide([hot()], { version: NEXT_VERSION })).toMatchObject({ source: 'lease' });
    expect(world.callsTo('anne').at(-1)!.call).toMatchObject({
      version: NEXT_VERSION,
      question: { cost: 0 },
    });
  });

  test('to other numbers: the next request asks for a new lease, once', async () => {
    const { world, isolate } = await leased();
    const before = world.calls.length;
    for (let sent = 0; sent < 20; sent += 1) {
      void isolate.send([hot({ quota: 2_000 })], { version: NEXT_VERSION });
      await world.time.advance(5);
    }
    const asked = world.calls.slice(before).filter(({ call }) => call.question?.lease !== undefined);
    expect(asked.length).toBeGreaterThanOrEqual(1);
    expect(asked.length).toBeLessThanOrEqual(4);
    expect(asked[0]!.call.version).toEqual(NEXT_VERSION);
  });
});

describe('a network that loses, delays and reorders', () => {
  test('a renewal that is lost, or its answer, ends nothing for long: the next request asks', async () => {
    for (const fate of [questionLost(), answerLost()]) {
      const { world, isolate } = await leased();
      let lost = 0;
      world.network = ({ call }) => {
        if (lost > 0 || !call.question?.id.endsWith(':renewal')) return answers();
        lost += 1;
        return fate;
      };
      const verdicts = await warm(world, isolate, [hot()], { forMs: 3_000 });
      expect(lost).toBe(1);
      expect(verdicts.every(({ outcome }) => outcome === 'allowed')).toBe(true);
      expect(world.counted('fallback_decision')).toBe(0);
      expect(isolate.decide([hot()])).toMatchObject({ source: 'lease' });
    }
  });

  test('an answer that comes after the life of its lease brings none', async () => {
    const world = new World({ network: () => answers({ thereMs: 1, backMs: 1_500 }) });
    const isolate = world.isolate();
    const verdict = await isolate.ask([hot()]);
    expect(verdict.source).toBe('fallback');
    await world.time.runOut();
    expect(world.counted('lease_granted')).toBe(0);
  });

  test('an answer that nobody waited for any more brings its lease, while it lasts', async () => {
    const world = new World({ network: healthy });
    const isolate = world.isolate();
    await isolate.ask([hot({ policy: 'another', consistency: 'strict' })]);
    world.network = () => answers({ thereMs: 1, backMs: 300 });
    const verdict = await isolate.ask([hot()]);
    expect(verdict.source).toBe('fallback');
    await world.time.advance(200);
    expect(world.counted('lease_granted')).toBe(1);
  });

  test.each([100, 200, 300, 400])(
    'an owner that always takes %i ms lends for so long that its renewals come in time, and none of it comes back unspent',
    async (roundTripMs) => {
      const world = new World({
        network: () => answers({ thereMs: roundTripMs / 2, backMs: roundTripMs / 2 }),
      });
      const isolate = world.isolate();
      await warm(world, isolate, [hot()], { forMs: 5_000 });
      const before = world.calls.length;
      const verdicts = await warm(world, isolate, [hot()], { forMs: 5_000 });
      expect(sources(verdicts)).toEqual(new Set(['lease']));
      const said = world.calls.slice(before).flatMap(({ call }) => call.question?.lease ?? []);
      expect(said.some(({ isFinal }) => isFinal)).toBe(false);
      expect(said.length).toBeGreaterThan(5);
    },
  );

  test.each([
    ['for the first time', () => ({ world: new World(), isolate: undefined })],
    ['once more', () => leased()],
  ])(
    'a first lease that is over when it comes, since its owner had to start %s, is given back at once',
    async (_, before) => {
      const { world, isolate = world.isolate() } = await before();
      await world.time.advance(2_000);
      world.owner(hot().owner.name).restart();
      const calls = world.calls.length;
      world.network = () => answers({ thereMs: world.calls.length > calls + 1 ? 1 : 500 });
      const granted = world.counted('lease_granted');
      await isolate.ask([hot()]);
      await world.time.advance(502);
      expect(world.counted('lease_granted')).toBe(granted);
      const lease = world.calls.flatMap(({ call }) => call.question?.lease ?? []).at(-1)!;
      expect(lease).toMatchObject({ isFinal: true, returned: [], spent: 0 });
      expect(lease.held).toBeGreaterThan(1);
      expect(world.owner(hot().owner.name).owner.counters().next().value!.lent!.isEmpty).toBe(true);
    },
  );

  test('an owner that falls silent: what is in hand is spent, then the fallback decides', async () => {
    const { world, isolate } = await leased();
    world.network = stalled;
    const verdicts = await warm(world, isolate, [hot()], { forMs: 3_000 });
    await world.time.advance(1_500);
    expect(verdicts[0]!.source).toBe('lease');
    expect(verdicts.at(-1)!.source).toBe('fallback');
    expect(sources(verdicts)).toEqual(new Set(['lease', 'fallback']));
  });
});

describe('clocks', () => {
  test('R11 an isolate that was frozen for seconds spends nothing of what it held', async () => {
    const { world, isolate } = await leased();
    world.time.after(0, () => undefined);
    await world.time.advance(1);
    // Time passes without the isolate's timers: as if it had been stopped.
    world.stepIsolateClock(10 * SECOND_MS);
    expect(isPromise(isolate.decide([hot()]))).toBe(true);
  });

  test('C03 a step back does not make a lease longer than one life', async () => {
    const { world, isolate } = await leased();
    world.network = stalled;
    world.stepIsolateClock(-3_600_000);
    await world.time.advance(1_001);
    expect(isPromise(isolate.decide([hot()]))).toBe(true);
  });

  test.each([
    ['forth, which refills it once', HOUR_MS, 500],
    ['back', -HOUR_MS, 0],
  ])(
    "a step of the owner's clock, an hour %s, leaves the isolate its lease and the counter its limit",
    async (_, ms, refill) => {
      const rule = hot({ quota: 500 });
      const { world, isolate } = await leased([rule]);
      const twiceTheLimit = { forMs: 3_000, everyMs: 1 };
      await warm(world, isolate, [rule], twiceTheLimit);
      world.stepOwnerClock(ms);
      const verdicts = await warm(world, isolate, [rule], twiceTheLimit);
      expect(sources(verdicts)).toEqual(new Set(['lease']));
      const admitted = verdicts.filter(({ outcome }) => outcome === 'allowed').length;
      expect(admitted).toBeLessThanOrEqual(1_500 + refill);
      expect(admitted).toBeGreaterThanOrEqual(0.99 * 1_500);
    },
  );
});

describe('lives of the owner', () => {
  test('an answer of an earlier life that was overtaken is not gone by', async () => {
    const world = new World();
    const isolate = world.isolate();
    let asked = 0;
    world.network = ({ call }) => {
      if (call.question?.lease === undefined) return answers();
      asked += 1;
      return asked === 1 ? answers({ thereMs: 1, backMs: 250 }) : answers();
    };
    await isolate.ask([hot({ policy: 'another', consistency: 'strict' })]);
    void isolate.send([hot()]);
    await world.time.advance(160);
    world.owner().restart();
    await warm(world, isolate, [hot()], { forMs: 60, everyMs: 5 });
    const granted = world.counted('lease_granted');
    expect(granted).toBeGreaterThan(0);
    await warm(world, isolate, [hot()], { forMs: 1_000, everyMs: 5 });
    const lives = world.callsTo('anne').map(({ call }) => call.question?.lease?.incarnation);
    expect(new Set(lives)).toEqual(new Set([undefined, '', 'anne#2']));
  });

  test('after an eviction the lease of the new life takes the place of the old', async () => {
    const { world, isolate } = await leased();
    world.owner().restart();
    await warm(world, isolate, [hot()], { forMs: 1_200 });
    const { question } = world.callsTo('anne').at(-1)!.call;
    expect(question?.lease?.incarnation).toBe('anne#2');
    expect(isolate.decide([hot()])).toMatchObject({ source: 'lease' });
  });
});

test('what an isolate keeps of leases and demand is bounded', async () => {
  const world = new World();
  const isolate = world.isolate();
  const first = hot({ caller: ' first' });
  await warm(world, isolate, [first], { forMs: 100 });
  for (let caller = 0; caller < 8_192; caller += 1) {
    void isolate.send([hot({ caller: `${caller}` })]);
    if (caller % 64 === 0) await world.time.advance(3);
  }
  await world.time.advance(100);
  // It was displaced by others, so its owner is asked again, which does no harm.
  expect(isPromise(isolate.decide([first]))).toBe(true);
  await world.time.runOut();
  expect([world.problems, isolate.unfinished]).toEqual([[], 0]);
});

test('a lease that is in use is not displaced by those that are not', async () => {
  const world = new World();
  const isolate = world.isolate();
  const busy = hot({ caller: ' busy' });
  await warm(world, isolate, [busy], { forMs: 600 });
  let leased = 0;
  for (let caller = 0; caller < 9_000; caller += 1) {
    void isolate.send([hot({ caller: `${caller}` })]);
    if (caller % 90 !== 0) continue;
    if (!isPromise(isolate.decide([busy]))) leased += 1;
    await world.time.advance(5);
  }
  expect(leased).toBe(100);
}, 30_000);
