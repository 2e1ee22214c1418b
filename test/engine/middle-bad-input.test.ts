/** What nobody should say to a root, and what becomes of it: nothing. */
import { describe, expect, test } from 'vitest';
import type { MiddleReport, OwnerCall } from '../../src/engine/messages.ts';
import { Realm, ROOT, regionalRule, regionName } from './realm.ts';
import { DAY_MS, SECOND_MS } from './rules.ts';

/** It hardly refills, so each unit that is lost or made shows. */
const RULE = regionalRule({ quota: 1_000, windowMs: 365 * DAY_MS });
const LIMIT = RULE.rule.limit!;
const WEUR = regionName('weur');

function reportOf(parts: Partial<Record<keyof MiddleReport, unknown>> = {}): MiddleReport {
  return {
    counterId: RULE.counterId,
    limit: LIMIT,
    epoch: 7,
    number: 0,
    lease: undefined,
    lentOn: { unitsPerMs: 0, capacity: 0, endsInMs: 0 },
    held: 0,
    owed: { units: 10, heard: 0 },
    returned: { units: 0, heard: 0 },
    lent: 0,
    unitsPerSecond: 100,
    largestCost: 1,
    isShort: false,
    isFinal: false,
    ...parts,
  } as MiddleReport;
}

/** A root of which a region that owes ten has been lent some. */
function lending() {
  const realm = new Realm(RULE);
  const say = (report: unknown, parts: Partial<OwnerCall> = {}) =>
    realm.tell(ROOT, { holder: WEUR, middle: [report as MiddleReport], ...parts }).middle ?? [];
  const [first] = say(reportOf());
  return { realm, say, first: first! };
}

const sound = (realm: Realm) => {
  for (const figure of [realm.rootLevel(), ...Object.values(realm.lent())]) expect(figure).not.toBeNaN();
  expect(realm.lent().capacity).toBeLessThanOrEqual(LIMIT.burst);
  expect(realm.lent().unitsPerMs).toBeLessThanOrEqual(LIMIT.quota / LIMIT.windowMs + 1e-12);
};

describe('a report to a root', () => {
  test('of one of its regions is answered, and what is owed is charged', () => {
    const { realm, first } = lending();
    expect(first).toMatchObject({ counterId: RULE.counterId, epoch: 7, owed: 10 });
    expect(1_000 - realm.rootLevel() - first.lent).toBeCloseTo(10, 3);
  });

  test.each([
    ['an isolate', 'isolate-7'],
    ['a region of another owner', 'region/weur/own/bert'],
    ['a region that there is none of', 'region/atlantis/own/anne'],
    ['the owner itself', ROOT],
    ['a part', `part/weur/${ROOT}`],
    ['a slice beyond the last', `slice/32/${ROOT}`],
    ['nobody', ''],
  ])('of %s is left out', (_, holder) => {
    const { realm, say } = lending();
    const before = realm.rootLevel();
    expect(say(reportOf(), { holder })).toEqual([]);
    expect(realm.rootLevel()).toBe(before);
  });

  test('about another counter obtains that one, and harms none', () => {
    const { realm, say } = lending();
    const before = realm.rootLevel();
    expect(say(reportOf({ counterId: 'other' }))).toMatchObject([{ counterId: 'other' }]);
    expect(realm.rootLevel()).toBe(before);
    expect([...realm.root.counters()].map(({ id }) => id)).toEqual([RULE.counterId, 'other']);
  });

  test.each([
    ['no report', undefined],
    ['null', null],
    ['a word', 'report'],
    ['no counter', reportOf({ counterId: undefined })],
    ['a counter that is a number', reportOf({ counterId: 7 })],
    ['no limit', reportOf({ limit: undefined })],
    ['a limit without numbers', reportOf({ limit: { algorithm: 'token_bucket' } })],
    ['a limit of NaN', reportOf({ limit: { ...LIMIT, quota: Number.NaN } })],
    ['a limit without end', reportOf({ limit: { ...LIMIT, burst: Number.POSITIVE_INFINITY } })],
    ['a negative limit', reportOf({ limit: { ...LIMIT, quota: -1 } })],
    ['a window of nothing', reportOf({ limit: { ...LIMIT, windowMs: 0 } })],
    ['a limit that cannot be lent', reportOf({ limit: { ...LIMIT, algorithm: 'sliding_log' } })],
    ['no epoch', reportOf({ epoch: undefined })],
    ['an epoch of NaN', reportOf({ epoch: Number.NaN })],
    ['an epoch beyond whole numbers', reportOf({ epoch: 1e300 })],
    ['an epoch in words', reportOf({ epoch: '7' })],
    ['no number', reportOf({ number: undefined })],
    ['half a number', reportOf({ number: 0.5 })],
  ])('with %s is left out', (_, report) => {
    const { realm, say } = lending();
    const before = realm.rootLevel();
    expect(say(report)).toEqual([]);
    expect(realm.rootLevel()).toBe(before);
  });

  test('that cannot be read takes no other with it', () => {
    const { say } = lending();
    const { realm } = lending();
    const reports = [null, reportOf({ epoch: 8 }), 7] as unknown as MiddleReport[];
    expect(realm.tell(ROOT, { holder: WEUR, middle: reports }).middle).toHaveLength(1);
    expect(say(reportOf({ epoch: 8 }))).toHaveLength(1);
  });

  test('that is no list is answered with none', () => {
    const { realm } = lending();
    const middle = { length: 1, 0: reportOf() } as unknown as MiddleReport[];
    expect(realm.tell(ROOT, { holder: WEUR, middle }).middle).toEqual([]);
  });

  const GARBAGE = [Number.NaN, -5, Number.POSITIVE_INFINITY, '5', null, {}];
  const AMOUNTS = ['held', 'lent', 'unitsPerSecond', 'largestCost'] as const;
  test.each(AMOUNTS.flatMap((field) => GARBAGE.map((value) => [field, value] as const)))(
    'whose %s is %o counts as one of 0',
    (field, value) => {
      const { realm, say } = lending();
      expect(say(reportOf({ [field]: value }))).toEqual(lending().say(reportOf({ [field]: 0 })));
      sound(realm);
    },
  );

  test.each(
    (['owed', 'returned'] as const).flatMap((field) =>
      [...GARBAGE, { units: Number.NaN, heard: -1 }, { units: '9', heard: {} }, { heard: 1e12 }].map(
        (value) => [field, value] as const,
      ),
    ),
  )('whose %s is %o charges and gives back nothing', (field, value) => {
    const { realm, say } = lending();
    const before = realm.rootLevel();
    const [grant] = say(
      reportOf({ owed: { units: 10, heard: 0 }, [field]: value, unitsPerSecond: 0, number: 1 }),
    );
    expect(realm.rootLevel()).toBeLessThanOrEqual(before);
    expect(realm.rootLevel()).toBeGreaterThanOrEqual(before - (grant!.lent - lending().first.lent) - 1e-3);
  });

  test.each([
    ['what it owes', { owed: { units: 1e300, heard: 0 } }],
    ['what it has in hand', { held: 1e300 }],
    ['what it returns', { returned: { units: 1e300, heard: 0 } }],
    ['its demand', { unitsPerSecond: 1e300 }],
    ['its dearest request', { largestCost: 1e300 }],
    ['its lease', { number: 1e9, lease: { unitsPerMs: 1e300, capacity: 1e300, endsInMs: 1e300 } }],
    ['what it has lent on', { number: 1, lentOn: { unitsPerMs: 1e300, capacity: 1e300, endsInMs: 1e300 } }],
  ])(
    'that tells far too much of %s leaves a sound counter, of which never more than all is lent',
    (_, parts) => {
      const { realm, say } = lending();
      say(reportOf(parts));
      sound(realm);
      // One quota of debt is the most that a counter can have.
      expect(realm.rootLevel()).toBeGreaterThanOrEqual(-1_000);
      expect(realm.rootLevel()).toBeLessThanOrEqual(1_000);
      realm.pass(10 * SECOND_MS);
      expect(realm.lent()).toMatchObject({ unitsPerMs: 0, capacity: 0 });
    },
  );

  test('that has lent on more than it was lent is believed, for as long as it was lent at most', () => {
    const { realm, say } = lending();
    say(reportOf({ number: 1, lentOn: { unitsPerMs: 1, capacity: 1_000, endsInMs: 1e9 } }));
    expect(realm.lent().capacity).toBeGreaterThan(900);
    realm.pass(5_001);
    expect(realm.lent().capacity).toBe(0);
  });
});

describe('a report that comes again, or late', () => {
  test('is charged once, however often it comes', () => {
    const { realm, say } = lending();
    for (let time = 0; time < 5; time += 1) say(reportOf());
    const [last] = say(reportOf());
    expect(1_000 - realm.rootLevel() - last!.lent).toBeCloseTo(10, 2);
    expect(last!.owed).toBe(10);
  });

  test('with a smaller sum, takes nothing back', () => {
    const { say } = lending();
    say(reportOf({ owed: { units: 30, heard: 0 } }));
    expect(say(reportOf({ owed: { units: 20, heard: 0 } }))[0]!.owed).toBe(30);
  });

  test('to a root that knows nothing of its epoch, charges what was not heard before', () => {
    const { realm, say, first } = lending();
    const before = realm.rootLevel();
    const [grant] = say(
      reportOf({
        epoch: 8,
        owed: { units: 30, heard: 20 },
        returned: { units: 9, heard: 9 },
        number: first.number,
      }),
    );
    expect(grant).toMatchObject({ epoch: 8, owed: 30, returned: 9 });
    expect(before - realm.rootLevel() - grant!.lent).toBeCloseTo(10, 2);
  });

  test('of an older epoch is answered with the newer one, and changes nothing', () => {
    const { realm, say } = lending();
    say(reportOf({ epoch: 9, owed: { units: 1, heard: 0 } }));
    const before = [realm.rootLevel(), realm.lent().capacity];
    const [told] = say(reportOf({ epoch: 8, owed: { units: 500, heard: 0 } }));
    expect(told).toMatchObject({ epoch: 9, unitsPerMs: 0, capacity: 0, lifeMs: 0 });
    expect([realm.rootLevel(), realm.lent().capacity]).toEqual(before);
  });

  test('under an older number gives nothing back of what was lent since', () => {
    const { realm, say, first } = lending();
    const [second] = say(reportOf({ number: first.number, lease: undefined, held: 0, lent: first.lent }));
    const [third] = say(reportOf({ number: second!.number, held: 0, lent: second!.lent, unitsPerSecond: 0 }));
    const before = realm.rootLevel() + third!.lent;
    const [late] = say(reportOf({ number: first.number, held: 900, isFinal: true, lent: first.lent }));
    expect(realm.rootLevel() + late!.lent).toBeLessThanOrEqual(before + 1e-3);
  });
});

describe('a middle owner whose clock was ahead, and is not any more', () => {
  test('learns of its later epoch with one answer, and owes what it has admitted meanwhile once', () => {
    const realm = new Realm(RULE);
    realm.setAhead(WEUR, 40 * DAY_MS);
    const before = realm.admitted('weur', 50);
    realm.pass(2 * SECOND_MS);
    realm.restart(WEUR, { isForgotten: true });
    const wrong = realm.said.length;
    const after = realm.admitted('weur', 20);
    expect([before, after]).toEqual([50, 20]);
    realm.pass(300);
    const epochs = realm.said.slice(wrong).map(({ call }) => call.middle![0]!.epoch);
    expect(epochs[1]).toBeGreaterThan(Math.max(epochs[0]!, realm.said[0]!.call.middle![0]!.epoch));
    realm.pass(20 * SECOND_MS);
    // What the first life was lent, and told nobody that it had not spent, counts as spent.
    const untold = realm.said[wrong - 1]!.call.middle![0]!;
    expect(1_000 - realm.rootLevel()).toBeGreaterThanOrEqual(70 - 2);
    expect(1_000 - realm.rootLevel()).toBeLessThanOrEqual(70 + untold.held + untold.lent + 1);
  });

  test('is lent to again at once', () => {
    const realm = new Realm(regionalRule());
    realm.setAhead(WEUR, 40 * DAY_MS);
    realm.flood(['weur'], 2 * SECOND_MS);
    realm.restart(WEUR, { isForgotten: true });
    realm.flood(['weur'], 300);
    expect(realm.said.at(-1)!.call.middle![0]!.number).toBeGreaterThan(0);
  });
});

describe('a region that the rules do not name any more', () => {
  test('may go on until it is at rest: what it owes is owed', () => {
    const realm = new Realm(RULE);
    const spent = realm.admitted('weur', 50) + realm.admitted('afr', 30);
    // From now on only one is asked.
    for (let second = 0; second < 10; second += 1) {
      realm.ask('weur', { cost: 0 });
      realm.pass(SECOND_MS);
    }
    expect(1_000 - realm.rootLevel()).toBeCloseTo(spent, 0);
    const name = regionName('afr');
    expect(realm.region('afr').rootCallInMs(realm.rawMs(name))).toBeUndefined();
  });
});
