/** Faults that limiters with regions, caches and leases have shipped with, each as the smallest run that shows it. */
import { expect, test } from 'vitest';
import { REGIONS, type Region } from '../../src/policy/region.ts';
import { Realm, ROOT, regionalRule } from './realm.ts';
import { DAY_MS, SECOND_MS, winner } from './rules.ts';
import { World } from './world.ts';

/** So slow that nothing of it comes back while a test runs. */
const slow = (quota: number) => regionalRule({ quota, windowMs: 1_000 * DAY_MS });

test('R03 syncing counts nothing twice: of 10 requests in a region, half a second apart, the root has 10', () => {
  const realm = new Realm(slow(100));
  for (let request = 0; request < 10; request += 1) {
    expect(realm.ask('weur').outcome).toBe('allowed');
    realm.pass(500);
  }
  // The region gives back what it has in hand once nobody asks.
  realm.pass(10 * SECOND_MS);
  expect(realm.rootLevel()).toBeCloseTo(90, 3);
});

test('R05 a report of past use is no request: of 5 used where 3 are left the root owes 2, and refuses until they have come back', () => {
  const realm = new Realm(slow(100));
  expect(realm.admitted('weur', 5)).toBe(5);
  expect(realm.askOwner(ROOT, realm.rule.counterId, { cost: 97 }).outcome).toBe('allowed');
  realm.pass(10 * SECOND_MS);
  expect(realm.rootLevel()).toBeCloseTo(-2, 1);
  expect(realm.askOwner(ROOT, realm.rule.counterId, {}).outcome).toBe('denied');
});

test('R07 no use is too small to be told: five regions with a fifth less a unit each use up the whole, and no more than it and their credits', () => {
  const realm = new Realm(slow(100));
  const five: readonly Region[] = REGIONS.slice(0, 5);
  let units = 0;
  for (const region of five) units += realm.admitted(region, 19);
  expect(units).toBe(95);
  realm.pass(5 * SECOND_MS);
  for (let round = 0; round < 20; round += 1) {
    for (const region of five) units += realm.admitted(region, 1);
    realm.pass(SECOND_MS);
  }
  expect(units).toBeGreaterThanOrEqual(100);
  expect(units).toBeLessThanOrEqual(5 * 25);
});

test('R09 the boundary is the same on every way: of a limit of 10 the tenth is the last, from the owner, a lease or memory', async () => {
  for (const consistency of ['strict', 'leased', 'auto'] as const) {
    const rule = winner({ quota: 10, windowMs: 1_000 * DAY_MS, consistency });
    const world = new World();
    const [one, other] = [world.isolate(), world.isolate()];
    const outcomes: string[] = [];
    for (let request = 0; request < 12; request += 1)
      outcomes.push((await (request < 9 ? one : other).ask([rule])).outcome);
    // What waits in the hands of the first comes back when its lease ends.
    await world.time.advance(2 * SECOND_MS);
    for (let request = 0; request < 12; request += 1) outcomes.push((await other.ask([rule])).outcome);
    expect(outcomes.filter((outcome) => outcome === 'allowed')).toHaveLength(10);
    expect((await one.ask([rule])).outcome).toBe('denied');
  }
});

test('R11 a holder that dies takes its lease along and no more: what it says after that is believed of nobody', async () => {
  const rule = winner({ quota: 100, windowMs: 1_000 * DAY_MS, consistency: 'leased' });
  const world = new World();
  const dying = world.isolate();
  let admitted = 0;
  for (let request = 0; request < 12; request += 1)
    if ((await dying.ask([rule])).outcome === 'allowed') admitted += 1;
  const inHand = world.used(rule) - admitted;
  expect(inHand).toBeGreaterThan(0);
  // It is cut off with its lease in hand, until long after that has ended.
  const { network } = world;
  world.network = (sent) =>
    sent.call.holder === dying.holder ? { arrivesAfterMs: [5 * SECOND_MS], heard: 'nothing' } : network(sent);
  await world.time.advance(2 * SECOND_MS);
  const living = world.isolate();
  let others = 0;
  for (let request = 0; request < 150; request += 1)
    if ((await living.ask([rule])).outcome === 'allowed') others += 1;
  await world.time.advance(10 * SECOND_MS);
  for (let request = 0; request < 150; request += 1)
    if ((await living.ask([rule])).outcome === 'allowed') others += 1;
  expect(admitted + others).toBeLessThanOrEqual(100);
  // Of the last unit a part may be in each of the two hands.
  expect(admitted + others).toBeGreaterThan(99 - inHand - 1);
});
