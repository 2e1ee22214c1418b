/** What a middle owner tells its root of the demand. Figures in the comments are those that the module promises. */
import { describe, expect, test } from 'vitest';
import { MiddleDemand } from '../../src/engine/middle-demand.ts';

const KNOWN = { wished: 0, isKnown: true, hasLent: false };

/** Asked for a unit each `everyMs`, up to that instant. */
function askedFor(demand: MiddleDemand, { everyMs = 10, fromMs = 0, untilMs = 3_000 } = {}): MiddleDemand {
  for (let nowMs = fromMs; nowMs < untilMs; nowMs += everyMs) demand.asked(1, 1, nowMs);
  return demand;
}

describe('what is told', () => {
  test('is what was asked for lately', () => {
    const demand = askedFor(new MiddleDemand(0));
    const told = demand.report(KNOWN, 3_000);
    expect(told).toBeGreaterThan(95);
    expect(told).toBeLessThan(110);
  });

  test('is what isolates wish for as well, before more is known than a first glance', () => {
    const demand = askedFor(new MiddleDemand(0));
    expect(demand.report({ ...KNOWN, isKnown: false, wished: 700 }, 3_000)).toBe(700);
    expect(demand.report({ ...KNOWN, wished: 700 }, 3_000)).toBeLessThan(110);
  });

  test('is what isolates wish for while units are short, and for two seconds after', () => {
    const demand = askedFor(new MiddleDemand(0));
    demand.denied(3_000);
    expect([demand.isShort(4_999), demand.isShort(5_000)]).toEqual([true, false]);
    expect(demand.report({ ...KNOWN, wished: 700 }, 3_000)).toBe(700);
  });

  test('is never less than what was asked for, whatever isolates wish for', () => {
    const demand = askedFor(new MiddleDemand(0));
    demand.denied(3_000);
    expect(demand.report({ ...KNOWN, wished: 1 }, 3_000)).toBeGreaterThan(95);
  });

  test('begins anew with each report, but for the rate', () => {
    const demand = askedFor(new MiddleDemand(0));
    expect(demand.sinceReport).toBe(300);
    demand.report(KNOWN, 3_000);
    expect(demand.sinceReport).toBe(0);
    demand.asked(4, 4, 3_010);
    expect(demand.sinceReport).toBe(4);
  });

  test('names the dearest request', () => {
    const demand = new MiddleDemand(0);
    expect(demand.largestCost).toBe(1);
    demand.asked(30, 8, 10);
    demand.asked(2, 2, 20);
    expect(demand.largestCost).toBe(8);
  });
});

describe('a pause', () => {
  test('that may be chance is none: a dozen units of what was asked for have to be missing, or two', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 100 });
    demand.report(KNOWN, 3_000);
    // Ten a second, and the last at 2.9 s.
    expect(demand.fallenInMs(false, 3_900)).toBeGreaterThan(0);
    expect(demand.fallenInMs(false, 5_500)).toBeLessThanOrEqual(0);
  });

  test('of a quarter of a second is one, however fast it was asked for', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    expect(demand.fallenInMs(false, 2_999)).toBe(250);
  });

  test('is waited for longer while isolates spend by themselves: for as long as a lease says nothing', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    expect(demand.fallenInMs(true, 2_999)).toBe(900);
  });

  test('ends when somebody asks', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    demand.asked(1, 1, 3_200);
    expect(demand.fallenInMs(false, 3_249)).toBeGreaterThan(0);
  });

  test('says nothing while units are short, since isolates then deny by themselves', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    demand.denied(2_999);
    expect(demand.fallenInMs(false, 3_500)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('a fall that is no chance', () => {
  test('counts at once: nothing of what was asked for before is told, nor what isolates wish for', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    expect(demand.report({ ...KNOWN, wished: 700, isKnown: false }, 3_400)).toBe(0);
  });

  test('is told once', () => {
    const demand = askedFor(new MiddleDemand(0), { everyMs: 1 });
    demand.report(KNOWN, 3_000);
    demand.report(KNOWN, 3_400);
    expect(demand.fallenInMs(false, 3_500)).toBe(Number.POSITIVE_INFINITY);
  });
});

describe('idle', () => {
  test('is what nobody has asked for in two seconds', () => {
    const demand = new MiddleDemand(0);
    expect(demand.isIdle(0)).toBe(true);
    demand.wanted(100);
    expect([demand.isIdle(2_099), demand.isIdle(2_100)]).toEqual([false, true]);
  });

  test('whoever asks after that is new for a second, and is measured from then on', () => {
    const demand = askedFor(new MiddleDemand(0));
    expect(demand.isNew(2_999)).toBe(false);
    demand.asked(1, 1, 60_000);
    expect([demand.isNew(60_999), demand.isNew(61_000)]).toEqual([true, false]);
    askedFor(demand, { fromMs: 60_010, untilMs: 60_200 });
    expect(demand.report(KNOWN, 60_200)).toBeGreaterThan(80);
  });
});

test('at a glance it is as fast as was told, or as has been asked since if that is faster', () => {
  const demand = askedFor(new MiddleDemand(0));
  const told = demand.report(KNOWN, 3_000);
  expect(demand.unitsPerMs(3_100)).toBeCloseTo(told / 1_000, 9);
  demand.asked(100, 1, 3_100);
  expect(demand.unitsPerMs(3_100)).toBeCloseTo(1, 9);
  expect(demand.unitsPerMs(3_200)).toBeCloseTo(0.5, 9);
});
