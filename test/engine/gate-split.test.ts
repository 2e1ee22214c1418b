/** A gate whose owner has been split, or is too busy to say so. */
import { describe, expect, test } from 'vitest';
import { wholeOf } from '../../src/engine/slices.ts';
import type { Verdict } from '../../src/engine/verdict.ts';
import { counterId, rulePrefix, type Winner } from '../../src/policy/counter.ts';
import { answers, fails, healthy, type Sent } from './network.ts';
import { SECOND_MS, winner } from './rules.ts';
import { askALot, callsIn, hot, huge, rule, splitWorld, words } from './split-world.ts';
import { callOf, type Isolate, START_MS, World } from './world.ts';

const onlyTo = (isolate: Isolate, fate: ReturnType<typeof answers>) => (sent: Sent) =>
  sent.call.holder === isolate.holder && sent.owner === 'own/hot' ? fate : healthy(sent);

describe('an isolate that comes later', () => {
  test('is sent on by the owner, which charges nothing, and is decided by its slice', async () => {
    const { world, callsOf } = await splitWorld();
    const newcomer = world.isolate();
    expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner', tookMs: 4 });
    expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner', tookMs: 2 });
    expect(words(callsOf(newcomer))).toEqual(['owner', 'slice', 'slice']);
  });

  test('knocks first where one object is never enough, and asks the owner nothing', async () => {
    const { world, callsOf } = await splitWorld(huge);
    const newcomer = world.isolate();
    expect(await newcomer.ask([huge])).toMatchObject({ outcome: 'allowed', source: 'owner', tookMs: 4 });
    expect(words(callsOf(newcomer))).toEqual(['knock', 'slice']);
  });

  test('knocks in vain at the slice of an owner that is not split, once, and asks the owner', async () => {
    const world = new World();
    const isolate = world.isolate();
    for (let asked = 0; asked < 3; asked += 1)
      expect(await isolate.ask([huge])).toMatchObject({ outcome: 'allowed' });
    expect(words(callsIn(world)(isolate)).filter((word) => word === 'knock')).toHaveLength(1);
    expect(words(callsIn(world)(isolate)).at(-1)).toBe('owner');
  });

  test('waits for a knock no longer than a round trip takes', async () => {
    const world = new World({
      network: (sent) => (sent.call.knock ? answers({ thereMs: 5_000 }) : healthy(sent)),
    });
    expect(await world.isolate().ask([huge])).toMatchObject({ outcome: 'allowed', tookMs: 62 });
  });
});

describe('an owner that is late', () => {
  test('is not waited for once its slice has begun, and what it says then charges nothing', async () => {
    const { world, callsOf } = await splitWorld();
    const newcomer = world.isolate();
    world.network = onlyTo(newcomer, answers({ thereMs: 700 }));
    expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner', tookMs: 64 });
    expect(words(callsOf(newcomer))).toEqual(['owner', 'knock', 'slice']);
    const usedBefore = world.used(rule);
    await world.time.advance(2 * SECOND_MS);
    expect(world.used(rule)).toBeLessThanOrEqual(usedBefore);
    expect(callsOf(newcomer).some(({ call }) => (call.giveBacks?.length ?? 0) > 0)).toBe(false);
    expect(world.problems).toEqual([]);
  });

  test('that charged before it was split has that taken back', async () => {
    const world = new World();
    const early = world.isolate();
    world.network = onlyTo(early, answers({ thereMs: 1, backMs: 900 }));
    const verdict = early.send([rule]);
    await askALot(world, rule, 3);
    expect(await world.time.settle(verdict)).toMatchObject({ outcome: 'allowed', source: 'owner' });
    world.network = healthy;
    await world.time.advance(SECOND_MS);
    const [question] = callsIn(world)(early);
    const taking = callsIn(world)(early).filter(({ call }) => (call.giveBacks?.length ?? 0) > 0);
    expect(taking.map(({ owner, call }) => [owner, call.giveBacks])).toEqual([
      ['own/hot', [question!.call.question!.id]],
    ]);
  });

  test('is waited for on while its slice has not begun, and knocked for now and then, once for all who wait', async () => {
    const world = new World({
      network: (sent) => (sent.call.knock ? healthy(sent) : answers({ thereMs: 400 })),
    });
    const isolate = world.isolate();
    const verdicts = Array.from({ length: 10 }, () => isolate.send([rule]));
    const decided = await world.time.settle(Promise.all(verdicts));
    for (const { outcome, source } of decided) {
      expect(outcome).toBe('allowed');
      expect(source).not.toBe('fallback');
    }
    const knocks = callsIn(world)(isolate).filter(({ call }) => call.knock !== undefined);
    expect(knocks.length).toBeGreaterThan(3);
    expect(knocks.length).toBeLessThan(16);
    for (const [at, { atMs }] of knocks.entries())
      if (at > 0) expect(atMs - knocks[at - 1]!.atMs).toBeGreaterThanOrEqual(60);
  });

  test('and usually is, is waited for twice as long as usual', async () => {
    const world = new World({ network: () => answers({ thereMs: 100, backMs: 1 }) });
    const isolate = world.isolate();
    await isolate.ask([rule]);
    const knocksOf = () => callsIn(world)(isolate).filter(({ call }) => call.knock !== undefined).length;
    const before = knocksOf();
    await isolate.ask([rule]);
    expect(knocksOf()).toBe(before);
  });

  const never: readonly [string, Winner][] = [
    ['a limit that denies most of what could split its owner', hot({ quota: 600 })],
    ['a strict rule', hot({ consistency: 'strict' })],
    ['a window', hot({ algorithm: 'fixed_window' })],
    ['an owner of many callers', { ...hot(), owner: { name: 'shared/7', shared: true } }],
    ['a slice', hot({ owner: 'slice/3/11/own/hot' })],
    ['the owner of a region', hot({ owner: 'region/weur/own/hot' })],
  ];
  test.each(never)('of %s is never knocked for', async (_, asked) => {
    const world = new World({ network: () => answers({ thereMs: 500 }) });
    const isolate = world.isolate();
    await isolate.ask([asked]);
    await isolate.ask([asked]);
    expect(world.calls.some(({ call }) => call.knock !== undefined)).toBe(false);
  });
});

test('an owner too busy to be asked is decided without, and its slice asked next, which has begun', async () => {
  const { world, callsOf } = await splitWorld();
  const newcomer = world.isolate();
  world.network = onlyTo(newcomer, fails({ overloaded: true }));
  expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'fallback' });
  await world.time.advance(10);
  expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner' });
  expect(words(callsOf(newcomer))).toEqual(['owner', 'knock', 'slice']);
});

test('what is counted beside a strict rule, which has no slices, the owner decides; its denial is the last word and is remembered', async () => {
  const { world } = await splitWorld();
  const strict = winner({ quota: 1, owner: 'own/hot', consistency: 'strict', policy: 'strict' });
  const newcomer = world.isolate();
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'allowed' });
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'denied' });
  const { length } = world.callsTo('own/hot');
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'denied', source: 'deny_memory' });
  expect(world.callsTo('own/hot')).toHaveLength(length);
});

test.each([0, 5])(
  'a split owner keeps for that what it is asked, while others ask slices %i times a second each',
  async (times) => {
    const { world } = await splitWorld(rule, { tellsRoots: true });
    const strict = winner({ quota: 10_000, owner: 'own/hot', consistency: 'strict', policy: 'strict' });
    const others = Array.from({ length: 200 }, () => world.isolate());
    const beside = Array.from({ length: 10 }, () => world.isolate());
    let denied: number[] = [];
    const note = ({ outcome }: Verdict) => denied.push(outcome === 'allowed' ? 0 : 1);
    // A quarter of the limit beside the strict rule, and up to a third by itself.
    for (let tick = 0; tick < 200; tick += 1) {
      if (tick === 100) denied = [];
      for (const isolate of beside) for (const _ of [1, 2]) void isolate.send([rule, strict]).then(note);
      for (const isolate of others.slice((tick % 8) * 25, (tick % 8) * 25 + 5 * times))
        void isolate.send([rule]);
      await world.time.advance(25);
    }
    expect(denied).toHaveLength(2_000);
    expect(denied.reduce((sum, each) => sum + each, 0)).toBe(0);
  },
);

test('a flood that a strict rule denies keeps nothing from the slices', async () => {
  const tight = hot({ burst: 800 });
  const strict = winner({
    quota: 5,
    windowMs: SECOND_MS,
    owner: 'own/hot',
    consistency: 'strict',
    policy: 'dear',
  });
  /** Four fifths of the limit, and after four seconds half as much again that is denied. */
  async function deniedOf(isFlooded: boolean): Promise<number> {
    const { world } = await splitWorld(tight, { tellsRoots: true });
    const isolates = Array.from({ length: 200 }, () => world.isolate());
    let denied = 0;
    const note = ({ outcome }: Verdict) => {
      denied += outcome === 'allowed' ? 0 : 1;
    };
    for (let tick = 0; tick < 600; tick += 1) {
      if (tick === 200) denied = 0;
      for (const [at, isolate] of isolates.entries()) {
        const isDear = isFlooded && tick >= 400 && (tick + at) % 20 === 0;
        if (isDear) void isolate.send([tight, strict], { cost: 5, largestCost: 5 });
        if ((tick * 29 + at * 7) % 200 < 26) void isolate.send([tight]).then(note);
      }
      await world.time.advance(10);
    }
    return denied;
  }
  expect(await deniedOf(true)).toBeLessThanOrEqual((await deniedOf(false)) + 5);
});

test('an owner that is slow with its first answer has one question in its queue; a moment before there may be more', async () => {
  const slow = { thereMs: 300, backMs: 1 };
  const world = new World({ network: () => answers(slow) });
  const isolate = world.isolate();
  for (const afterMs of [0, 30, 30, 61, 100]) {
    await world.time.advance(afterMs);
    void isolate.send([winner({ quota: 100 })]);
  }
  expect(world.calls.map(({ atMs }) => atMs)).toEqual([0, 30, 60]);
  await world.time.advance(SECOND_MS);
  expect(world.calls).toHaveLength(5);
});

test('whoever has waited in vain for a lease behind others is not denied for want of one, where none was ever lent', async () => {
  const world = new World({ network: () => answers({ thereMs: 600 }) });
  const isolate = world.isolate();
  const asked = winner({ quota: 2_000, windowMs: SECOND_MS, consistency: 'auto' });
  const verdicts = Array.from({ length: 10 }, () => isolate.send([asked]));
  const decided = await world.time.settle(Promise.all(verdicts));
  expect(decided.map(({ outcome }) => outcome)).toEqual(Array.from({ length: 10 }, () => 'allowed'));
});

test('what an operator has decided at a split owner no slice is asked about', async () => {
  const pairs: Winner['pairs'] = [['user', 'hot']];
  const clamped = { ...rule, counterId: counterId(rulePrefix('d', rule.rule), pairs), pairs };
  const { world, callsOf } = await splitWorld(clamped);
  const untilMs = START_MS + 3_600 * SECOND_MS;
  world
    .owner('own/hot')
    .handle(callOf({ clamps: [{ domain: 'd', pairs, action: 'deny', untilMs, revision: 5 }] }));
  const newcomer = world.isolate();
  expect(await newcomer.ask([clamped])).toMatchObject({ outcome: 'denied' });
  expect(words(callsOf(newcomer))).toEqual(['owner']);
});

test('what a slice charged for a request that another owner denies goes back to the slice', async () => {
  const { world, callsOf } = await splitWorld();
  const none = winner({ quota: 1, owner: 'own/other', policy: 'other' });
  await world.isolate().ask([none]);
  const newcomer = world.isolate();
  world.network = onlyTo(newcomer, answers({ thereMs: 20, backMs: 20 }));
  expect(await newcomer.ask([rule, none])).toMatchObject({ outcome: 'denied' });
  await world.time.advance(SECOND_MS);
  const asked = callsOf(newcomer).find(({ owner, call }) => wholeOf(owner) && call.question !== undefined)!;
  const taking = callsOf(newcomer).filter(({ call }) => (call.giveBacks?.length ?? 0) > 0);
  expect(taking.map(({ owner, call }) => [owner, call.giveBacks])).toEqual([
    [asked.owner, [asked.call.question!.id]],
  ]);
});

test('a slice that is found late has as long for its first answer as any owner', async () => {
  const { world } = await splitWorld();
  const newcomer = world.isolate();
  let knocks = 0;
  world.network = (sent) => {
    if (sent.call.holder !== newcomer.holder) return healthy(sent);
    if (sent.call.knock !== undefined && ++knocks < 3) return fails();
    return sent.owner === 'own/hot' ? answers({ thereMs: 800 }) : healthy(sent);
  };
  const { outcome, source, tookMs } = await newcomer.ask([rule]);
  expect([outcome, source]).toEqual(['allowed', 'owner']);
  expect(tookMs).toBeGreaterThan(150);
  expect(tookMs).toBeLessThan(400);
});

test.each([
  ['fails', fails()],
  ['hangs', { arrivesAfterMs: [], heard: 'nothing' } as const],
])(
  'in an outage that %s next to nothing is asked of anybody, and nobody waits after the first moments',
  async (_, fate) => {
    const world = new World({ network: () => fate });
    const isolate = world.isolate();
    const waits: number[] = [];
    for (let sent = 0; sent < 500; sent += 1) {
      void isolate.send([rule]).then(({ tookMs }) => waits.push(tookMs));
      await world.time.advance(20);
    }
    await world.time.advance(2 * SECOND_MS);
    expect(world.calls.length).toBeLessThan(60);
    expect(Math.max(...waits.slice(-300))).toBe(0);
  },
);

test('where all owners are silent a knock is the probe that is due: it does not take its place and stay away', async () => {
  const world = new World({ network: () => fails() });
  const isolate = world.isolate();
  for (let owner = 0; owner < 25; owner += 1)
    await isolate.ask([winner({ quota: 10, owner: `own/${owner}` })]);
  await world.time.advance(2_100);
  await isolate.ask([winner({ quota: 10, owner: 'own/last' })]);
  expect(world.logs.map(({ event }) => event)).toContain('all_owners_unreachable');
  world.network = healthy;
  await world.time.advance(501);
  const { length } = world.calls;
  await isolate.ask([huge]);
  expect(words(world.calls.slice(length, length + 1))).toEqual(['knock']);
  expect(world.logs.map(({ event }) => event)).toContain('owners_reachable');
});
