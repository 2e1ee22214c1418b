import { describe, expect, test } from 'vitest';
import { boundOf, type Envelope } from '../../src/engine/bound.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { answers, down, fails } from './network.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { type Isolate, type TimedVerdict, World } from './world.ts';

const ONE = { isolates: 1, blindIsolates: 0, largestCost: 1 };

function bound(options: WinnerOptions, topology = {}) {
  return boundOf(winner(options).rule, { ...ONE, ...topology })!;
}

describe('in numbers', () => {
  test('healthy: the limit and nothing above it', () => {
    const { limit, steady } = bound({ quota: 6_000, burst: 50 });
    expect(limit).toEqual({ burstUnits: 50, unitsPerSecond: 100 });
    expect(steady).toEqual(limit);
    expect(bound({ quota: 60, algorithm: 'fixed_window' }).steady).toEqual({
      burstUnits: 120,
      unitsPerSecond: 1,
    });
  });

  test.each([
    { name: 'one isolate has the whole share', topology: {}, burstUnits: 50, rateFactor: 1.2 },
    {
      name: 'each further one has room for a largest cost',
      topology: { isolates: 10, largestCost: 5 },
      burstUnits: 95,
      rateFactor: 1.2,
    },
    {
      name: 'a blind one adds its blind share',
      topology: { blindIsolates: 4 },
      burstUnits: 60,
      rateFactor: 1.44,
    },
    {
      name: 'or a largest cost, where that is more',
      topology: { blindIsolates: 4, largestCost: 10 },
      burstUnits: 90,
      rateFactor: 1.44,
    },
    {
      name: 'but no cost counts beyond the burst',
      topology: { blindIsolates: 1, largestCost: 900 },
      burstUnits: 100,
      rateFactor: 1.26,
    },
  ])('owner silent: $name', ({ topology, burstUnits, rateFactor }) => {
    const { fallback } = bound({ quota: 6_000, burst: 50 }, topology);
    expect(fallback.burstUnits).toBeCloseTo(burstUnits, 9);
    expect(fallback.rateFactor).toBeCloseTo(rateFactor, 9);
    expect(fallback.unitsPerSecond).toBeCloseTo(100 * rateFactor, 9);
  });

  test('owner silent, closed: nothing', () => {
    expect(bound({ quota: 60, failureMode: 'closed' }, { isolates: 9 }).fallback).toEqual({
      burstUnits: 0,
      unitsPerSecond: 0,
      rateFactor: 0,
    });
  });

  test('local: every isolate has the limit to itself', () => {
    const { steady, crashUnits } = bound({ quota: 60, scope: 'local' }, { isolates: 7 });
    expect(steady).toMatchObject({ burstUnits: 420, unitsPerSecond: 7 });
    expect(crashUnits).toBe(0);
  });

  test.each([
    {
      name: 'a bucket loses five seconds of refill and a second of charges',
      options: { quota: 6_000_000, burst: 100_000 },
      units: 100_000,
    },
    {
      name: 'the charges are bounded by what an owner can take',
      options: { quota: 600_000, windowMs: HOUR_MS, burst: 500_000 },
      units: 1_000 + 833.333,
    },
    { name: 'nothing loses more than it holds', options: { quota: 30, burst: 10 }, units: 10 },
    {
      name: 'a log loses a second of charges',
      options: { quota: 10_000, windowMs: HOUR_MS, algorithm: 'sliding_log' as const },
      units: 1_000,
    },
    {
      name: 'a window may end unwritten',
      options: { quota: 10_000, windowMs: HOUR_MS, algorithm: 'fixed_window' as const },
      units: 10_000,
    },
  ])('crash: $name', ({ options, units }) => {
    expect(bound(options).crashUnits).toBeCloseTo(units, 2);
  });

  test('an unlimited rule has no bound', () => {
    const { limit: _, ...rule } = winner({ quota: 1 }).rule;
    expect(boundOf({ ...rule, unlimited: true }, ONE)).toBeUndefined();
  });
});

const EACH =
  'decides every request, about 1000 a second (500 with room to spare); above that as with a silent owner';

test('in sentences', () => {
  const topology = { isolates: 4, blindIsolates: 2, largestCost: 5 };
  expect(bound({ quota: 100 }, topology).sentences).toEqual([
    'healthy: at most 100 units at once and 1.67 a second after that, nothing above the limit',
    'owner silent, with 4 isolates that it told their shares and 2 isolates that it never told: at most 125 units at once and 2.2 a second after that, 1.32 times the rate',
    'owner answering now and then: at most 225 units at once and 3.87 a second after that, 2.32 times the rate',
    'owner crashes: 100 units may be admitted again (1 s of charges and 5 s of refill)',
    `strict: one object ${EACH}`,
  ]);
  expect(bound({ quota: 1, failureMode: 'closed' }).sentences).toEqual([
    'healthy: at most 1 unit at once and 0.0167 a second after that, nothing above the limit',
    'owner silent: nothing is admitted (closed)',
    'owner crashes: 1 unit may be admitted again (1 s of charges and 5 s of refill)',
    `strict: one object ${EACH}`,
  ]);
  expect(bound({ quota: 60, scope: 'local' }, topology).sentences).toEqual([
    'each isolate counts by itself: 4 isolates admit at most 240 units at once and 4 a second after that, 4 times the limit',
  ]);
});

describe('what objects can carry, in a sentence', () => {
  const hot = { quota: 10_000, windowMs: SECOND_MS, consistency: 'auto' } as const;
  const split = (slices: number) =>
    'leased when hot: one object lends to isolates; where more than 128 of them ask it more than 700 times a second, ' +
    `the key is split over ${slices} slices`;
  const whole = 'leased when hot: one object lends to isolates, to about 500 of them';

  test.each<[string, WinnerOptions, string | undefined]>([
    ['a strict rule, whatever it allows', { ...hot, consistency: 'strict' }, `strict: one object ${EACH}`],
    [
      'an algorithm that never leases',
      { ...hot, algorithm: 'sliding_log' },
      `sliding_log is never leased: one object ${EACH}`,
    ],
    ['a burst of less than 100 ms', { ...hot, burst: 999 }, `too small a burst to lease: one object ${EACH}`],
    ['a burst of 100 ms', { ...hot, burst: 1_000 }, split(32)],
    ['auto, below 34 a second', { ...hot, quota: 33 }, `too low a limit to lease: one object ${EACH}`],
    ['auto, from there on', { ...hot, quota: 34 }, split(2)],
    ['leased, however low', { ...hot, quota: 3, consistency: 'leased' }, split(2)],
    ['a slice for every 300 a second', { ...hot, quota: 1_000 }, split(4)],
    ['a window leases, and does not split', { ...hot, algorithm: 'fixed_window' }, whole],
    [
      'regions borrow, and do not split',
      { ...hot, scope: 'regional' },
      whole.replace('object', 'object in each region'),
    ],
    [
      'strict in each region',
      { ...hot, consistency: 'strict', scope: 'regional' },
      `strict: one object in each region ${EACH}`,
    ],
    ['local: no object', { ...hot, scope: 'local' }, undefined],
  ])('%s', (_, options, sentence) => {
    const last = bound(options).sentences.at(-1);
    if (sentence === undefined) expect(last).not.toMatch(/object/);
    else expect(last).toBe(sentence);
  });

  test('a request of more than half the bucket keeps it from leases', () => {
    const { sentences } = bound(hot, { largestCost: 5_001 });
    expect(sentences.at(-1)).toBe(`too dear a request to lease: one object ${EACH}`);
    expect(bound(hot, { largestCost: 5_000 }).sentences.at(-1)).toBe(split(32));
  });

  test('an owner of many callers does not split', () => {
    expect(bound(hot, { isShared: true }).sentences.at(-1)).toBe(whole);
  });
});

describe('in regions', () => {
  const options = { quota: 1_000, windowMs: SECOND_MS, scope: 'regional' } as const;

  test('that share a limit: a cold start, a partition and crashes, told of as many as there are', () => {
    const { regional, sentences } = bound(options, { regions: 3 });
    expect(regional).toMatchObject({ regions: 3, coldStartUnits: 3_000 });
    expect(sentences.slice(4, 7)).toEqual([
      '3 regions at a cold start: 3000 units above the limit, which are paid back',
      'regions cut off: at most 5002 units at once and 2700 a second after that, 2.7 times the rate, all sides together',
      "a region's owner crashes: 1000 units may be admitted again; the root: 6000 units",
    ]);
  });

  test('that have a part each: nothing is shared, so there is nothing to lose', () => {
    const { rule } = winner(options);
    const split = { ...rule, regional: { startCredit: 0.25, weights: { weur: 0.5 } } };
    const { regional, sentences } = boundOf(split, { ...ONE, regions: 3 })!;
    expect(regional).toBeUndefined();
    expect(sentences).toContain(
      'each region has its own part, and nothing is shared: these are the numbers of one part',
    );
    expect(sentences.join()).not.toMatch(/cold start|cut off/);
  });
});

describe('measured: never above it, and in the worst case not far below', () => {
  const rule = winner({ quota: 6_000, burst: 100 });

  function unitsIn({ burstUnits, unitsPerSecond }: Envelope, ms: number) {
    return burstUnits + (unitsPerSecond * ms) / SECOND_MS;
  }

  /** Everybody sends every 4 ms, more than a whole limit would admit; answers the units admitted. */
  async function flood(
    world: World,
    isolates: readonly Isolate[],
    winners: readonly Winner[],
    forMs: number,
    cost = 1,
  ) {
    const sent: Promise<TimedVerdict>[] = [];
    for (let atMs = 0; atMs < forMs; atMs += 4) {
      for (const isolate of isolates) sent.push(isolate.send(winners, { cost, largestCost: cost }));
      await world.time.advance(4);
    }
    const verdicts = await world.time.settle(Promise.all(sent));
    return cost * verdicts.filter(({ outcome }) => outcome === 'allowed').length;
  }

  /** So light a demand that the owner is all but full when it falls silent, and every isolate has an equal share. */
  async function told(world: World, count: number): Promise<readonly Isolate[]> {
    const isolates = Array.from({ length: count }, () => world.isolate());
    for (let time = 0; time < 100; time += 1) {
      for (const isolate of isolates) await isolate.ask([rule]);
      await world.time.advance(100);
    }
    return isolates;
  }

  test.each([
    { isolates: 1, blindIsolates: 0, largestCost: 1 },
    { isolates: 4, blindIsolates: 3, largestCost: 1 },
    { isolates: 5, blindIsolates: 10, largestCost: 5 },
  ])('owner silent, $isolates told, $blindIsolates blind, costs of $largestCost', async (topology) => {
    const world = new World();
    const isolates = [...(await told(world, topology.isolates))];
    for (let at = 0; at < topology.blindIsolates; at += 1) isolates.push(world.isolate());
    world.network = down;
    const forMs = 4 * SECOND_MS;
    const units = await flood(world, isolates, [rule], forMs, topology.largestCost);
    const most = unitsIn(boundOf(rule.rule, topology)!.fallback, forMs);
    expect(units).toBeLessThanOrEqual(most);
    expect(units).toBeGreaterThanOrEqual(0.8 * most);
  });

  test('an outage and the return from it', async () => {
    const world = new World();
    const isolates = await told(world, 1);
    world.network = down;
    const during = await flood(world, isolates, [rule], 5 * SECOND_MS);
    world.network = () => answers();
    const after = await flood(world, isolates, [rule], 2 * SECOND_MS);
    const most = unitsIn(boundOf(rule.rule, ONE)!.fallback, 7 * SECOND_MS);
    expect(during + after).toBeLessThanOrEqual(most);
    expect(during + after).toBeGreaterThanOrEqual(0.8 * most);
  });

  test('an owner that answers every third call', async () => {
    const world = new World();
    const isolates = await told(world, 1);
    world.network = ({ number }) => (number % 3 === 0 ? answers() : fails());
    const units = await flood(world, isolates, [rule], 20 * SECOND_MS);
    const { limit, flapping } = boundOf(rule.rule, ONE)!;
    expect(units).toBeGreaterThan(unitsIn(limit, 20 * SECOND_MS));
    expect(units).toBeLessThanOrEqual(unitsIn(flapping, 20 * SECOND_MS));
  });

  test('an owner that answers others while one that had all the demand is cut off from it', async () => {
    const world = new World();
    const [cut] = await told(world, 1);
    const others = [world.isolate(), world.isolate()];
    world.network = ({ call }) => (call.holder === cut!.holder ? fails() : answers());
    const forMs = 4 * SECOND_MS;
    const units = await flood(world, [cut!, ...others], [rule], forMs);
    const most = unitsIn(boundOf(rule.rule, { ...ONE, isolates: 3 })!.flapping, forMs);
    expect(units).toBeLessThanOrEqual(most);
    expect(units).toBeGreaterThanOrEqual(0.8 * most);
  });

  test('healthy, ten isolates: the limit', async () => {
    const world = new World();
    const isolates = Array.from({ length: 10 }, () => world.isolate());
    const units = await flood(world, isolates, [rule], 10 * SECOND_MS);
    const most = unitsIn(boundOf(rule.rule, ONE)!.steady, 10 * SECOND_MS);
    expect(units).toBeLessThanOrEqual(most);
    expect(units).toBeGreaterThanOrEqual(0.95 * most);
  });

  test('a crash', async () => {
    const hourly = winner({ quota: 500, windowMs: HOUR_MS });
    const world = new World();
    const isolate = world.isolate();
    await isolate.ask([hourly]);
    await world.time.settle(Promise.all(Array.from({ length: 499 }, () => isolate.send([hourly]))));
    const before = world.used(hourly);
    world.owner().restart();
    const lost = before - world.used(hourly);
    const most = boundOf(hourly.rule, ONE)!.crashUnits;
    expect(lost).toBeLessThanOrEqual(most);
    expect(lost).toBeGreaterThanOrEqual(0.8 * most);
  });

  test('local rules in five isolates', async () => {
    const local = winner({ quota: 600, burst: 20, scope: 'local', windowMs: MINUTE_MS });
    const world = new World();
    const isolates = Array.from({ length: 5 }, () => world.isolate());
    const units = await flood(world, isolates, [local], 10 * SECOND_MS);
    const most = unitsIn(boundOf(local.rule, { ...ONE, isolates: 5 })!.steady, 10 * SECOND_MS);
    expect(units).toBeLessThanOrEqual(most);
    expect(units).toBeGreaterThanOrEqual(0.95 * most);
  });
});

describe('requests at once', () => {
  const slots = { quota: 10, algorithm: 'concurrency', windowMs: 30 * SECOND_MS } as const;

  test('open: beside those in progress each isolate admits its share, and one at least', () => {
    const { steady, fallback, crashUnits } = bound(slots, { isolates: 3, blindIsolates: 2 });
    expect([steady.burstUnits, fallback.burstUnits, crashUnits]).toEqual([10, 10 + 10 + 2 + 2, 10]);
  });

  test('closed: those in progress go on', () => {
    expect(bound({ ...slots, failureMode: 'closed' }).fallback.burstUnits).toBe(10);
  });

  test('in sentences', () => {
    expect(bound(slots, { isolates: 2 }).sentences).toEqual([
      'healthy: at most 10 at once',
      'owner silent: at most 21 at once',
      'owner crashes: up to 10 more until the slots are renewed (10 s)',
      'an isolate dies: its slots stay taken for up to 30 s',
      `strict: one object ${EACH}`,
    ]);
  });

  test('measured: never more than that, when an owner falls silent under them', async () => {
    const rule = winner(slots);
    const world = new World();
    const isolates = [world.isolate(), world.isolate()];
    const ask = async (isolate: Isolate, times: number) => {
      const sent = Array.from({ length: times }, () => isolate.send([rule]));
      return (await world.time.settle(Promise.all(sent))).filter(({ outcome }) => outcome === 'allowed')
        .length;
    };
    let inProgress = await ask(isolates[0]!, 10);
    // The whole demand moves to the other isolate just before.
    await world.time.advance(20 * SECOND_MS);
    await ask(isolates[1]!, 50);
    // What was denied is remembered for a moment.
    await world.time.advance(100);
    world.network = down;
    inProgress += await ask(isolates[1]!, 50);
    expect(inProgress).toBeGreaterThan(10);
    expect(inProgress).toBeLessThanOrEqual(bound(slots, { isolates: 2 }).fallback.burstUnits);
  });
});
