/** Slow limits, where a unit that is counted twice or lost is not made up for by the rate: every unit that was spent is charged, once. */
import { describe, expect, test } from 'vitest';
import { Random } from '../../scripts/sim/random.ts';
import type { MiddleGrant, OwnerReply } from '../../src/engine/messages.ts';
import { LOST, PROMPT, Realm, regionalRule, regionName } from './realm.ts';
import { DAY_MS, SECOND_MS } from './rules.ts';

const YEAR = 365 * DAY_MS;

test('a final report that comes twice gives what was in hand back once', () => {
  const realm = new Realm(regionalRule({ quota: 1_000, windowMs: YEAR, startCredit: 0.05 }));
  const spent = realm.flood(['weur'], 2 * SECOND_MS);
  realm.mail = ({ call }) => (call.middle![0]!.isFinal ? { thereMs: [40, 300], backMs: [40] } : PROMPT);
  realm.pass(20 * SECOND_MS);
  expect([spent, 1_000 - realm.rootLevel()]).toEqual([spent, expect.closeTo(spent, 0)]);
});

test('two regions that ask now and then, in pieces of all sizes, lose no unit', () => {
  const rnd = new Random(8);
  const realm = new Realm(regionalRule({ quota: 5_000, windowMs: YEAR, startCredit: 0.05 }));
  let spent = 0;
  for (let step = 0; step < 20; step += 1) {
    const region = (['weur', 'enam'] as const)[rnd.below(2)]!;
    const times = 1 + rnd.below(60);
    const everyMs = rnd.oneOf([0, 1, 5, 20]);
    const cost = rnd.oneOf([1, 1, 1, 2, 5]);
    for (let sent = 0; sent < times; sent += 1) {
      spent += realm.admitted(region, 1, cost);
      realm.pass(everyMs);
    }
  }
  realm.pass(30 * SECOND_MS);
  expect(Math.round(5_000 - realm.rootLevel())).toBe(spent);
});

test('what was in hand when a region was cut off is charged as lent, and not as owed besides', () => {
  const realm = new Realm(regionalRule({ quota: 10_000, windowMs: YEAR, startCredit: 0.01 }));
  let spent = realm.flood(['weur'], 2 * SECOND_MS);
  realm.mail = () => LOST;
  spent += realm.flood(['weur'], 10 * SECOND_MS);
  realm.mail = () => PROMPT;
  spent += realm.flood(['weur'], SECOND_MS);
  realm.pass(20 * SECOND_MS);
  expect(Math.round(10_000 - realm.rootLevel())).toBe(spent);
});

describe('grants that are garbage change nothing for good', () => {
  const FIELDS = ['lent', 'unitsPerMs', 'capacity', 'owed', 'renewInMs'] as const;
  const GARBAGE = [Number.NaN, -5, Number.POSITIVE_INFINITY, 1e300, '5', null, undefined];
  test.each(FIELDS.flatMap((field) => GARBAGE.map((value) => [field, value] as const)))(
    '%s: %o',
    (field, value) => {
      const realm = new Realm(regionalRule({ startCredit: 0.25 }));
      const spoilt = (reply: OwnerReply) =>
        ({
          ...reply,
          middle: reply.middle?.map((grant: MiddleGrant) => ({ ...grant, [field]: value })),
        }) as OwnerReply;
      realm.heard = spoilt;
      const badly = realm.flood(['weur'], 5 * SECOND_MS);
      const { limit } = realm.counterOf(regionName('weur'))!;
      realm.heard = (reply) => reply;
      realm.flood(['weur'], 5 * SECOND_MS);
      const well = realm.flood(['weur'], 5 * SECOND_MS);
      expect(limit.quota).not.toBeNaN();
      expect(limit.burst).not.toBeNaN();
      expect(badly).toBeLessThanOrEqual(100 + 5 * 100 + 25 + 5 * 25);
      expect(well).toBeGreaterThan(400);
      expect(well).toBeLessThanOrEqual(5 * 100 + 100 + 5);
      expect(realm.rootLevel()).not.toBeNaN();
    },
  );
});
