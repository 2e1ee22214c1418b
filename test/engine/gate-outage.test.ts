import { describe, expect, test } from 'vitest';
import type { Winner } from '../../src/policy/counter.ts';
import { answers, down, fails, healthy, type Network, questionLost, stalled } from './network.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, winner } from './rules.ts';
import { type Isolate, type TimedVerdict, World } from './world.ts';

/** Sends a request every `everyMs` for a while, without waiting for one before the next. */
async function traffic(
  world: World,
  isolate: Isolate,
  winners: readonly Winner[],
  { everyMs = 10, forMs = 0 },
) {
  const requests: Promise<TimedVerdict>[] = [];
  for (let atMs = 0; atMs < forMs; atMs += everyMs) {
    requests.push(isolate.send(winners));
    await world.time.advance(everyMs);
  }
  return world.time.settle(Promise.all(requests));
}

const admitted = (verdicts: readonly TimedVerdict[]) =>
  verdicts.filter(({ outcome }) => outcome === 'allowed').length;

/** What comes back of 100 an hour meanwhile: to its owner, and to the isolate's bucket at 1.2 times that. */
const refilled = (ms: number) => (ms * 100 * (1 + 1.2)) / HOUR_MS;

/** A debt is told in whole units, so less than one is not. */
const UNTOLD = 1;

const outages: { name: string; network: Network }[] = [
  { name: 'down', network: down },
  { name: 'stalled', network: stalled },
];

describe.each(outages)('an owner that is $name', ({ network }) => {
  const rule = winner({ quota: 6_000, burst: 200 });

  async function start() {
    const world = new World();
    const isolate = world.isolate();
    await traffic(world, isolate, [rule], { forMs: 5 * SECOND_MS });
    world.network = network;
    return { world, isolate };
  }

  test('every request is answered, most of them at once', async () => {
    const { world, isolate } = await start();
    const verdicts = await traffic(world, isolate, [rule], { forMs: 10 * SECOND_MS });
    const waits = verdicts.map(({ tookMs }) => tookMs);
    expect(Math.max(...waits)).toBeLessThanOrEqual(150);
    // Those that were sent until the third had waited in vain; and from then on a probe every half second.
    expect(waits.filter((waitMs) => waitMs > 0).length).toBeLessThanOrEqual(17);
    expect(world.callsTo('anne').length).toBeLessThanOrEqual(500 + 17 + 20);
  });

  test('within two seconds of its return it is asked again, every time, and exact again', async () => {
    const { world, isolate } = await start();
    await traffic(world, isolate, [rule], { forMs: 30 * SECOND_MS });
    world.network = healthy;
    await traffic(world, isolate, [rule], { forMs: 2 * SECOND_MS });
    const after = await traffic(world, isolate, [rule], { everyMs: 5, forMs: 20 * SECOND_MS });
    expect(after.filter(({ source }) => source === 'fallback')).toHaveLength(0);
    expect(admitted(after)).toBeGreaterThanOrEqual(1_999);
    expect(admitted(after)).toBeLessThanOrEqual(200 + 2_000);
    expect([world.counted('debt_lost'), world.counted('give_back_lost'), world.problems]).toEqual([0, 0, []]);
  });

  test('its return brings no lockout beyond the debt: a caller inside its limit is never refused', async () => {
    const { world, isolate } = await start();
    const modest = { everyMs: 20 };
    const during = await traffic(world, isolate, [rule], { ...modest, forMs: 2 * MINUTE_MS });
    world.network = healthy;
    const after = await traffic(world, isolate, [rule], { ...modest, forMs: 20 * SECOND_MS });
    expect([...during, ...after].filter(({ outcome }) => outcome !== 'allowed')).toEqual([]);
  });

  test('no extra burst: what the fallback admitted is on the bill', async () => {
    const burst = winner({ quota: 100, windowMs: HOUR_MS });
    const world = new World();
    const isolate = world.isolate();
    await isolate.ask([burst]);
    world.network = network;
    const during = await traffic(world, isolate, [burst], { forMs: 3 * SECOND_MS });
    expect(admitted(during)).toBeGreaterThanOrEqual(97);
    world.network = healthy;
    const after = await traffic(world, isolate, [burst], { forMs: 5 * SECOND_MS });
    const count = 1 + admitted(during) + admitted(after);
    expect(count).toBeGreaterThanOrEqual(100);
    expect(count).toBeLessThanOrEqual(100 + refilled(8 * SECOND_MS) + UNTOLD);
  });
});

describe('an owner that is half dead', () => {
  const halfDead: Network = ({ number }) => (number % 2 === 0 ? answers() : fails());

  test('every other call: a burst is admitted once, however often the owner comes and goes', async () => {
    const rule = winner({ quota: 100, windowMs: HOUR_MS });
    const world = new World({ network: halfDead });
    const isolate = world.isolate();
    const verdicts = await traffic(world, isolate, [rule], { forMs: 10 * SECOND_MS });
    expect(admitted(verdicts)).toBeGreaterThanOrEqual(100);
    expect(admitted(verdicts)).toBeLessThanOrEqual(100 + refilled(10 * SECOND_MS) + UNTOLD);
    expect(world.logs).toEqual([]);
  });

  test('three of four questions stall: still one burst, and what hangs does not pile up', async () => {
    const rule = winner({ quota: 100, windowMs: HOUR_MS });
    const world = new World({ network: ({ number }) => (number % 4 === 0 ? answers() : questionLost()) });
    const isolate = world.isolate();
    const verdicts = await traffic(world, isolate, [rule], { forMs: 20 * SECOND_MS });
    world.network = healthy;
    await world.time.advance(SECOND_MS);
    const after = await traffic(world, isolate, [rule], { forMs: 5 * SECOND_MS });
    const count = admitted(verdicts) + admitted(after);
    expect(count).toBeGreaterThanOrEqual(99);
    expect(count).toBeLessThanOrEqual(100 + refilled(26 * SECOND_MS) + UNTOLD);
  });

  test('at a steady rate the price is the refill of two buckets, and no more', async () => {
    const rule = winner({ quota: 600, burst: 10 });
    const world = new World({ network: halfDead });
    const isolate = world.isolate();
    const verdicts = await traffic(world, isolate, [rule], { forMs: MINUTE_MS });
    expect(admitted(verdicts)).toBeLessThanOrEqual(10 + 600 * (1 + 1.2));
  });
});

describe('the breaker', () => {
  test('says when it opens and when it has closed, once each', async () => {
    const rule = winner({ quota: 6_000 });
    const world = new World();
    const isolate = world.isolate();
    await isolate.ask([rule]);
    world.network = down;
    await traffic(world, isolate, [rule], { forMs: 5 * SECOND_MS });
    world.network = healthy;
    await traffic(world, isolate, [rule], { forMs: 2 * SECOND_MS });
    expect(world.logs).toEqual([
      { event: 'breaker_opened', owner: 'anne' },
      { event: 'breaker_closed', owner: 'anne' },
    ]);
  });

  test('of one owner says nothing about another', async () => {
    const world = new World({ network: ({ owner }) => (owner === 'anne' ? fails() : answers()) });
    const isolate = world.isolate();
    for (let at = 0; at < 5; at += 1) await isolate.ask([winner({ quota: 9 })]);
    expect((await isolate.ask([winner({ quota: 9, owner: 'berta' })])).source).toBe('owner');
  });

  test('for all owners opens after 20 that never answered: the next new ones cost no wait', async () => {
    const world = new World({ network: stalled });
    const isolate = world.isolate();
    const requests = Array.from({ length: 40 }, (_, at) =>
      isolate.send([winner({ quota: 9, owner: `o${at}` })]),
    );
    await world.time.settle(Promise.all(requests));
    expect(world.logs).toContainEqual({ event: 'all_owners_unreachable' });
    expect(await isolate.ask([winner({ quota: 9, owner: 'new' })])).toMatchObject({
      source: 'fallback',
      tookMs: 0,
    });
    world.network = healthy;
    await world.time.advance(600);
    await isolate.ask([winner({ quota: 9, owner: 'new' })]);
    await world.time.advance(10);
    expect(world.logs).toContainEqual({ event: 'owners_reachable' });
    expect((await isolate.ask([winner({ quota: 9, owner: 'newer' })])).source).toBe('owner');
  });

  test('for all owners open: an owner never asked still has one bucket, not one a request', async () => {
    const world = new World({ network: stalled });
    const isolate = world.isolate();
    const requests = Array.from({ length: 25 }, (_, at) =>
      isolate.send([winner({ quota: 9, owner: `o${at}` })]),
    );
    await world.time.settle(Promise.all(requests));
    const rule = winner({ quota: 100, windowMs: HOUR_MS, owner: 'new' });
    expect(admitted(await traffic(world, isolate, [rule], { forMs: SECOND_MS }))).toBe(5);
  });
});

describe.each(outages)('owners that are $name, of an open rule and a closed one', ({ network }) => {
  const open = winner({ quota: 10, policy: 'open', owner: 'anne' });
  const closed = winner({ quota: 10, policy: 'closed', owner: 'berta', failureMode: 'closed' });

  test.each([
    ['open, closed', [open, closed]],
    ['closed, open', [closed, open]],
  ])(
    '%s: refused as the closed one says, and nothing is taken from what the open one has',
    async (_, both) => {
      const isolate = new World({ network }).isolate();
      for (let asked = 0; asked < 5; asked += 1) {
        const verdict = await isolate.ask(both);
        expect(verdict).toMatchObject({ outcome: 'unavailable', source: 'fallback', retryAfterMs: 1_000 });
        const refusing = verdict.policies.filter(({ outcome }) => outcome !== 'allowed');
        expect(refusing.map(({ policy, outcome }) => [policy, outcome])).toEqual([['closed', 'unavailable']]);
      }
      // A blind share of 10 is a single request.
      expect((await isolate.ask([open])).outcome).toBe('allowed');
      expect((await isolate.ask([open])).outcome).toBe('denied');
    },
  );
});

describe('windows', () => {
  test('only the present window is owed: what was admitted in the last one is over', async () => {
    const rule = winner({ quota: 100, windowMs: MINUTE_MS, algorithm: 'fixed_window' });
    const world = new World();
    const isolate = world.isolate();
    await isolate.ask([rule]);
    world.network = down;
    await traffic(world, isolate, [rule], { forMs: MINUTE_MS - SECOND_MS, everyMs: 1_000 });
    await world.time.advance(2 * SECOND_MS);
    world.network = healthy;
    const before = await traffic(world, isolate, [rule], { forMs: SECOND_MS, everyMs: 100 });
    expect(world.used(rule)).toBeLessThanOrEqual(before.length);
  });
});

describe('an owner that is evicted', () => {
  test('goes on from what it had written, and the isolate does not notice', async () => {
    const rule = winner({ quota: 10, windowMs: HOUR_MS });
    const world = new World();
    const isolate = world.isolate();
    for (let at = 0; at < 6; at += 1) await isolate.ask([rule]);
    await world.time.advance(10 * SECOND_MS);
    world.owner().restart();
    const verdicts = [];
    for (let at = 0; at < 6; at += 1) verdicts.push(await isolate.ask([rule]));
    expect(admitted(verdicts)).toBe(4);
  });
});

test('several isolates in an outage: together within 1.2 of the limit, as their shares say', async () => {
  const rule = winner({ quota: 6_000, burst: 100 });
  const world = new World();
  const isolates = [world.isolate(), world.isolate(), world.isolate(), world.isolate()];
  const warm = isolates.map((isolate) => traffic(world, isolate, [rule], { everyMs: 40, forMs: 0 }));
  await Promise.all(warm);
  for (let atMs = 0; atMs < 5 * SECOND_MS; atMs += 40) {
    for (const isolate of isolates) void isolate.send([rule]);
    await world.time.advance(40);
  }
  world.network = down;
  const requests: Promise<TimedVerdict>[] = [];
  for (let atMs = 0; atMs < 20 * SECOND_MS; atMs += 10) {
    for (const isolate of isolates) requests.push(isolate.send([rule]));
    await world.time.advance(10);
  }
  const count = admitted(await world.time.settle(Promise.all(requests)));
  // A share is told with the arrival that asks for it, so each is an arrival too large: one of the 360 that demand remembers.
  expect(count).toBeLessThanOrEqual((100 + 1.2 * 100 * 20) * (1 + 4 / 360));
  expect(count).toBeGreaterThanOrEqual(0.9 * 1.2 * 100 * 20);
});
