import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Excess, Ideal, IdealCounter, SlotsExcess, WindowExcess } from '../../scripts/sim/reference.ts';
import { limitOf, SECOND_MS, winner } from '../../scripts/sim/rules.ts';

const perSecond = (quota: number, burst = quota) => limitOf({ quota, burst, windowMs: SECOND_MS });

/** How many of so many requests of one unit are admitted at once. */
function admitted(counter: IdealCounter, limit: ReturnType<typeof limitOf>, times: number, atMs: number) {
  let count = 0;
  for (let sent = 0; sent < times; sent += 1) {
    if (!counter.fits(limit, 1, atMs)) continue;
    counter.take(1);
    count += 1;
  }
  return count;
}

describe('an ideal counter', () => {
  test('is a bucket that holds the burst and fills at the rate', () => {
    const limit = perSecond(10, 5);
    const counter = new IdealCounter(limit);
    expect([0, 99, 100, 350, 10_000].map((atMs) => admitted(counter, limit, 9, atMs))).toEqual([
      5, 0, 1, 2, 5,
    ]);
  });

  test('or a window with edges on the clock', () => {
    const limit = limitOf({ quota: 5, windowMs: SECOND_MS, algorithm: 'fixed_window' });
    const counter = new IdealCounter(limit);
    expect([900, 999, 1_000, 1_500].map((atMs) => admitted(counter, limit, 4, atMs))).toEqual([4, 1, 4, 1]);
  });

  test('keeps what was used when its numbers change', () => {
    const [ten, twenty] = [perSecond(10), perSecond(20)];
    const counter = new IdealCounter(ten);
    expect([admitted(counter, ten, 10, 0), admitted(counter, twenty, 30, 0)]).toEqual([10, 10]);
    expect(admitted(counter, ten, 30, 0)).toBe(0);
  });

  test('charges none when another denies', () => {
    const ideal = new Ideal();
    const [wide, narrow] = [10, 1].map((quota) => winner({ quota, policy: `of ${quota}` }));
    expect([0, 1, 2].map(() => ideal.admits([wide!, narrow!], { cost: 1, atMs: 0, lastsMs: 0 }))).toEqual([
      true,
      false,
      false,
    ]);
    expect(ideal.admits([wide!], { cost: 9, atMs: 0, lastsMs: 0 })).toBe(true);
    expect(ideal.admits([wide!], { cost: 1, atMs: 0, lastsMs: 0 })).toBe(false);
  });
});

describe('requests in progress', () => {
  const slots = winner({ quota: 2, algorithm: 'concurrency' });

  test('are as many at once as there are slots, each for as long as it lasts', () => {
    const ideal = new Ideal();
    const admits = (atMs: number, lastsMs: number) => ideal.admits([slots], { cost: 5, atMs, lastsMs });
    expect([admits(0, 100), admits(10, 20), admits(20, 5), admits(30, 10), admits(35, 1)]).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
  });

  test('are too many from one above the limit on, also if they have ended since', () => {
    const excess = new SlotsExcess(slots.rule.limit!);
    for (let count = 0; count < 3; count += 1) excess.admitted();
    excess.ended();
    expect(excess.worst).toBe(1);
    excess.admitted();
    expect(excess.worst).toBe(1);
  });
});

describe('excess', () => {
  const admission = fc.record({ units: fc.integer({ min: 1, max: 5 }), afterMs: fc.nat({ max: 400 }) });

  test('property: it is the largest over all intervals', () => {
    fc.assert(
      fc.property(fc.array(admission, { maxLength: 30 }), fc.nat({ max: 100 }), (admissions, slackMs) => {
        const envelope = { burstUnits: 6, unitsPerSecond: 10 };
        const excess = new Excess(envelope, slackMs);
        const all: { units: number; atMs: number }[] = [];
        let atMs = 0;
        let largest = 0;
        for (const { units, afterMs } of admissions) {
          atMs += afterMs;
          all.push({ units, atMs });
          excess.admitted(units, atMs);
          for (const from of all) {
            const inside = all.filter((each) => each.atMs >= from.atMs);
            const sum = inside.reduce((total, each) => total + each.units, 0);
            const may =
              envelope.burstUnits + (envelope.unitsPerSecond * (atMs - from.atMs + slackMs)) / 1_000;
            // Of requests at one instant, only the whole of them is an interval.
            largest = Math.max(largest, sum - may);
          }
        }
        expect(excess.worst).toBeCloseTo(largest, 6);
      }),
    );
  });

  test('starts anew under another envelope', () => {
    const excess = new Excess({ burstUnits: 10, unitsPerSecond: 10 }, 0);
    excess.admitted(10, 0);
    excess.adopt({ burstUnits: 4, unitsPerSecond: 4 }, 0);
    excess.admitted(4, 0);
    expect(excess.worst).toBe(0);
    excess.admitted(1, 0);
    expect(excess.worst).toBe(1);
  });
});

describe('excess over a window', () => {
  const limit = limitOf({ quota: 5, windowMs: SECOND_MS, algorithm: 'fixed_window' });

  test('is what one window admitted above the quota', () => {
    const excess = new WindowExcess(limit, 0);
    for (const atMs of [100, 900, 1_000, 1_100]) excess.admitted(3, atMs);
    expect(excess.worst).toBe(1);
  });

  test('forgives a round trip at the edge, so far as the window before had room', () => {
    const excess = new WindowExcess(limit, 20);
    excess.admitted(3, 900);
    excess.admitted(2, 1_010);
    excess.admitted(5, 1_500);
    expect(excess.worst).toBe(0);
    excess.admitted(5, 2_010);
    excess.admitted(1, 2_030);
    expect(excess.worst).toBe(1);
  });

  test('forgives no more than that room', () => {
    const excess = new WindowExcess(limit, 20);
    excess.admitted(3, 900);
    for (let count = 0; count < 3; count += 1) excess.admitted(1, 1_010);
    excess.admitted(5, 1_500);
    expect(excess.worst).toBe(1);
  });
});
