/** A key too hot for one object: when its owner splits, what its slices begin with, and when it ends. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_LEASE } from '../../src/engine/lease.ts';
import type { MiddleGrant } from '../../src/engine/messages.ts';
import { SPLIT_HOLDERS, slicesFor, slicesOf } from '../../src/engine/slices.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { excessOf, LOST, type Mail, PROMPT, Realm, ROOT } from './realm.ts';
import { DAY_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const QUOTA = 6_400;

const hot = (options: Partial<WinnerOptions> = {}): Winner =>
  winner({ quota: QUOTA, windowMs: SECOND_MS, owner: ROOT, consistency: 'auto', ...options });

/** So many isolates ask an owner, each once, and would like to be lent. */
function askedBy(holders: number, { rule = hot(), name = ROOT, lease = true, cost = 0 } = {}) {
  const realm = new Realm(rule);
  let last = realm.askOwner(name, rule.counterId, { cost: 0 });
  let lentUnits = 0;
  for (let holder = 1; holder < holders; holder += 1) {
    last = realm.askOwner(name, rule.counterId, {
      cost,
      holder: `isolate ${holder}`,
      unitsPerSecond: 10,
      ...(lease && { lease: NO_LEASE }),
    });
    lentUnits += last.lease?.units ?? 0;
  }
  return { realm, last, lentUnits, again: () => realm.askOwner(name, rule.counterId, { cost: 0 }) };
}

describe('an owner', () => {
  test('splits once it is asked more often than it can answer, by more holders than it can serve, and lends to isolates no more', () => {
    const few = askedBy(SPLIT_HOLDERS);
    expect(few.last.split).toBeUndefined();
    expect(few.last.lease).toBeDefined();
    const many = askedBy(SPLIT_HOLDERS + 1);
    expect(many.last.split?.opening).toHaveLength(1);
    expect(many.last.lease).toBeUndefined();
  });

  test('tells everybody who asks from then on, and counts on for whoever has not heard', () => {
    const { again } = askedBy(SPLIT_HOLDERS + 1);
    const { split, outcome } = again();
    expect(split?.opening).toHaveLength(1);
    expect(outcome).toBe('allowed');
  });

  test('does not split while so many ask it now and then: it can answer them', () => {
    const rule = hot();
    const realm = new Realm(rule);
    for (let holder = 0; holder < 4 * SPLIT_HOLDERS; holder += 1) {
      const asking = { holder: `isolate ${holder}`, unitsPerSecond: 10, lease: NO_LEASE };
      expect(realm.askOwner(ROOT, rule.counterId, asking).split).toBeUndefined();
      realm.pass(5);
    }
  });

  test('does not split while nobody wants to be lent: of a strict rule nobody does', () => {
    expect(askedBy(3 * SPLIT_HOLDERS, { lease: false }).last.split).toBeUndefined();
  });

  test.each(['shared/7', 'region/weur/own/anne', 'slice/3/32/own/anne'])('%s never splits', (name) => {
    const { last, realm } = askedBy(3 * SPLIT_HOLDERS, { name });
    expect(last.split).toBeUndefined();
    expect(realm.counterOf(name)!.middles).toBeUndefined();
  });

  test('has nothing for a counter that cannot be lent', () => {
    const { last } = askedBy(SPLIT_HOLDERS + 1, { rule: hot({ algorithm: 'fixed_window' }) });
    expect(last.split?.opening ?? []).toEqual([]);
  });
});

describe('what slices begin with', () => {
  const splitOf = (options: Partial<WinnerOptions> = {}) => {
    const split = askedBy(SPLIT_HOLDERS + 1, { rule: hot(options) });
    const { slices, opening } = split.last.split!;
    return { ...split, slices, grant: opening[0]! };
  };

  test('is an equal part each of most of what is left', () => {
    const { grant, slices } = splitOf();
    expect(grant.share).toBe(1 / slices);
    for (const [part, whole] of [
      [grant.lent, QUOTA],
      [grant.capacity, QUOTA],
      [grant.unitsPerMs, QUOTA / 1_000],
    ] as const) {
      expect(part * slices).toBeLessThan(0.8 * whole);
      expect(part * slices).toBeGreaterThan(0.5 * whole);
    }
  });

  test('is cut out of the owner’s own bucket at once', () => {
    const { realm, grant, slices } = splitOf({ quota: QUOTA, windowMs: DAY_MS });
    expect(realm.rootLevel()).toBeLessThanOrEqual(QUOTA - slices * grant.lent + 1);
    expect(realm.lent().capacity).toBeGreaterThanOrEqual(slices * grant.capacity - 1e-6);
  });

  test('does not refill before isolates have spent what they were lent', () => {
    const { grant, realm, again } = splitOf();
    expect(grant.risesInMs).toBeGreaterThan(0);
    realm.pass(grant.risesInMs! / 2);
    expect(again().split!.opening[0]!.risesInMs).toBeCloseTo(grant.risesInMs! / 2, 6);
  });

  test('is told the same for a second, ending when it was to end; those that have not begun are lent again after that', () => {
    const { grant, realm, again } = splitOf();
    realm.pass(400);
    const later = again().split!.opening[0]!;
    expect(later).toMatchObject({ number: grant.number, lent: grant.lent });
    expect(later.lifeMs).toBeCloseTo(grant.lifeMs - 400, 6);
    realm.pass(700);
    expect(again().split!.opening[0]!.number).toBeGreaterThan(grant.number);
  });

  test('is nothing any more once all have begun', () => {
    const { realm, grant, slices, again } = splitOf();
    for (const slice of slicesOf(ROOT, slices))
      realm.askOwner(slice, grant.counterId, { lease: NO_LEASE, opening: [grant] });
    realm.pass(300);
    expect(again().split?.opening).toEqual([]);
  });
});

describe('a slice', () => {
  const RULE = hot({ windowMs: DAY_MS });
  const [SLICE] = slicesOf(ROOT, slicesFor([RULE.rule.limit!]));
  const opened = () => {
    const split = askedBy(SPLIT_HOLDERS + 1, { rule: RULE });
    const grant = split.last.split!.opening[0]!;
    const ask = (opening: readonly MiddleGrant[] | undefined, cost = 1) =>
      split.realm.askOwner(SLICE!, RULE.counterId, { cost, ...(opening && { opening }) });
    return { ...split, grant, ask };
  };

  test('admits at once from what it begins with, before it has heard from the root', () => {
    const { realm, grant, ask } = opened();
    realm.mail = () => LOST;
    let units = 0;
    for (let asked = 0; asked < 2 * grant.lent; asked += 1)
      if (ask([grant]).outcome === 'allowed') units += 1;
    expect(units).toBe(Math.floor(grant.lent + 1e-6));
  });

  test('that is told twice begins once', () => {
    const { realm, grant, ask } = opened();
    realm.mail = () => LOST;
    ask([grant]);
    const before = realm.counterOf(SLICE!)!.limit;
    ask([grant]);
    ask([{ ...grant, lent: 2 * grant.lent, number: grant.number + 1 }]);
    expect(realm.counterOf(SLICE!)!.limit).toEqual(before);
  });

  test('that is told nothing admits nothing on credit, and is lent to when the root has answered', () => {
    const { realm, ask } = opened();
    expect(ask(undefined).outcome).toBe('denied');
    realm.pass(500);
    expect(ask(undefined).outcome).toBe('allowed');
  });

  test.each([
    ['nothing', []],
    ['null', [null]],
    ['a word', ['grant']],
    ['another counter', [{ counterId: 'other', epoch: 1, lent: 100, lifeMs: 4_000 }]],
    ['no epoch', [{ counterId: RULE.counterId, lent: 100, lifeMs: 4_000 }]],
    ['half an epoch', [{ counterId: RULE.counterId, epoch: 0.5, lent: 100, lifeMs: 4_000 }]],
  ])('that is told %s begins with nothing', (_, opening) => {
    const { ask } = opened();
    expect(ask(opening as unknown as MiddleGrant[]).outcome).toBe('denied');
  });
});

describe('it ends', () => {
  test('when the owner’s counters are at rest: its slices are forgotten, and the next are lent as ever', () => {
    const { realm, again, last } = askedBy(SPLIT_HOLDERS + 1);
    const { slices, opening } = last.split!;
    const grant = opening[0]!;
    for (const slice of slicesOf(ROOT, slices).slice(0, 5))
      realm.askOwner(slice, grant.counterId, { cost: 5, opening: [grant] });
    realm.pass(SECOND_MS);
    expect(again().split).toBeDefined();
    realm.pass(60 * SECOND_MS);
    for (const slice of slicesOf(ROOT, slices)) expect(realm.restInMs(slice)).toBe(0);
    expect(realm.restInMs(ROOT)).toBe(0);
    realm.root.sweep(realm.rawMs(ROOT));
    const fresh = realm.askOwner(ROOT, grant.counterId, { lease: NO_LEASE });
    expect(fresh.split).toBeUndefined();
    expect(fresh.lease).toBeDefined();
  });
});

describe('property: isolates that move to slices, or do not', () => {
  const mail: fc.Arbitrary<Mail> = fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({
        thereMs: fc.tuple(fc.integer({ min: 1, max: 80 })),
        backMs: fc.tuple(fc.integer({ min: 1, max: 80 })),
      }),
    },
    { weight: 1, arbitrary: fc.constant(LOST) },
    { weight: 1, arbitrary: fc.constant({ thereMs: [5, 300], backMs: [5, 200] }) },
  );
  const steps = fc.array(
    fc.record({
      /** 0 asks the root, as one that has not heard; others their slice. */
      where: fc.nat({ max: 32 }),
      carries: fc.boolean(),
      requests: fc.integer({ min: 1, max: 150 }),
      thenMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 }), fc.integer({ min: 60, max: 1_200 })),
    }),
    { minLength: 10, maxLength: 60, size: 'max' },
  );

  test('the root and its slices admit together no more than the limit', () => {
    fc.assert(
      fc.property(
        steps,
        fc.array(mail, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(
          { quota: 1_000, windowMs: SECOND_MS, burst: 1_000 },
          { quota: 500, windowMs: SECOND_MS, burst: 2_000 },
        ),
        fc.nat({ max: 1_000 }),
        (script, mails, numbers, spentBefore) => {
          const rule = hot(numbers);
          const { realm, lentUnits } = askedBy(SPLIT_HOLDERS + 1, { rule });
          let sent = 0;
          realm.mail = () => {
            sent += 1;
            return mails[sent % mails.length] ?? PROMPT;
          };
          const admitted: { atMs: number; units: number }[] = [];
          const note = (units: number) => admitted.push({ atMs: realm.nowMs, units });
          // What isolates were lent before they spend, wherever they ask from then on.
          note(lentUnits);
          if (realm.askOwner(ROOT, rule.counterId, { cost: spentBefore }).outcome === 'allowed')
            note(spentBefore);
          const names = slicesOf(ROOT, slicesFor([rule.rule.limit!]));
          let opening: readonly MiddleGrant[] = [];
          for (const { where, carries, requests, thenMs } of script) {
            const slice = where === 0 ? undefined : names[where % names.length];
            for (let request = 0; request < requests; request += 1) {
              const name = slice ?? ROOT;
              const answer = realm.askOwner(
                name,
                rule.counterId,
                slice !== undefined && carries ? { opening } : {},
              );
              if (answer.outcome === 'allowed') note(1);
              opening = answer.split?.opening ?? opening;
            }
            realm.pass(thenMs);
          }
          expect(excessOf(admitted, numbers)).toBeLessThanOrEqual(1e-3);
        },
      ),
      { numRuns: 60 },
    );
  }, 60_000);
});

test('a limit is split into no more slices than it has units for, and into at most 32', () => {
  const slices = (quota: number, windowMs = SECOND_MS) => slicesFor([hot({ quota, windowMs }).rule.limit!]);
  expect([slices(10), slices(1_000), slices(3_000), slices(10_000), slices(1_000_000)]).toEqual([
    2, 4, 10, 32, 32,
  ]);
  expect(slices(600_000, 60 * SECOND_MS)).toBe(32);
});
