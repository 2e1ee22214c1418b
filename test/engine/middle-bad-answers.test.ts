/** What a root should not answer, and one that does not answer at all: a middle owner lives on its credit meanwhile. */
import { describe, expect, test } from 'vitest';
import type { MiddleGrant, OwnerReply } from '../../src/engine/messages.ts';
import { LOST, PROMPT, Realm, regionalRule, regionName } from './realm.ts';
import { SECOND_MS } from './rules.ts';

const WEUR = regionName('weur');

/** A region whose root answers so for five seconds, and then as it should. */
function toldBadly(spoil: (reply: OwnerReply) => unknown) {
  const realm = new Realm(regionalRule({ startCredit: 0.25 }));
  realm.heard = (reply) => spoil(reply) as OwnerReply;
  const badly = realm.flood(['weur'], 5 * SECOND_MS);
  const asked = realm.said.length;
  const { limit } = realm.counterOf(WEUR)!;
  realm.heard = (reply) => reply;
  realm.flood(['weur'], 5 * SECOND_MS);
  return { realm, badly, asked, limit, well: realm.flood(['weur'], 5 * SECOND_MS) };
}

const grantsOf = (change: (grant: MiddleGrant) => unknown) => (reply: OwnerReply) => ({
  ...reply,
  middle: reply.middle?.map(change),
});

describe('an answer to a middle owner', () => {
  const nothing: readonly [string, (reply: OwnerReply) => unknown][] = [
    ['nothing', () => undefined],
    ['null', () => null],
    ['a word', () => 'reply'],
    ['another format', (reply) => ({ ...reply, format: 9 })],
    ['no grants', (reply) => ({ ...reply, middle: undefined })],
    ['grants that are no list', (reply) => ({ ...reply, middle: { length: 1 } })],
    ['null for a grant', grantsOf(() => null)],
    ['a word for a grant', grantsOf(() => 'grant')],
    ['an empty grant', grantsOf(() => ({}))],
    ['a grant of another counter', grantsOf((grant) => ({ ...grant, counterId: 'other' }))],
    ['a grant of an older epoch', grantsOf((grant) => ({ ...grant, epoch: grant.epoch - 1 }))],
    ['a grant of no epoch', grantsOf((grant) => ({ ...grant, epoch: undefined }))],
    ['a grant of NaN', grantsOf((grant) => ({ ...grant, epoch: Number.NaN }))],
  ];

  test.each(nothing)(
    'of %s lends nothing: the region lives on its credit until it is told well',
    (_, spoil) => {
      const { badly, well, asked } = toldBadly(spoil);
      expect(badly).toBeLessThanOrEqual(25 + 5 * 25 + 1);
      expect(badly).toBeGreaterThanOrEqual(25 + 5 * 25 - 2);
      expect(asked).toBeLessThanOrEqual(6);
      expect(well).toBeGreaterThan(450);
    },
  );

  const FIELDS = ['lifeMs', 'share', 'returned', 'number'] as const;
  const GARBAGE = [Number.NaN, -5, Number.POSITIVE_INFINITY, 1e300, '5', null, undefined];

  test.each(FIELDS.flatMap((field) => GARBAGE.map((value) => [field, value] as const)))(
    'whose %s is %o admits no more than the whole limit and a credit, and is overcome',
    (field, value) => {
      const { realm, badly, well, asked, limit } = toldBadly(
        grantsOf((grant) => ({ ...grant, [field]: value })),
      );
      expect(limit.quota).not.toBeNaN();
      expect(limit.burst).not.toBeNaN();
      expect(badly).toBeLessThanOrEqual(100 + 5 * 100 + 25 + 5 * 25);
      // Not much more than while all is well, when it is asked for more than there is: twice a second.
      expect(asked).toBeLessThan(5 * 20);
      expect(well).toBeGreaterThan(400);
      expect(well).toBeLessThanOrEqual(5 * 100 + 100 + 5);
      expect(realm.rootLevel()).not.toBeNaN();
    },
  );
});

test('an answer to a late copy of a report brings a newer grant, which ends no sooner than the one before', () => {
  const realm = new Realm(regionalRule({ startCredit: 0.25 }));
  realm.mail = () => (realm.said.length === 1 ? { thereMs: [40, 4_000], backMs: [40] } : PROMPT);
  realm.flood(['weur'], 3_900);
  realm.mail = () => LOST;
  realm.flood(['weur'], 2 * SECOND_MS);
  const [report] = realm.said.at(-1)!.call.middle!;
  const [before] = realm.said.findLast(({ atMs }) => atMs < 3_900)!.call.middle!;
  expect(report!.number).toBeGreaterThan(before!.number);
  // The root lends for five seconds at a time, and has answered a report of the fourth second.
  expect(realm.said.at(-1)!.atMs + (report!.lease?.endsInMs ?? 0)).toBeGreaterThan(8 * SECOND_MS);
});

describe('a root that never answers', () => {
  test('is asked once a second at most, and the region admits its credit and no more', () => {
    const realm = new Realm(regionalRule({ startCredit: 0.25 }));
    realm.mail = () => LOST;
    const units = realm.flood(['weur'], 20 * SECOND_MS);
    // A quarter of 100 at once, and a quarter of 100 a second.
    expect(units).toBeLessThanOrEqual(25 + 20 * 25 + 1);
    expect(units).toBeGreaterThanOrEqual(25 + 20 * 25 - 2);
    const times = realm.said.map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThan(15);
    for (const [at, time] of times.slice(1).entries())
      expect(time - times[at]!).toBeGreaterThanOrEqual(SECOND_MS);
  });

  test('is asked once a second at most, however many counters there is something to tell of', () => {
    const realm = new Realm(regionalRule({ startCredit: 0.25 }));
    realm.mail = () => LOST;
    for (let asked = 0; asked < 300; asked += 1) {
      realm.askOwner(WEUR, `region/weur/counter ${asked % 30}`, { cost: 1 });
      realm.pass(30);
    }
    const times = realm.said.map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThan(5);
    for (const [at, time] of times.slice(1).entries())
      expect(time - times[at]!).toBeGreaterThanOrEqual(SECOND_MS);
  });

  test('is asked no more once nobody asks the region for anything, and what was owed has come back', () => {
    const realm = new Realm(regionalRule({ startCredit: 0.25 }));
    realm.mail = () => LOST;
    realm.flood(['weur'], SECOND_MS);
    realm.pass(30 * SECOND_MS);
    const asked = realm.said.length;
    realm.pass(30 * SECOND_MS);
    expect(realm.said.length).toBe(asked);
  });
});
