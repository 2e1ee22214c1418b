/** A gate whose owner has been split, or is too busy to say so. */
import { expect, test } from 'vitest';
import { wholeOf } from '../../src/engine/slices.ts';
import { answers, fails, healthy, type Sent } from './network.ts';
import { SECOND_MS, winner } from './rules.ts';
import { type Isolate, World } from './world.ts';

const rule = winner({ quota: 6_400, windowMs: SECOND_MS, owner: 'own/hot', consistency: 'auto' });

/** 200 isolates ask so often that the owner is split. */
async function splitWorld() {
  const world = new World();
  const isolates = Array.from({ length: 200 }, () => world.isolate());
  for (let round = 0; round < 5; round += 1) {
    for (const isolate of isolates) void isolate.send([rule]);
    await world.time.advance(200);
  }
  const askedBefore = world.calls.length;
  const callsOf = ({ holder }: Isolate) =>
    world.calls.slice(askedBefore).filter(({ call }) => call.holder === holder);
  expect(world.calls.some(({ owner }) => wholeOf(owner) === 'own/hot')).toBe(true);
  return { world, callsOf };
}

const names = (calls: readonly Sent[]) => calls.map(({ owner }) => wholeOf(owner) ?? owner);

test('what the owner has nothing left for, a slice of it admits: it has lent all there was', async () => {
  const { world, callsOf } = await splitWorld();
  const newcomers = Array.from({ length: 30 }, () => world.isolate());
  let admittedBySlices = 0;
  for (const newcomer of newcomers) {
    const { outcome } = await newcomer.ask([rule], { cost: 100, largestCost: 100 });
    const [first, ...rest] = callsOf(newcomer).map(({ owner }) => owner);
    expect(first).toBe('own/hot');
    // The owner's own denial is never the last word.
    if (rest.length === 0) expect(outcome).toBe('allowed');
    else if (outcome === 'allowed') admittedBySlices += 1;
  }
  expect(admittedBySlices).toBeGreaterThan(0);
});

test('an owner too busy to be asked is probed with the question, so that whoever cannot ask hears of its slices', async () => {
  const { world, callsOf } = await splitWorld();
  const newcomer = world.isolate();
  world.network = (sent) =>
    sent.call.holder === newcomer.holder ? fails({ overloaded: true }) : healthy(sent);
  expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'fallback' });
  world.network = healthy;
  await world.time.advance(601);
  expect(await newcomer.ask([rule])).toMatchObject({ source: 'fallback', tookMs: 0 });
  await world.time.advance(SECOND_MS);
  const [, probe] = callsOf(newcomer);
  expect(probe).toMatchObject({ owner: 'own/hot', call: { question: { cost: 0 } } });
  expect(await newcomer.ask([rule])).toMatchObject({ outcome: 'allowed', source: 'owner' });
  expect(names(callsOf(newcomer).slice(-1))).toEqual(['own/hot']);
  expect(callsOf(newcomer).at(-1)!.owner).not.toBe('own/hot');
});

test('a denial beside a strict rule, which has no slices, is the last word and is remembered', async () => {
  const { world } = await splitWorld();
  const strict = winner({ quota: 1, owner: 'own/hot', consistency: 'strict', policy: 'strict' });
  const newcomer = world.isolate();
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'allowed' });
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'denied' });
  const { length } = world.callsTo('own/hot');
  expect(await newcomer.ask([rule, strict])).toMatchObject({ outcome: 'denied', source: 'deny_memory' });
  expect(world.callsTo('own/hot')).toHaveLength(length);
});

test('a probe that is not answered leaves nothing to be taken back; a question does', async () => {
  const world = new World({ network: () => answers({ thereMs: 5_000 }) });
  const isolate = world.isolate();
  for (let sent = 0; sent < 3; sent += 1) await isolate.ask([winner({ quota: 100 })]);
  await world.time.advance(601);
  await isolate.ask([winner({ quota: 100 })]);
  await world.time.advance(1_001);
  world.network = healthy;
  await world.time.advance(601);
  await isolate.ask([winner({ quota: 100 })]);
  const ids = world.calls.map(({ call }) => call.question!.id);
  expect(ids.map((id) => id.endsWith(':probe'))).toEqual([false, false, false, true, true]);
  expect(world.calls.at(-1)!.call.giveBacks).toEqual(ids.slice(0, 3));
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

test('what a split owner charged too late is taken back seconds later, and by then it has time', async () => {
  const { world, callsOf } = await splitWorld();
  const newcomer = world.isolate();
  const isLate = ({ call }: Sent) => call.holder === newcomer.holder;
  world.network = (sent) => (isLate(sent) ? answers({ thereMs: 1_200 }) : healthy(sent));
  expect(await newcomer.ask([rule])).toMatchObject({ source: 'fallback', tookMs: SECOND_MS });
  world.network = healthy;
  const taking = () => callsOf(newcomer).filter(({ call }) => (call.giveBacks?.length ?? 0) > 0);
  await world.time.advance(201 + 5 * SECOND_MS);
  expect(taking()).toHaveLength(0);
  await world.time.advance(5 * SECOND_MS);
  expect(names(taking())).toEqual(['own/hot']);
  expect(world.problems).toEqual([]);
});
