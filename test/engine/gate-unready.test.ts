/** A gate whose slices have nothing just now. */
import { describe, expect, test } from 'vitest';
import { wholeOf } from '../../src/engine/slices.ts';
import { answers, fails, healthy, type Sent } from './network.ts';
import { SECOND_MS, winner } from './rules.ts';
import { callsIn, huge, rule, splitWorld, words } from './split-world.ts';
import { World } from './world.ts';

describe('slices that nobody has asked for a while have given back what they had, so a caller that comes back', () => {
  async function afterPause(pauseMs = 4 * SECOND_MS) {
    const { world, callsOf } = await splitWorld(rule, { tellsRoots: true });
    const caller = world.isolate();
    await caller.ask([rule]);
    await world.time.advance(pauseMs);
    const before = callsOf(caller).length;
    return { world, caller, calls: () => callsOf(caller).slice(before) };
  }
  const idsOf = (calls: readonly Sent[]) => calls.flatMap(({ call }) => call.question?.id ?? []);

  test.each([4, 15, 50])('after %i s waits until its slice has heard from the owner', async (seconds) => {
    const { caller, calls } = await afterPause(seconds * SECOND_MS);
    expect(await caller.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner', tookMs: 24 });
    expect(words(calls())).toEqual(['slice', 'slice']);
    expect(new Set(idsOf(calls())).size).toBe(2);
  });

  test('asks again while there is time for an answer, and no longer', async () => {
    const { world, caller, calls } = await afterPause();
    world.network = (sent) => (sent.call.middle ? fails() : healthy(sent));
    const { outcome, tookMs } = await caller.ask([rule]);
    expect(outcome).toBe('denied');
    expect(tookMs).toBeGreaterThan(120);
    expect(tookMs).toBeLessThanOrEqual(150);
    expect(words(calls()).every((word) => word === 'slice')).toBe(true);
  });

  test('has that question taken back which charged too late, and no other', async () => {
    const { world, caller, calls } = await afterPause();
    let questions = 0;
    world.network = (sent) => {
      if (sent.call.holder !== caller.holder || sent.call.question === undefined) return healthy(sent);
      questions += 1;
      return questions === 2 ? answers({ backMs: 900 }) : healthy(sent);
    };
    expect(await caller.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'fallback' });
    const [, second] = idsOf(calls());
    await world.time.advance(2 * SECOND_MS);
    expect(calls().flatMap(({ call }) => call.giveBacks ?? [])).toContain(second);
    expect(new Set(calls().flatMap(({ call }) => call.giveBacks ?? []))).toEqual(new Set([second]));
  });

  test('after a minute knocks before it asks, as one that has never asked', async () => {
    const world = new World();
    const caller = world.isolate();
    await caller.ask([huge]);
    await world.time.advance(59 * SECOND_MS);
    await caller.ask([huge]);
    await world.time.advance(60 * SECOND_MS);
    const before = callsIn(world)(caller).length;
    await caller.ask([huge]);
    expect(words(callsIn(world)(caller))).toEqual(['knock', 'owner', 'owner', 'knock', 'owner']);
    expect(before).toBe(3);
  });
});

test.each([
  ['slow', 300],
  ['silent', Number.POSITIVE_INFINITY],
])(
  'while the owner of a slice is %s, one request of each isolate asks, and none is decided without its slice',
  async (_, rootMs) => {
    const { world } = await splitWorld(rule, { tellsRoots: true });
    const isolates = Array.from({ length: 50 }, () => world.isolate());
    for (const isolate of isolates) await isolate.ask([rule]);
    await world.time.advance(6 * SECOND_MS);
    world.network = ({ call }) => {
      if (call.middle === undefined) return answers({ thereMs: 3, backMs: 3 });
      return rootMs === Number.POSITIVE_INFINITY
        ? fails()
        : answers({ thereMs: rootMs / 2, backMs: rootMs / 2 });
    };
    const before = world.calls.length;
    for (let ms = 0; ms < 500; ms += 10) {
      for (const isolate of isolates) void isolate.send([rule]);
      await world.time.advance(10);
    }
    await world.time.advance(SECOND_MS);
    expect(world.counted('fallback_decision')).toBe(0);
    const asked = world.calls.slice(before).filter(({ owner, call }) => wholeOf(owner) && call.question);
    // In half a second each asks at most every 26 ms, and again after a denial that counts.
    expect(asked.length).toBeLessThan(50 * 30);
  },
);

test('a slot that is taken with the second question is let go under the name of that', async () => {
  const { world } = await splitWorld(rule, { tellsRoots: true });
  const slots = winner({
    quota: 10,
    windowMs: 30_000,
    algorithm: 'concurrency',
    owner: 'own/hot',
    policy: 'slots',
    shadow: true,
  });
  const caller = world.isolate();
  await caller.ask([rule]);
  await world.time.advance(4 * SECOND_MS);
  const { stay } = await caller.ask([rule], { shadow: [slots] });
  const slice = callsIn(world)(caller).at(-1)!.owner;
  const inUse = () => world.owner(slice).used(slots.counterId);
  expect(inUse()).toBe(1);
  await world.time.advance(20 * SECOND_MS);
  expect(inUse()).toBe(1);
  stay!.end();
  await world.time.advance(2 * SECOND_MS);
  expect(inUse()).toBe(0);
});
