/** Requests in progress at once: who takes a slot, who lets it go, and what becomes of it when nobody does. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Winner } from '../../src/policy/counter.ts';
import {
  answerLost,
  answers,
  deliveredTwice,
  down,
  type Fate,
  fails,
  healthy,
  questionLost,
} from './network.ts';
import { DAY_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { CLOCKS, HOUR_JUMPS, type Isolate, type TimedVerdict, World } from './world.ts';

const LIFE_MS = 30 * SECOND_MS;

/** As long as the word of a freed slot waits for others, and its way. */
const FREED_MS = 300;

const slots = (quota: number, more: Partial<WinnerOptions> = {}) =>
  winner({ algorithm: 'concurrency', quota, windowMs: LIFE_MS, policy: 'slots', ...more });

const end = (...verdicts: readonly TimedVerdict[]) => {
  for (const { stay } of verdicts) stay?.end();
};

async function all(world: World, isolate: Isolate, winners: readonly Winner[], times: number) {
  const verdicts = await world.time.settle(
    Promise.all(Array.from({ length: times }, () => isolate.send(winners))),
  );
  return verdicts.filter(({ outcome }) => outcome === 'allowed');
}

describe('a slot', () => {
  const rule = slots(5);

  test('I11 is taken by as many of fifty parallel requests as there are slots', async () => {
    const world = new World();
    expect(await all(world, world.isolate(), [rule], 50)).toHaveLength(5);
    expect(world.used(rule)).toBe(5);
  });

  test('is free when its request has ended, and told so once for all that end together', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdicts = await all(world, isolate, [rule], 5);
    const callsBefore = world.calls.length;
    end(...verdicts);
    await world.time.advance(FREED_MS);
    expect(world.used(rule)).toBe(0);
    expect(world.calls.length - callsBefore).toBe(1);
    await world.time.runOut();
    expect([isolate.unfinished, world.problems]).toEqual([0, []]);
  });

  test('I03 is let go once: ending again takes nobody else’s', async () => {
    const world = new World();
    const isolate = world.isolate();
    const [first] = await all(world, isolate, [slots(1)], 1);
    end(first!);
    await world.time.advance(FREED_MS);
    const second = await isolate.ask([slots(1)]);
    end(first!, first!);
    await world.time.advance(FREED_MS);
    expect(second.outcome).toBe('allowed');
    expect(await all(world, isolate, [slots(1)], 2)).toEqual([]);
  });

  test('is there for the next request of the same isolate at once: the word of it goes with the question', async () => {
    const world = new World();
    const isolate = world.isolate();
    for (let request = 0; request < 20; request += 1) {
      const verdict = await isolate.ask([slots(1)]);
      expect(verdict.outcome).toBe('allowed');
      end(verdict);
    }
    // One word on its own in ten milliseconds, at most, beside the questions.
    expect(world.calls.length).toBeLessThanOrEqual(20 + world.time.elapsedMs / 10);
  });

  test('of a limit that is full is told at once, of one with plenty a quarter of a second later', async () => {
    const toldAfterMs = async (taken: number) => {
      const world = new World();
      const verdicts = await all(world, world.isolate(), [slots(8)], taken);
      const endedMs = world.time.elapsedMs;
      end(...verdicts);
      await world.time.runOut();
      return world.calls.at(-1)!.atMs - endedMs;
    };
    expect([await toldAfterMs(8), await toldAfterMs(1)]).toEqual([10, 250]);
  });

  test('of a limit with plenty goes with the next question, and a messenger stays at home', async () => {
    const world = new World();
    const isolate = world.isolate();
    for (let request = 0; request < 10; request += 1) {
      const verdict = await isolate.ask([slots(8)]);
      await world.time.advance(100);
      end(verdict);
      await world.time.advance(100);
    }
    expect(world.calls.length).toBe(10);
  });

  test('an urgent word does not wait for a calm one', async () => {
    const world = new World();
    const isolate = world.isolate();
    end(...(await all(world, isolate, [slots(8)], 1)));
    const full = slots(1, { policy: 'full' });
    const [verdict] = await all(world, isolate, [full], 1);
    end(verdict!);
    await world.time.advance(12);
    expect(world.used(full)).toBe(0);
  });

  test('is not taken by a peek', async () => {
    const world = new World();
    const peek = await world.isolate().ask([rule], { cost: 0 });
    expect([peek.outcome, world.used(rule)]).toEqual(['allowed', 0]);
  });

  test('is one, whatever the request costs', async () => {
    const world = new World();
    const verdict = await world.isolate().ask([rule], { cost: 400 });
    expect([verdict.outcome, world.used(rule)]).toEqual(['allowed', 1]);
    expect(verdict.policies[0]?.level).toEqual({ remaining: 4, resetMs: SECOND_MS });
  });

  test('is held by a request that takes long, however long', async () => {
    const world = new World();
    const [verdict] = await all(world, world.isolate(), [rule], 1);
    await world.time.advance(20 * LIFE_MS);
    expect(world.used(rule)).toBe(1);
    end(verdict!);
    await world.time.advance(FREED_MS);
    expect(world.used(rule)).toBe(0);
  });

  test('is renewed by one message for all of an isolate', async () => {
    const world = new World();
    await all(world, world.isolate(), [rule], 5);
    const callsBefore = world.calls.length;
    await world.time.advance(LIFE_MS);
    expect(world.calls.length - callsBefore).toBeLessThanOrEqual(3);
    expect(world.used(rule)).toBe(5);
  });

  test('I07 of an isolate that died is free at the end of its life', async () => {
    const world = new World();
    await all(world, world.isolate(), [rule], 5);
    world.network = ({ call }) => (call.holder === 'isolate-1' ? questionLost() : answers());
    const other = world.isolate();
    await world.time.advance(LIFE_MS - SECOND_MS);
    expect(await all(world, other, [rule], 1)).toHaveLength(0);
    await world.time.advance(2 * SECOND_MS);
    expect(await all(world, other, [rule], 6)).toHaveLength(5);
  });

  test('I05 of a question that was answered too late is free again', async () => {
    const world = new World();
    world.network = ({ number }) => (number === 0 ? answers({ thereMs: 1_200 }) : answers());
    const isolate = world.isolate();
    const verdict = await isolate.ask([slots(1, { failureMode: 'closed' })]);
    expect(verdict.outcome).toBe('unavailable');
    await world.time.advance(SECOND_MS);
    expect(world.used(slots(1))).toBe(0);
  });

  test('that is let go is told again until the owner has heard', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdicts = await all(world, isolate, [rule], 3);
    world.network = () => fails();
    end(...verdicts);
    await world.time.advance(SECOND_MS);
    expect(world.used(rule)).toBe(3);
    world.network = healthy;
    await world.time.runOut();
    expect([world.used(rule), world.counted('slot_release_lost')]).toEqual([0, 0]);
  });

  test('words to a silent owner cost it one call in half a second, however many wait', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdicts = await all(world, isolate, [slots(200)], 64);
    const callsBefore = world.calls.length;
    world.network = () => fails();
    for (const verdict of verdicts) {
      end(verdict);
      await world.time.advance(100);
    }
    expect(verdicts).toHaveLength(64);
    // 6.4 seconds.
    expect(world.calls.length - callsBefore).toBeLessThanOrEqual(14);
  });

  test('that could not be told of for its whole life is counted', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdicts = await all(world, isolate, [rule], 3);
    world.network = () => fails();
    end(...verdicts);
    await world.time.runOut();
    expect([world.used(rule), isolate.unfinished]).toEqual([0, 0]);
    await isolate.ask([rule], { cost: 0 });
    expect(world.counted('slot_release_lost')).toBe(3);
  });

  test('survives an eviction of its owner; what that lost is taken again by the next renewal', async () => {
    const world = new World();
    const verdicts = await all(world, world.isolate(), [rule], 5);
    // The first was written at once, the others would have been within the second.
    world.owner().restart();
    expect(world.used(rule)).toBe(1);
    await world.time.advance(LIFE_MS / 3 + FREED_MS);
    expect(world.used(rule)).toBe(5);
    await world.time.advance(2 * SECOND_MS);
    world.owner().restart();
    expect(world.used(rule)).toBe(5);
    end(...verdicts);
    await world.time.advance(FREED_MS);
    expect(world.used(rule)).toBe(0);
  });

  test('is not taken again by a word that it is held which comes after the word that it is free', async () => {
    const world = new World();
    const [verdict] = await all(world, world.isolate(), [rule], 1);
    world.network = ({ call }) =>
      call.slots?.some(({ isHeld }) => isHeld) ? answers({ thereMs: 3_000 }) : answers();
    await world.time.advance(LIFE_MS / 3 + FREED_MS);
    end(verdict!);
    await world.time.runOut();
    expect(world.calls.some(({ call }) => call.slots?.some(({ isHeld }) => isHeld))).toBe(true);
    expect(world.used(rule)).toBe(0);
  });
});

describe('beside other limits', () => {
  const rate = winner({ quota: 3, policy: 'rate', algorithm: 'fixed_window', windowMs: DAY_MS });
  const organisation = winner({ quota: 2, policy: 'organisation', owner: 'organisation', windowMs: DAY_MS });

  test('a denied request holds no slot, and one without a slot is charged nowhere', async () => {
    const world = new World();
    const isolate = world.isolate();
    expect(await all(world, isolate, [rate, slots(9)], 5)).toHaveLength(3);
    expect([world.used(rate), world.used(slots(9))]).toEqual([3, 3]);
    const other = new World();
    expect(await all(other, other.isolate(), [rate, slots(1)], 5)).toHaveLength(1);
    expect([other.used(rate), other.used(slots(1))]).toEqual([1, 1]);
  });

  test('a slot that was taken for a request which another owner denied is given back', async () => {
    const world = new World();
    expect(await all(world, world.isolate(), [slots(9), organisation], 6)).toHaveLength(2);
    await world.time.advance(FREED_MS);
    expect(world.used(slots(9))).toBe(2);
  });

  test('the units that a request was charged stay when its slot is let go', async () => {
    const world = new World();
    end(...(await all(world, world.isolate(), [rate, slots(9)], 2)));
    await world.time.advance(FREED_MS);
    expect([world.used(rate), world.used(slots(9))]).toEqual([2, 0]);
  });

  test('a shadow limit never denies, and lets its slots go too', async () => {
    const world = new World();
    const isolate = world.isolate();
    const shadow = slots(1, { shadow: true, owner: 'shadow' });
    const first = await isolate.ask([rate], { shadow: [shadow] });
    const second = await isolate.ask([rate], { shadow: [shadow] });
    await world.time.advance(FREED_MS);
    expect([first.outcome, second.outcome, world.used(shadow)]).toEqual(['allowed', 'allowed', 1]);
    expect(world.counted('shadow_denied')).toBe(1);
    end(first, second);
    await world.time.advance(FREED_MS);
    expect(world.used(shadow)).toBe(0);
  });

  test('a shadow limit that is heard of after its request has ended lets the slot go', async () => {
    const world = new World();
    const shadow = slots(1, { shadow: true, owner: 'shadow' });
    world.network = ({ owner }) => answers({ backMs: owner === 'shadow' ? 200 : 1 });
    end(await world.isolate().ask([rate], { shadow: [shadow] }));
    await world.time.runOut();
    expect([world.callsTo('shadow').length, world.used(shadow)]).toEqual([2, 0]);
  });

  test('requests that a rate denies cost no slot of the memory of denials: the next is asked about', async () => {
    const world = new World();
    const isolate = world.isolate();
    const [held] = await all(world, isolate, [slots(1)], 1);
    expect((await isolate.ask([slots(1)])).retryAfterMs).toBe(SECOND_MS);
    const calls = world.calls.length;
    expect((await isolate.ask([slots(1)])).source).toBe('deny_memory');
    expect(world.calls.length).toBe(calls);
    // Another isolate lets go; a moment later this one asks again.
    await world.time.advance(60);
    world.owner().handle({
      ...world.calls[0]!.call,
      question: undefined as never,
      slots: [
        {
          id: world.calls[0]!.call.question!.id,
          isHeld: false,
          counters: world.calls[0]!.call.question!.counters,
        },
      ],
    });
    expect((await isolate.ask([slots(1)])).outcome).toBe('allowed');
    end(held!);
  });
});

describe('when the owner is away', () => {
  test('open: the isolate admits as many as its share, counting those in progress', async () => {
    const world = new World();
    const isolate = world.isolate();
    const rule = slots(10);
    const before = await all(world, isolate, [rule], 4);
    world.network = down;
    expect(await all(world, isolate, [rule], 20)).toHaveLength(6);
    end(...before);
    expect(await all(world, isolate, [rule], 20)).toHaveLength(4);
  });

  test('open: an isolate that was never told has its blind share, and one at least', async () => {
    const world = new World({ network: down });
    expect(await all(world, world.isolate(), [slots(100, { blindShare: 0.1 })], 20)).toHaveLength(10);
    expect(await all(world, world.isolate(), [slots(2)], 20)).toHaveLength(1);
  });

  test('open: what was admitted meanwhile is told to the owner when it is back, and let go like the rest', async () => {
    const world = new World();
    const isolate = world.isolate();
    const rule = slots(4);
    const before = await all(world, isolate, [rule], 1);
    world.network = down;
    const meanwhile = await all(world, isolate, [rule], 10);
    expect(meanwhile).toHaveLength(3);
    world.network = healthy;
    await world.time.advance(LIFE_MS);
    expect(world.used(rule)).toBe(4);
    end(...before, ...meanwhile);
    await world.time.runOut();
    expect([world.used(rule), isolate.unfinished]).toEqual([0, 0]);
  });

  test('open: a slot that stands in for a question stays when that is charged late, by an owner that has forgotten, and taken back', async () => {
    const world = new World();
    world.network = ({ number }) => (number === 0 ? answers({ thereMs: 3_000 }) : answers());
    const isolate = world.isolate();
    const rule = slots(5);
    const substituted = await isolate.ask([rule]);
    const answered = await isolate.ask([rule]);
    expect([substituted.source, answered.source, world.used(rule)]).toEqual(['fallback', 'owner', 2]);
    world.owner().restart();
    await world.time.advance(2_100);
    expect([world.counted('give_back'), world.used(rule)]).toEqual([1, 2]);
    end(substituted, answered);
    await world.time.advance(FREED_MS);
    expect(world.used(rule)).toBe(0);
  });

  test('closed: none is admitted', async () => {
    const world = new World({ network: down });
    const verdict = await world.isolate().ask([slots(4, { failureMode: 'closed' })]);
    expect(verdict.outcome).toBe('unavailable');
  });

  test('all or nothing: a full rate holds no slot, and a full concurrency limit takes no unit', async () => {
    const world = new World({ network: down });
    const isolate = world.isolate();
    const rate = winner({ quota: 100, policy: 'rate', blindShare: 0.02 });
    expect(await all(world, isolate, [rate, slots(100)], 9)).toHaveLength(2);
    expect(await all(world, isolate, [slots(100)], 9)).toHaveLength(3);
  });
});

describe.each(CLOCKS)('when the clock of %s jumps an hour', (_, step) => {
  const rule = slots(5);

  test.each(HOUR_JUMPS)(
    '%s: requests in progress have their slots from the next renewal on, and let them go',
    async (_, jumps) => {
      const world = new World();
      const isolate = world.isolate();
      const verdicts = await all(world, isolate, [rule], 5);
      for (const ms of jumps) {
        step(world, ms);
        // A step back is no time at all; what a step forth has ended is taken again.
        if (ms < 0) expect(world.used(rule)).toBe(5);
        for (let third = 0; third < 7; third += 1) {
          await world.time.advance(LIFE_MS / 3 + FREED_MS);
          expect(world.used(rule)).toBe(5);
        }
      }
      expect(await all(world, world.isolate(), [rule], 1)).toEqual([]);
      end(...verdicts);
      await world.time.advance(FREED_MS);
      expect(world.used(rule)).toBe(0);
      expect(await all(world, isolate, [rule], 6)).toHaveLength(5);
    },
  );

  test.each(HOUR_JUMPS)(
    '%s: what nobody renews or lets go is free at the end of its life',
    async (_, jumps) => {
      const world = new World();
      const died = await all(world, world.isolate(), [rule], 3);
      world.network = ({ call }) => (call.holder === 'isolate-1' ? questionLost() : answers());
      end(died[0]!);
      const other = world.isolate();
      for (const ms of jumps) {
        step(world, ms);
        // A life is as long as the owner sees its clock go on, so somebody asks.
        await other.ask([rule], { cost: 0 });
      }
      await world.time.advance(LIFE_MS);
      expect(await all(world, other, [rule], 6)).toHaveLength(5);
    },
  );
});

const delayMs = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 100, max: 2_500 }));

const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ thereMs: delayMs, backMs: delayMs }).map(answers) },
  { weight: 1, arbitrary: fc.constant(questionLost()) },
  { weight: 1, arbitrary: delayMs.map(answerLost) },
  {
    weight: 1,
    arbitrary: fc.record({ thereMs: delayMs, againMs: delayMs, backMs: delayMs }).map(deliveredTwice),
  },
  {
    weight: 1,
    arbitrary: fc
      .record({ afterMs: delayMs, isDone: fc.boolean(), retryable: fc.boolean(), overloaded: fc.boolean() })
      .map(fails),
  },
);

const request = fc.record({
  isolate: fc.nat({ max: 1 }),
  rules: fc.subarray([0, 1, 2], { minLength: 1 }),
  waitMs: fc.integer({ min: 0, max: 400 }),
  lastsMs: fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.constant(90_000)),
  endings: fc.integer({ min: 1, max: 2 }),
});

const RULES = [
  slots(3, { policy: 'own slots' }),
  slots(5, { policy: 'shared slots', owner: 'organisation' }),
  winner({ quota: 20, policy: 'rate', windowMs: DAY_MS }),
];

test('property: after any mix of endings, outages and evictions, the slots taken are those of requests in progress', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { minLength: 1, maxLength: 20 }),
      fc.array(request, { minLength: 1, maxLength: 25 }),
      fc.array(fc.nat({ max: 24 }), { maxLength: 3 }),
      async (fates, requests, evictions) => {
        const world = new World();
        world.network = () => fates[world.calls.length % fates.length]!;
        const isolates = [world.isolate(), world.isolate()];
        const live = RULES.map(() => 0);
        for (const [at, { isolate, rules, waitMs, lastsMs, endings }] of requests.entries()) {
          await world.time.advance(waitMs);
          if (evictions.includes(at)) world.owner().restart();
          void isolates[isolate]!.send(rules.map((rule) => RULES[rule]!)).then(({ outcome, stay }) => {
            if (outcome !== 'allowed') return;
            for (const rule of rules) live[rule]! += 1;
            world.time.after(lastsMs, () => {
              for (const rule of rules) live[rule]! -= 1;
              for (let ending = 0; ending < endings; ending += 1) stay?.end();
            });
          });
        }
        await world.time.advance(5 * SECOND_MS);
        world.network = healthy;
        // Longer than a breaker takes to close, and than a slot lasts that nobody knows of; shorter than the longest requests.
        await world.time.advance(LIFE_MS + 15 * SECOND_MS);
        expect([world.used(RULES[0]!), world.used(RULES[1]!)]).toEqual(live.slice(0, 2));
        await world.time.runOut();
        expect([world.used(RULES[0]!), world.used(RULES[1]!)]).toEqual([0, 0]);
        expect(world.problems).toEqual([]);
      },
    ),
    { numRuns: 150 },
  );
}, 60_000);
