/** Regions that are cut off from their root, lives that end, and what is charged when they are heard of again. */
import { describe, expect, test } from 'vitest';
import { boundOf } from '../../src/engine/bound.ts';
import { inRegion } from '../../src/policy/place.ts';
import type { Region } from '../../src/policy/region.ts';
import { excessOf, LOST, PROMPT, Realm, ROOT, regionalRule, regionName } from './realm.ts';
import { DAY_MS, SECOND_MS } from './rules.ts';

/** As long as a lease lives, and a word that was on its way. */
const LEASE_OVER_MS = 6_000;

/** A hundred a second. */
const fast = () => new Realm(regionalRule());

/** Hardly refills, so each unit that is charged shows. */
const slow = () => new Realm(regionalRule({ quota: 10_000, windowMs: 365 * DAY_MS, startCredit: 0.01 }));

const usedAtRoot = (realm: Realm) => realm.rule.rule.limit!.burst - realm.rootLevel();

describe('a region that is cut off', () => {
  test('goes on with its lease while that lasts: not above the limit', () => {
    const realm = fast();
    realm.flood(['weur'], 5 * SECOND_MS);
    realm.mail = () => LOST;
    const units = realm.flood(['weur'], 4 * SECOND_MS);
    expect(units).toBeLessThanOrEqual(4 * 100 + 100);
    expect(units).toBeGreaterThanOrEqual(4 * 95);
  });

  test('with all of the demand goes on with 1.2 times the rate, once its lease has ended', () => {
    const realm = fast();
    realm.flood(['weur'], 5 * SECOND_MS);
    realm.mail = () => LOST;
    realm.flood(['weur'], LEASE_OVER_MS);
    const units = realm.flood(['weur'], 20 * SECOND_MS);
    expect(units).toBeGreaterThanOrEqual(0.98 * 20 * 120);
    expect(units).toBeLessThanOrEqual(20 * 120 + 5);
  });

  test('with a part of the demand goes on with that part: all together with 1.2 times the rate', () => {
    const realm = fast();
    const regions: readonly Region[] = ['weur', 'enam', 'apac', 'weur'];
    realm.flood(regions, 10 * SECOND_MS);
    realm.mail = () => LOST;
    realm.flood(regions, LEASE_OVER_MS);
    const [half, quarter, other] = (['weur', 'enam', 'apac'] as const).map(
      (region) => realm.counterOf(regionName(region))!.limit.quota,
    );
    expect(half! / quarter!).toBeGreaterThan(1.5);
    expect(half! / quarter!).toBeLessThan(2.7);
    expect(half! + quarter! + other!).toBeLessThanOrEqual(120 * 1.1);
    const units = realm.flood(regions, 20 * SECOND_MS);
    expect(units).toBeLessThanOrEqual(20 * 120 * 1.1);
    expect(units).toBeGreaterThanOrEqual(20 * 120 * 0.9);
  });

  test('leaves the whole limit to those that are not, once its lease has ended; all sides stay within the printed bound', () => {
    const realm = fast();
    const regions: readonly Region[] = ['weur', 'enam'];
    const admitted: { atMs: number; units: number }[] = [];
    const flood = (forMs: number) => {
      let enam = 0;
      for (const untilMs = realm.nowMs + forMs; realm.nowMs < untilMs; realm.pass(5))
        for (const region of regions) {
          const units = realm.admitted(region, 1);
          admitted.push({ atMs: realm.nowMs, units });
          if (region === 'enam') enam += units;
        }
      return enam;
    };
    flood(5 * SECOND_MS);
    realm.mail = ({ from }) => (from === regionName('weur') ? LOST : PROMPT);
    flood(15 * SECOND_MS);
    const enam = flood(10 * SECOND_MS);
    expect(enam).toBeGreaterThanOrEqual(0.93 * 10 * 100);
    expect(enam).toBeLessThanOrEqual(10 * 100 + 100);
    const topology = { isolates: 1, blindIsolates: 0, largestCost: 1, regions: 2 };
    const { partition } = boundOf(realm.rule.rule, topology)!.regional!;
    const envelope = { quota: partition.unitsPerSecond, windowMs: SECOND_MS, burst: partition.burstUnits };
    expect(excessOf(admitted, envelope)).toBe(0);
  });

  test('that was never told a share goes on on its credit', () => {
    const realm = fast();
    realm.mail = () => LOST;
    realm.flood(['weur'], 10 * SECOND_MS);
    expect(realm.flood(['weur'], 10 * SECOND_MS)).toBeLessThanOrEqual(10 * 25 + 1);
  });
});

test('a region that comes while another holds all of the rate, and cannot be told to give it up, has its credit until it is lent some', () => {
  const realm = fast();
  realm.flood(['weur'], 5 * SECOND_MS, 25);
  realm.mail = ({ from }) => (from === regionName('weur') ? LOST : PROMPT);
  // No more than the credit: 25 units, while the other is not short of anything.
  expect(realm.flood(['enam'], SECOND_MS, 40)).toBe(25);
});

describe('healing', () => {
  /** What the root has charged in the end for what a region admitted on credit while it was cut off for ten seconds. */
  function charged(healed: () => { thereMs: readonly number[]; backMs: readonly number[] }) {
    const realm = new Realm(regionalRule({ quota: 10_000, windowMs: 365 * DAY_MS, startCredit: 0.1 }));
    realm.mail = () => LOST;
    const spent = realm.flood(['weur'], 10 * SECOND_MS);
    const cutMs = realm.nowMs;
    realm.mail = healed;
    const after = realm.flood(['weur'], SECOND_MS);
    realm.pass(20 * SECOND_MS);
    const owed = realm.said
      .filter(({ atMs }) => atMs >= cutMs)
      .map(({ call }) => call.middle![0]!.owed.units);
    return { used: usedAtRoot(realm), spent: spent + after, owed: Math.max(...owed) };
  }

  test('charges what was admitted meanwhile', () => {
    const { used, spent, owed } = charged(() => PROMPT);
    expect(owed).toBeGreaterThan(500);
    expect(Math.abs(used - spent)).toBeLessThanOrEqual(1);
  });

  test.each([
    ['the word that heals is repeated', { thereMs: [40, 70, 400], backMs: [40] }],
    ['each answer is', { thereMs: [40], backMs: [40, 60, 300] }],
    ['both are, and come late', { thereMs: [40, 900], backMs: [40, 800] }],
  ])('charges it once, though %s', (_, mail) => {
    let times = 0;
    const again = charged(() => {
      times += 1;
      return times === 1 ? mail : PROMPT;
    });
    expect(Math.abs(again.used - again.spent)).toBeLessThanOrEqual(1);
    expect(again.owed).toBeGreaterThan(500);
  });

  test('brings back the limit: nothing above it, and what was too much is paid back', () => {
    const realm = fast();
    realm.flood(['weur'], 5 * SECOND_MS);
    realm.mail = () => LOST;
    realm.flood(['weur'], 20 * SECOND_MS);
    realm.mail = () => PROMPT;
    expect(realm.flood(['weur'], 3 * SECOND_MS)).toBeLessThanOrEqual(3 * 100 + 100);
    const after = realm.flood(['weur'], 10 * SECOND_MS);
    expect(after).toBeLessThanOrEqual(10 * 100 + 5);
    expect(after).toBeGreaterThanOrEqual(0.9 * 10 * 100);
    realm.pass(30 * SECOND_MS);
    expect(realm.rootLevel()).toBe(100);
  });
});

describe('a root that restarts', () => {
  test('from its storage has charged what it had, and knows what it has lent', () => {
    const realm = slow();
    realm.flood(['weur', 'enam'], 3 * SECOND_MS);
    const before = [realm.rootLevel(), realm.lent().unitsPerMs, realm.lent().capacity];
    realm.restart(ROOT);
    const after = [realm.rootLevel(), realm.lent().unitsPerMs, realm.lent().capacity];
    for (const [at, figure] of after.entries()) expect(figure).toBeCloseTo(before[at]!, 6);
  });

  test('from its storage, again and again, charges nothing twice', () => {
    const realm = slow();
    let spent = 0;
    for (let life = 0; life < 6; life += 1) {
      spent += realm.flood(['weur'], 1_500);
      realm.restart(ROOT);
    }
    realm.pass(20 * SECOND_MS);
    expect(Math.abs(usedAtRoot(realm) - spent)).toBeLessThanOrEqual(1.1);
  });

  test('with nothing learns of the lease from the next report, and lends nobody else of it', () => {
    const realm = fast();
    realm.flood(['weur'], 5 * SECOND_MS);
    realm.restart(ROOT, { isForgotten: true });
    expect(realm.lent().unitsPerMs).toBe(0);
    // With one word of the region's own it has heard.
    const said = realm.said.length;
    while (realm.said.length === said) realm.flood(['weur'], 5);
    realm.flood(['weur'], 45);
    expect(realm.lent().unitsPerMs).toBeGreaterThanOrEqual(0.09);
    expect(realm.lent().unitsPerMs).toBeLessThanOrEqual(0.1 + 1e-9);
    const together = realm.flood(['weur', 'enam'], 10 * SECOND_MS);
    // Beside the refill the burst of the root that has forgotten, and the credit of the other.
    expect(together).toBeLessThanOrEqual(10 * 100 + 100 + 100 + 100);
  });

  test('with nothing charges nothing that it has been known to have heard', () => {
    const realm = slow();
    realm.flood(['weur'], 3 * SECOND_MS);
    const { owed } = realm.said.at(-1)!.call.middle![0]!;
    expect(owed.units).toBeGreaterThan(5);
    expect(owed.heard).toBe(owed.units);
    realm.restart(ROOT, { isForgotten: true });
    const said = realm.said.length;
    realm.ask('weur', { cost: 0 });
    realm.pass(20 * SECOND_MS);
    // What is missing in the lease that it learns of is missing, and no more than that.
    const { lease, held } = realm.said[said]!.call.middle![0]!;
    expect(usedAtRoot(realm)).toBeCloseTo(lease!.capacity - held, 0);
  });
});

describe('a region that restarts', () => {
  test('from its storage goes on with its lease, and owes what it owed', () => {
    const realm = slow();
    let spent = 0;
    for (let life = 0; life < 6; life += 1) {
      spent += realm.flood(['weur'], 1_500);
      realm.restart(regionName('weur'));
    }
    realm.pass(20 * SECOND_MS);
    expect(Math.abs(usedAtRoot(realm) - spent)).toBeLessThanOrEqual(1.1);
  });

  test('on its credit, from its storage, has no new one', () => {
    const realm = new Realm(regionalRule({ quota: 100, windowMs: DAY_MS }));
    realm.mail = () => LOST;
    let units = 0;
    for (let life = 0; life < 5; life += 1) {
      units += realm.admitted('weur', 10);
      realm.restart(regionName('weur'));
    }
    expect(units).toBe(25);
  });

  test('with nothing has a credit, and is lent to again: above the limit by that and what it had in hand', () => {
    const realm = new Realm(regionalRule({ quota: 1_000, windowMs: DAY_MS, startCredit: 0.1 }));
    let units = realm.flood(['weur'], 3 * SECOND_MS);
    realm.restart(regionName('weur'), { isForgotten: true });
    units += realm.flood(['weur'], 20 * SECOND_MS);
    expect(units).toBeLessThanOrEqual(1_000 + 100 + 1);
  });
});

test('a region that is short does not wish for what isolates asked for that are gone', () => {
  const realm = fast();
  const { counterId } = inRegion(realm.rule, 'weur');
  const told: number[] = [];
  for (let holder = 0; holder < 10; holder += 1)
    realm.askOwner(regionName('weur'), counterId, { holder: `gone-${holder}`, unitsPerSecond: 500 });
  // They asked for 5,000 a second together. Whoever is left asks for forty, and in its first second for more than there is.
  for (let sent = 0; sent < 200; sent += 1) {
    const from = realm.said.length;
    realm.askOwner(regionName('weur'), counterId, {
      holder: 'here',
      unitsPerSecond: 40,
      cost: sent < 40 ? 100 : 1,
    });
    realm.pass(25);
    for (const { call, atMs } of realm.said.slice(from))
      if (atMs > 2_500) told.push(...call.middle!.map(({ unitsPerSecond }) => unitsPerSecond));
  }
  expect(told.length).toBeGreaterThan(2);
  for (const unitsPerSecond of told) expect(unitsPerSecond).toBeLessThan(1_000);
});
