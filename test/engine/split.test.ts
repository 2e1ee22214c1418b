/** A key too hot for one object: when its owner splits, what its slices begin with, and when it ends. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { NO_LEASE } from '../../src/engine/lease.ts';
import type { MiddleGrant, Question } from '../../src/engine/messages.ts';
import { SPLIT_HOLDERS, slicesFor, slicesOf } from '../../src/engine/slices.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { excessOf, LOST, type Mail, PROMPT, Realm, ROOT, regionalRule } from './realm.ts';
import { DAY_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const QUOTA = 6_400;

const hot = (options: Partial<WinnerOptions> = {}): Winner =>
  winner({ quota: QUOTA, windowMs: SECOND_MS, owner: ROOT, consistency: 'auto', ...options });

/** So many isolates ask an owner, each once, and would like to be lent. */
function askedBy(holders: number, { rule = hot(), name = ROOT, isMovable = true, cost = 0 } = {}) {
  const realm = new Realm(rule);
  let last = realm.askOwner(name, rule.counterId, { cost: 0, isMovable });
  let lentUnits = 0;
  for (let holder = 1; holder < holders; holder += 1) {
    last = realm.askOwner(name, rule.counterId, {
      cost,
      holder: `isolate ${holder}`,
      unitsPerSecond: 10,
      lease: NO_LEASE,
      isMovable,
    });
    lentUnits += last.lease?.units ?? 0;
  }
  return {
    realm,
    last,
    lentUnits,
    again: () => realm.askOwner(name, rule.counterId, { cost: 0, isMovable }),
  };
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

  test('tells everybody who asks from then on, also whoever wants no lease', () => {
    expect(askedBy(SPLIT_HOLDERS + 1).again().split?.opening).toHaveLength(1);
  });

  test('decides nothing that a slice can, and charges nothing for it', () => {
    const { realm } = askedBy(SPLIT_HOLDERS + 1, { rule: hot({ windowMs: DAY_MS }) });
    const before = realm.rootLevel();
    const ask = (isMovable: boolean) => realm.askOwner(ROOT, hot().counterId, { isMovable });
    expect(ask(true)).toMatchObject({ outcome: 'denied', split: { opening: [{}] } });
    expect(realm.rootLevel()).toBeCloseTo(before, 1);
    expect(ask(false)).toMatchObject({ outcome: 'allowed' });
    expect(ask(false).split).toBeUndefined();
    expect(realm.rootLevel()).toBeCloseTo(before - 2, 1);
  });

  test('decides what it is asked before it splits, whether a slice could or not', () => {
    const realm = new Realm(hot());
    expect(realm.askOwner(ROOT, hot().counterId, { isMovable: true }).outcome).toBe('allowed');
  });

  test('keeps something for whoever cannot ask a slice, however often it is asked what slices begin with', () => {
    const { realm, again } = askedBy(SPLIT_HOLDERS + 1, { rule: hot({ windowMs: DAY_MS }) });
    for (let time = 0; time < 50; time += 1) {
      realm.pass(50);
      again();
    }
    expect(realm.rootLevel()).toBeGreaterThan(0.04 * QUOTA);
  });

  test('does not split while so many ask it now and then: it can answer them', () => {
    const rule = hot();
    const realm = new Realm(rule);
    for (let holder = 0; holder < 4 * SPLIT_HOLDERS; holder += 1) {
      const asking = { holder: `isolate ${holder}`, unitsPerSecond: 10, lease: NO_LEASE, isMovable: true };
      expect(realm.askOwner(ROOT, rule.counterId, asking).split).toBeUndefined();
      realm.pass(5);
    }
  });

  test('does not split for what slices cannot be asked, and lends none of it to any', () => {
    const { last, realm } = askedBy(3 * SPLIT_HOLDERS, { isMovable: false });
    expect(last.split).toBeUndefined();
    expect(realm.counterOf(ROOT)!.middles).toBeUndefined();
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

describe('an owner that has been split', () => {
  const A = hot({ quota: 9_600 }).rule.limit!;
  const B = hot({ quota: 1_000, windowMs: DAY_MS }).rule.limit!;

  /** Counters that some requests ask about together, and others alone. */
  function twoCounters(stored = false) {
    const realm = new Realm(hot());
    let questions = 0;
    const ask = (
      name: string,
      ids: readonly ('A' | 'B')[],
      { cost = 0, holder = 'isolate', ...riders }: Partial<Question> & { holder?: string } = {},
    ) => {
      questions += 1;
      const counters = ids.map((id) => ({ id, limit: { A, B }[id], shadow: false, unitsPerSecond: 1 }));
      const question = { id: `question ${questions}`, cost, counters, isMovable: true, ...riders };
      return realm.tell(name, { holder, question }).answer!;
    };
    for (let holder = 0; holder <= SPLIT_HOLDERS; holder += 1)
      ask(ROOT, ['B'], { holder: `isolate ${holder}` });
    if (stored) realm.restart(ROOT);
    return { realm, ask };
  }

  test.each([false, true])(
    'has the same slices for all its counters, so what they begin with is cut out once; restarted: %s',
    (stored) => {
      const { realm, ask } = twoCounters(stored);
      const openings = [ask(ROOT, ['B']).split!];
      realm.pass(60);
      openings.push(ask(ROOT, ['A', 'B']).split!);
      expect(openings.map(({ slices }) => slices)).toEqual([2, 2]);
      realm.mail = () => LOST;
      let admitted = 0;
      for (const { slices, opening } of openings)
        for (const name of slicesOf(ROOT, slices))
          while (ask(name, ['B'], { cost: 1, opening }).outcome === 'allowed') admitted += 1;
      expect(admitted).toBeLessThanOrEqual(B.quota);
      // What was told in an earlier life is out there.
      if (!stored) expect(admitted).toBeGreaterThan(0.9 * B.quota);
    },
  );

  test('has stored what its slices begin with, whether anybody has asked for a lease or not', () => {
    const realm = new Realm(hot({ windowMs: DAY_MS }));
    const { counterId } = realm.rule;
    for (let holder = 0; holder <= SPLIT_HOLDERS; holder += 1)
      realm.askOwner(ROOT, counterId, { cost: 0, holder: `isolate ${holder}`, isMovable: true });
    const before = realm.rootLevel();
    realm.restart(ROOT);
    expect(realm.rootLevel()).toBeCloseTo(before, 0);
    expect(realm.counterOf(ROOT)!.middles).toBeDefined();
  });

  test('lends its slices no more room than it has, whoever moves late and whoever has more than a part by then', () => {
    const rule = hot({ quota: 3_000 });
    const { realm, again, last } = askedBy(140, { rule });
    const names = slicesOf(ROOT, last.split!.slices);
    let opening = last.split!.opening;
    for (let time = 0; time < 130; time += 1) {
      opening = again().split?.opening ?? opening;
      for (const name of names.slice(0, 5))
        for (let request = 0; request < 6; request += 1)
          realm.askOwner(name, rule.counterId, { opening, unitsPerSecond: 600 });
      realm.pass(10);
    }
    for (const name of names.slice(5)) realm.askOwner(name, rule.counterId, { opening });
    realm.pass(100);
    expect(realm.lent().capacity).toBeLessThanOrEqual(3_000 + 1e-6);
  });
});

describe('what slices begin with', () => {
  const splitOf = (options: Partial<WinnerOptions> = {}) => {
    const split = askedBy(SPLIT_HOLDERS + 1, { rule: hot(options) });
    const { slices, opening } = split.last.split!;
    return { ...split, slices, grant: opening[0]! };
  };

  test('is an equal part each of nearly all that isolates are not lent', () => {
    const { grant, slices, lentUnits, realm } = splitOf();
    expect(grant.share).toBe(1 / slices);
    const { unitsPerMs, capacity } = realm.lent();
    for (const [lent, whole] of [
      [unitsPerMs, QUOTA / 1_000],
      [capacity, QUOTA],
      [grant.lent * slices + lentUnits, QUOTA],
    ] as const) {
      expect(lent).toBeLessThan(1.001 * whole);
      expect(lent).toBeGreaterThan(0.9 * whole);
    }
    expect(grant.capacity * slices + lentUnits).toBeLessThan(0.951 * QUOTA);
    expect(grant.capacity * slices).toBeGreaterThan(0.5 * QUOTA);
  });

  test('is cut out of the owner’s own bucket at once', () => {
    const { realm, grant, slices } = splitOf({ quota: QUOTA, windowMs: DAY_MS });
    expect(realm.rootLevel()).toBeLessThanOrEqual(QUOTA - slices * grant.lent + 1);
    expect(realm.lent().capacity).toBeGreaterThanOrEqual(slices * grant.capacity - 1e-6);
  });

  test('grows as the leases of isolates end, and never shrinks', () => {
    const { realm, again, slices, grant: first } = splitOf();
    let before = first;
    for (let time = 0; time < 30; time += 1) {
      realm.pass(50);
      const grant = again().split!.opening[0]!;
      expect(grant.epoch).toBe(first.epoch);
      expect(grant.number).toBeGreaterThan(before.number);
      for (const field of ['lent', 'unitsPerMs', 'capacity'] as const)
        expect(grant[field]).toBeGreaterThanOrEqual(before[field] - 1e-9);
      before = grant;
    }
    expect(first.unitsPerMs * slices).toBeLessThan(0.1 * (QUOTA / 1_000));
    expect(before.unitsPerMs * slices).toBeCloseTo(0.95 * (QUOTA / 1_000), 6);
    expect(before.capacity * slices).toBeCloseTo(0.95 * QUOTA, 3);
  });

  test('is told the same for a moment, ending when it was to end', () => {
    const { grant, realm, again } = splitOf();
    realm.pass(40);
    const later = again().split!.opening[0]!;
    expect(later).toMatchObject({ number: grant.number, lent: grant.lent });
    expect(later.lifeMs).toBeCloseTo(grant.lifeMs - 40, 6);
  });

  test('is not for those that the root has heard of: they are lent to by what they are answered', () => {
    const { realm, grant, slices, again } = splitOf({ windowMs: DAY_MS });
    const [slice] = slicesOf(ROOT, slices);
    realm.askOwner(slice!, grant.counterId, { lease: NO_LEASE, opening: [grant] });
    realm.pass(500);
    const later = again().split!.opening[0]!;
    expect(later.notFor).toEqual([0]);
    realm.mail = () => LOST;
    const before = realm.counterOf(slice!)!.limit;
    const more = { ...later, number: later.number + 1_000, lent: later.lent + 100 };
    realm.askOwner(slice!, grant.counterId, { cost: 0, opening: [more] });
    expect(realm.counterOf(slice!)!.limit).toEqual(before);
    realm.askOwner(slicesOf(ROOT, slices)[1]!, grant.counterId, { cost: 0, opening: [more] });
    expect(realm.counterOf(slicesOf(ROOT, slices)[1]!)!.limit.burst).toBeGreaterThan(0);
  });

  test('is nothing any more once all have begun', () => {
    const { realm, grant, slices, again } = splitOf();
    for (const slice of slicesOf(ROOT, slices))
      realm.askOwner(slice, grant.counterId, { lease: NO_LEASE, opening: [grant] });
    realm.pass(400);
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

  test('that is told twice begins once, and is told more gets the difference', () => {
    const { realm, grant, ask } = opened();
    realm.mail = () => LOST;
    const admitted = () => {
      let units = 0;
      while (ask([grant]).outcome === 'allowed') units += 1;
      return units;
    };
    expect(admitted()).toBe(Math.floor(grant.lent + 1e-6));
    ask([{ ...grant, lent: grant.lent + 30, number: grant.number + 1 }], 0);
    ask([{ ...grant, lent: grant.lent + 10, number: grant.number + 2 }], 0);
    expect(admitted()).toBe(30);
  });

  test('that was lent to in an earlier life begins with nothing else', () => {
    const { realm, grant, ask } = opened();
    realm.mail = () => LOST;
    for (let asked = 0; asked < 20; asked += 1) ask([grant]);
    realm.restart(SLICE!);
    ask([grant], 0);
    ask([{ ...grant, epoch: grant.epoch + 1_000, number: grant.number + 1 }], 0);
    let units = 20;
    while (ask([grant]).outcome === 'allowed') units += 1;
    expect(units).toBeLessThanOrEqual(grant.lent);
  });

  test('says that it has begun once it has something of every counter that it is knocked for', () => {
    const { realm, grant, ask } = opened();
    realm.mail = () => LOST;
    const isOpen = (...knock: string[]) => realm.tell(SLICE!, { knock }).isOpen;
    expect(isOpen(grant.counterId)).toBe(false);
    ask(undefined, 0);
    expect(isOpen(grant.counterId)).toBe(false);
    ask([grant], 0);
    expect(isOpen(grant.counterId)).toBe(true);
    expect(isOpen(grant.counterId, 'another')).toBe(false);
    expect(realm.tell(ROOT, { knock: [grant.counterId] }).isOpen).toBe(false);
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
    const fresh = realm.askOwner(ROOT, grant.counterId, { lease: NO_LEASE, isMovable: true });
    expect(fresh.split).toBeUndefined();
    expect(fresh.lease).toBeDefined();
  });
});

describe('slices that come back after a pause', () => {
  const names = slicesOf(ROOT, slicesFor([hot().rule.limit!]));
  const ask = (realm: Realm, slice: string) => realm.askOwner(slice, hot().counterId, {});

  function admitted(realm: Realm, slice: string): number {
    let units = 0;
    while (ask(realm, slice).outcome === 'allowed') units += 1;
    return units;
  }

  test.each([4, 15, 3_600])(
    'of %i s have about an equal part each, once the owner has heard of them',
    (seconds) => {
      const { realm } = askedBy(SPLIT_HOLDERS + 1);
      for (const name of names) ask(realm, name);
      realm.pass(seconds * SECOND_MS);
      for (const name of names) expect(ask(realm, name)).toMatchObject({ isUnready: true });
      realm.pass(100);
      for (const name of names) {
        expect(admitted(realm, name)).toBeGreaterThan((0.75 * QUOTA) / names.length);
        expect(ask(realm, name).isUnready).toBeUndefined();
      }
    },
  );

  test('are not ready for as long as the owner does not answer, up to a second', () => {
    const { realm } = askedBy(SPLIT_HOLDERS + 1);
    const name = names[0]!;
    ask(realm, name);
    realm.pass(4 * SECOND_MS);
    realm.mail = () => LOST;
    expect(ask(realm, name).isUnready).toBe(true);
    realm.pass(990);
    expect(ask(realm, name).isUnready).toBe(true);
    realm.pass(10);
    expect(ask(realm, name).isUnready).toBeUndefined();
  });
});

test('what isolates bring says nothing of when the owner lends next: a lease ends no later than the owner counts on', () => {
  const { realm, last } = askedBy(SPLIT_HOLDERS + 1);
  const name = slicesOf(ROOT, slicesFor([hot().rule.limit!]))[0]!;
  const askSlice = (opening: readonly MiddleGrant[]) => realm.askOwner(name, hot().counterId, { opening });
  askSlice(last.split!.opening);
  // The root hears the slice's first word soon and answers, which takes long; meanwhile an isolate brings what the root said before.
  realm.mail = () => ({ thereMs: [100], backMs: [900] });
  while (realm.said.length === 0) realm.pass(5);
  realm.pass(95);
  const { opening } = realm.askOwner(ROOT, hot().counterId, { isMovable: true, cost: 0 }).split!;
  realm.pass(10);
  const madeAtMs = realm.nowMs - 5;
  realm.pass(880);
  askSlice(opening);
  realm.pass(20);
  const { lease } = realm.counterOf(name)!.upstream!.stored();
  expect(lease.endsAtMs - realm.rawMs(name)).toBeLessThanOrEqual(madeAtMs + 5_000 - realm.nowMs);
});

test('the owner of a region that has nothing just now cannot know when it will: its denial is the last word', () => {
  const denied = new Realm(regionalRule({ startCredit: 0 })).ask('weur');
  expect([denied.outcome, denied.isUnready]).toEqual(['denied', undefined]);
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
      /** So many answers ago the root told what is carried; 0 for nothing. */
      carries: fc.oneof(fc.constantFrom(0, 1), fc.nat({ max: 300 })),
      restarts: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.boolean()),
      requests: fc.integer({ min: 1, max: 150 }),
      thenMs: fc.oneof(
        fc.constant(0),
        fc.integer({ min: 0, max: 60 }),
        fc.integer({ min: 60, max: 1_200 }),
        fc.integer({ min: 1_900, max: 16_000 }),
      ),
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
          const openings: (readonly MiddleGrant[])[] = [[]];
          for (const { where, carries, restarts, requests, thenMs } of script) {
            const slice = where === 0 ? undefined : names[where % names.length];
            for (let request = 0; request < requests; request += 1) {
              const name = slice ?? ROOT;
              // What is carried may be what was told some time ago.
              const opening = openings.at(-Math.min(carries, openings.length)) ?? [];
              const riders = slice !== undefined && carries > 0 ? { opening } : { isMovable: carries > 2 };
              const answer = realm.askOwner(name, rule.counterId, riders);
              if (answer.outcome === 'allowed') note(1);
              if (answer.split !== undefined) openings.push(answer.split.opening);
            }
            if (restarts && slice !== undefined) realm.restart(slice);
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
