import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GroupResult } from '../../src/engine/asked.ts';
import type { Group } from '../../src/engine/groups.ts';
import type { MiddleGrant, Split } from '../../src/engine/messages.ts';
import { isSplittable, Slices, slicesOf, wholeOf } from '../../src/engine/slices.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const OWNER = 'own/anne';

const grant: MiddleGrant = {
  counterId: 'counter',
  epoch: 1,
  number: 1,
  lent: 10,
  unitsPerMs: 0.1,
  capacity: 10,
  lifeMs: 4_000,
  renewInMs: 0,
  isScarce: false,
  share: 1 / 32,
  owed: 0,
  returned: 0,
};

const counted = (options: Partial<WinnerOptions> = {}) =>
  winner({ quota: 1_000, windowMs: SECOND_MS, owner: OWNER, consistency: 'auto', ...options });

function groupOf(enforced: readonly Winner[] = [counted()], shadow: readonly Winner[] = []): Group {
  return { owner: { name: OWNER, shared: false }, enforced, shadow };
}

/** An isolate that has been told that the owner is split. */
function movedAt(
  holder = 'isolate',
  group = groupOf(),
  opening: readonly MiddleGrant[] = [grant],
  count = 32,
) {
  const clock = { nowMs: 5_000 };
  const slices = new Slices(holder, () => clock.nowMs);
  slices.move(group, { slices: count, opening }, clock.nowMs);
  return { slices, clock, place: () => slices.placed(group) };
}

describe('names', () => {
  test('a slice is told from its name, and its owner with it', () => {
    for (const name of [OWNER, 'own/', 'x', 'slice/3/own/anne', 'own/\n\u0000/é', 'slice/own']) {
      const slices = slicesOf(name, 32);
      expect(new Set(slices).size).toBe(32);
      for (const slice of slices) expect(wholeOf(slice)).toBe(name);
    }
  });

  test.each([
    '',
    OWNER,
    'slice',
    'slice/',
    'slice//own/anne',
    'slice/3',
    'slice/3/',
    'slice/3/32',
    'slice/3/32/',
    'slice/32/32/own/anne',
    'slice/7/7/own/anne',
    'slice/0/33/own/anne',
    'slice/99999999999999999999/32/own/anne',
    'slice/0/99999999999999999999/own/anne',
    'slice/-1/32/own/anne',
    'slice/1.5/own/anne',
    'slice/1e1/own/anne',
    'slice/ 1/own/anne',
    'slice/٣/own/anne',
    'Slice/3/own/anne',
    ' slice/3/own/anne',
    '\nslice/3/own/anne',
    'own/slice/3/own/anne',
    'region/weur/slice/3/own/anne',
  ])('%o is no slice', (name) => expect(wholeOf(name)).toBeUndefined());

  test('property: whatever the text, it is a slice only if it begins as one, and what it is cut from stands at its end', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, rest) => {
        for (const name of [text, `slice/${text}`, `slice/${text}/${rest}`, `slice/7/${text}`]) {
          const whole = wholeOf(name);
          if (whole === undefined) continue;
          expect(name.startsWith('slice/')).toBe(true);
          expect(name.endsWith(`/${whole}`)).toBe(true);
        }
      }),
    );
  });

  test('one caller’s own owner can be split, one of many shared ones cannot, wherever it is', () => {
    expect([OWNER, 'shared/7', 'region/weur/shared/7', 'own/shared/7'].map(isSplittable)).toEqual([
      true,
      false,
      false,
      true,
    ]);
  });
});

describe('an isolate', () => {
  test('asks the owner until it is told that it is split, and then a slice of it', () => {
    const group = groupOf();
    const slices = new Slices('isolate', () => 0);
    expect(slices.placed(group)).toBe(group);
    slices.move(group, { slices: 32, opening: [grant] }, 0);
    const { owner, opening, enforced } = slices.placed(group);
    expect(wholeOf(owner.name)).toBe(OWNER);
    expect(opening).toEqual([grant]);
    expect(enforced).toBe(group.enforced);
  });

  test('asks the same slice each time; of many isolates as many ask each', () => {
    const { place } = movedAt();
    expect(place().owner.name).toBe(place().owner.name);
    const times = new Map<string, number>();
    for (let isolate = 0; isolate < 6_400; isolate += 1) {
      const { name } = movedAt(`isolate ${isolate} of many`).place().owner;
      times.set(name, (times.get(name) ?? 0) + 1);
    }
    expect(times.size).toBe(32);
    expect(Math.max(...times.values())).toBeLessThan(400);
    expect(Math.min(...times.values())).toBeGreaterThan(100);
  });

  test('takes along what the slice begins with for a second', () => {
    const { place, clock } = movedAt();
    clock.nowMs += 999;
    expect(place().opening).toEqual([grant]);
    clock.nowMs += 1;
    expect(place().opening).toBeUndefined();
    expect(wholeOf(place().owner.name)).toBe(OWNER);
  });

  test('that is told nothing to take along takes nothing', () => {
    expect(movedAt('isolate', groupOf(), []).place().opening).toBeUndefined();
  });

  test('told again while it asks the slice, keeps to that one, and takes along what was told last', () => {
    const { slices, place, clock } = movedAt();
    const { name } = place().owner;
    clock.nowMs += 900;
    slices.move(groupOf(), { slices: 8, opening: [{ ...grant, number: 2 }] }, clock.nowMs);
    expect(place()).toMatchObject({ owner: { name }, opening: [grant] });
    slices.move(groupOf(), { slices: 32, opening: [{ ...grant, number: 3 }] }, clock.nowMs);
    clock.nowMs += 900;
    expect(place()).toMatchObject({ owner: { name }, opening: [{ number: 3 }] });
    slices.move(groupOf(), { slices: 32, opening: [] }, clock.nowMs);
    expect(place().opening).toEqual([{ ...grant, number: 3 }]);
    // What was so long on its way may have ended.
    slices.move(groupOf(), { slices: 32, opening: [{ ...grant, number: 4 }] }, clock.nowMs - 3_001);
    expect(place().opening).toEqual([{ ...grant, number: 3 }]);
  });

  test('that guesses that its owner has been split guesses the slice that it would be told', () => {
    const group = groupOf([counted({ quota: 10_000 })]);
    const { slices } = movedAt('isolate', group, [grant], 32);
    expect(new Slices('isolate', () => 0).guessed(group).owner).toEqual(slices.placed(group).owner);
  });

  test('sends on what the owner did not admit and cannot charge any more, and nothing else', () => {
    const told = (outcome: 'allowed' | 'denied', split?: Split): GroupResult => {
      const answer = { outcome, counters: [], ...(split && { split }) };
      return { kind: 'answered', answer, incarnation: 'a', questionId: 'q' };
    };
    const split = { slices: 32, opening: [] };
    const group = groupOf();
    const { slices } = movedAt('isolate', group);
    const placed = slices.placed(group);
    const sent: readonly GroupResult[] = [
      told('denied', split),
      { kind: 'dry', retryAfterMs: 1 },
      { kind: 'unanswered' },
    ];
    for (const result of sent) expect(slices.sentOn(group, result)).toEqual(placed);
    const settled: readonly GroupResult[] = [
      told('denied'),
      told('allowed', split),
      { kind: 'leased', takenMs: 1 },
      { kind: 'remembered', denials: [] },
      { kind: 'unanswered', late: Promise.resolve(undefined) },
    ];
    for (const result of settled) expect(slices.sentOn(group, result)).toBeUndefined();
    // Slices have the last word, and so has an owner that nobody knows to be split.
    for (const result of sent) expect(slices.sentOn(placed, result)).toBeUndefined();
    for (const result of sent) expect(new Slices('x', () => 0).sentOn(group, result)).toBeUndefined();
  });

  test('asks the owner for what it does not know to be split, and its slice for all that it does', () => {
    const { slices, place } = movedAt();
    const other = groupOf([counted({ policy: 'other' })]);
    const both = groupOf([counted(), counted({ policy: 'other' })]);
    expect([slices.placed(other), slices.placed(both)]).toEqual([other, both]);
    slices.move(both, { slices: 32, opening: [grant] }, 5_000);
    for (const group of [both, other]) expect(slices.placed(group).owner).toEqual(place().owner);
  });

  test('asks other owners as ever', () => {
    const { slices } = movedAt();
    const other = { ...groupOf(), owner: { name: 'own/bert', shared: false } };
    expect(slices.placed(other)).toBe(other);
  });

  test('goes back to the owner a minute after it last asked, and not before', () => {
    const { place, clock } = movedAt();
    for (let minute = 0; minute < 5; minute += 1) {
      clock.nowMs += MINUTE_MS;
      expect(wholeOf(place().owner.name)).toBe(OWNER);
    }
    clock.nowMs += MINUTE_MS + 1;
    expect(place().owner.name).toBe(OWNER);
    clock.nowMs += 1;
    expect(place().owner.name).toBe(OWNER);
  });
});

describe('what one object has to decide', () => {
  const never: readonly [string, readonly Winner[]][] = [
    ['a strict rule', [counted({ consistency: 'strict' })]],
    ['a strict rule among others', [counted(), counted({ policy: 'other', consistency: 'strict' })]],
    ['a fixed window', [counted({ algorithm: 'fixed_window' })]],
    ['slots', [counted({ algorithm: 'concurrency' })]],
    ['a bucket that is empty within a tenth of a second', [counted({ burst: 20 })]],
    ['a sliding log beside a bucket', [counted(), counted({ policy: 'other', algorithm: 'sliding_log' })]],
  ];

  test.each(never)('%s never moves, whatever its owner says', (_, enforced) => {
    const group = groupOf(enforced);
    expect(movedAt('isolate', group).place()).toBe(group);
  });

  test.each(never)('%s stays with the owner after others of it have moved', (_, enforced) => {
    const { slices } = movedAt();
    const group = groupOf(enforced);
    expect(slices.placed(group)).toBe(group);
  });

  test('a shadow rule moves along, whatever it is', () => {
    const group = groupOf([counted()], [counted({ shadow: true, consistency: 'strict' })]);
    expect(wholeOf(movedAt('isolate', group).place().owner.name)).toBe(OWNER);
  });
});
