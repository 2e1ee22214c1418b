/** A lease in its holder's hands. */
import { describe, expect, test } from 'vitest';
import { HeldLease, type LeaseGrant, type LeaseReport } from '../../src/engine/lease.ts';

/** Of a holder that wants to keep what it has. */
const WAITS = { usualMs: 10, patienceMs: 150, unitsPerSecond: Number.POSITIVE_INFINITY };

/** Ten units, one more every 100 ms, room for twenty, for a second. */
function grant(parts: Partial<LeaseGrant> = {}): LeaseGrant {
  return {
    number: 1,
    units: 10,
    unitsPerMs: 0.01,
    capacity: 20,
    lifeMs: 1_000,
    renewInMs: 500,
    isScarce: false,
    ...parts,
  };
}

const at = (nowMs: number, sentMs = nowMs) => ({ sentMs, nowMs, delayMs: 0 });

function leaseOf(parts: Partial<LeaseGrant> = {}, arrival = at(0)): HeldLease {
  const lease = new HeldLease('life');
  lease.accept(grant(parts), arrival);
  return lease;
}

function unitsOf(returned: LeaseReport['returned']): number {
  return returned.reduce((sum, { units }) => sum + units, 0);
}

describe('spending', () => {
  test('R09 to the last unit and not beyond it', () => {
    const lease = leaseOf({ unitsPerMs: 0 });
    expect(Array.from({ length: 12 }, () => lease.take(1, 0)).filter(Boolean)).toHaveLength(10);
    expect(lease.held(0)).toBe(0);
  });

  test('a cost above what is in hand takes nothing', () => {
    const lease = leaseOf();
    expect(lease.take(11, 0)).toBe(false);
    expect(lease.held(0)).toBe(10);
    expect(lease.take(11, 100)).toBe(true);
  });

  test('a peek takes nothing, also from an empty lease', () => {
    const lease = leaseOf({ units: 0 });
    expect(lease.take(0, 0)).toBe(true);
    expect(lease.report(0, WAITS)).toMatchObject({ held: 0, spent: 0 });
  });

  test('it refills at its rate, however often one looks', () => {
    const [once, often] = [leaseOf(), leaseOf()];
    for (let nowMs = 0; nowMs < 777; nowMs += 1) often.held(nowMs);
    expect(often.held(777)).toBeCloseTo(once.held(777), 9);
    expect(once.held(777)).toBeCloseTo(17.77, 9);
  });

  test('time that stands still, or steps back, brings nothing', () => {
    const lease = leaseOf();
    expect(lease.held(500)).toBeCloseTo(15, 9);
    expect(lease.held(500)).toBeCloseTo(15, 9);
    expect(lease.held(200)).toBeCloseTo(15, 9);
    expect(lease.held(600)).toBeCloseTo(16, 9);
  });
});

describe('its end', () => {
  test('counts from when the question was sent', () => {
    const lease = leaseOf({}, at(300, 0));
    expect([lease.isOver(999), lease.isOver(1_000)]).toEqual([false, true]);
  });

  test('R11 nothing can be spent, held or returned after it, however late one comes', () => {
    const lease = leaseOf({ unitsPerMs: 1 });
    expect(lease.held(999)).toBe(20);
    for (const nowMs of [1_000, 3_600_000]) {
      expect(lease.take(1, nowMs)).toBe(false);
      expect(lease.report(nowMs, WAITS)).toMatchObject({ held: 0, returned: [] });
    }
  });

  test('a grant that comes after it starts anew: nothing of the old one is left', () => {
    const lease = leaseOf();
    lease.accept(grant({ number: 2, units: 3 }), at(5_000));
    expect(lease.held(5_000)).toBe(3);
  });

  test('what was taken before it is not given back to the next', () => {
    const lease = leaseOf();
    lease.take(4, 0);
    lease.accept(grant({ number: 2, units: 3 }), at(5_000));
    lease.giveBack(4, { takenMs: 0, nowMs: 5_000 });
    expect(lease.held(5_000)).toBe(3);
  });
});

describe('what overflows', () => {
  test('is set aside and returned once, with its age and the time on the way', () => {
    const lease = leaseOf({ units: 19 });
    expect(lease.held(300)).toBe(20);
    const { held, returned } = lease.report(300, WAITS);
    // It was full after 100 ms.
    expect([held, unitsOf(returned), returned[0]!.agoMs]).toEqual([20, expect.closeTo(2, 9), 210]);
    expect(returned.at(-1)!.agoMs).toBeLessThan(50);
    expect(lease.report(300, WAITS)).toMatchObject({ held: 20, returned: [] });
  });

  test('a grant, a give-back or a smaller capacity can make it overflow too', () => {
    const lease = leaseOf({ units: 20, unitsPerMs: 0 });
    lease.take(5, 0);
    lease.accept(grant({ number: 2, units: 7, unitsPerMs: 0 }), at(1));
    lease.giveBack(5, { takenMs: 0, nowMs: 2 });
    lease.accept(grant({ number: 3, units: 0, unitsPerMs: 0, capacity: 4 }), at(3));
    const { held, returned } = lease.report(3, WAITS);
    expect([held, unitsOf(returned)]).toEqual([4, 23]);
  });
});

describe('grants that come out of order', () => {
  test('an older one brings its units and neither its rate, nor its room, nor its life', () => {
    const lease = leaseOf({ number: 2, units: 1, unitsPerMs: 0, lifeMs: 500 });
    lease.accept(grant({ number: 1, units: 30, unitsPerMs: 5, capacity: 100, lifeMs: 9_000 }), at(1));
    const { number, held, returned } = lease.report(400, WAITS);
    expect([number, held, unitsOf(returned)]).toEqual([2, 20, 11]);
    expect(lease.isOver(500)).toBe(true);
  });

  test('an older one brings nothing when the lease is over', () => {
    const lease = leaseOf({ number: 2, lifeMs: 100 });
    lease.accept(grant({ number: 1 }), at(200));
    expect(lease.isOver(200)).toBe(true);
    expect(lease.held(200)).toBe(0);
  });

  test('the same one twice brings nothing: no units, and no longer life', () => {
    const lease = leaseOf({ lifeMs: 100 });
    const held = lease.held(50);
    lease.accept(grant(), at(50));
    expect([lease.held(50), lease.isOver(100)]).toEqual([held, true]);
  });
});

describe('what it promises', () => {
  test('with a report: not to go on for longer than it waits for an answer', () => {
    const lease = leaseOf();
    expect(lease.report(100, WAITS)).toMatchObject({ number: 1, patienceMs: 150 });
    expect([lease.isOver(249), lease.isOver(250)]).toEqual([false, true]);
  });

  test('a newer grant frees it from that', () => {
    const lease = leaseOf();
    lease.report(100, WAITS);
    lease.accept(grant({ number: 2 }), at(110, 100));
    expect([lease.isOver(1_099), lease.isOver(1_100)]).toEqual([false, true]);
  });

  test('with a report from a lease that is much too fast: to go by a tenth more than it needs, at once', () => {
    const lease = leaseOf({ units: 0, unitsPerMs: 0.01 });
    const report = lease.report(100, { ...WAITS, unitsPerSecond: 5 });
    expect(report).toMatchObject({ held: expect.closeTo(1, 9), unitsPerMs: expect.closeTo(0.0055, 9) });
    expect(lease.held(200)).toBeCloseTo(1 + 100 * 0.0055, 9);
    lease.accept(grant({ number: 2, units: 0, unitsPerMs: 0.02 }), at(200, 100));
    expect(lease.held(300)).toBeCloseTo(1.55 + 100 * 0.02, 9);
  });

  test('a lease that is a little too fast, or too slow, is kept as it is', () => {
    for (const unitsPerSecond of [7, 20]) {
      const lease = leaseOf({ units: 0, unitsPerMs: 0.01 });
      expect(lease.report(100, { ...WAITS, unitsPerSecond })).not.toHaveProperty('unitsPerMs');
      expect(lease.held(200)).toBeCloseTo(2, 9);
    }
  });

  test('a report never makes it longer', () => {
    const lease = leaseOf({ lifeMs: 120 });
    lease.report(100, WAITS);
    expect(lease.isOver(120)).toBe(true);
  });

  test('a rate that was lowered goes on while the owner counts it: until the next report', () => {
    const lease = leaseOf({ units: 0, unitsPerMs: 0.03 });
    lease.report(0, WAITS);
    lease.accept(grant({ number: 2, units: 0, unitsPerMs: 0.01 }), at(0));
    expect(lease.report(100, WAITS)).toMatchObject({ returned: [], held: expect.closeTo(3, 9) });
    expect(lease.report(200, WAITS).held).toBeCloseTo(4, 9);
  });

  test('and no longer than the promise: then the owner has the rate back', () => {
    const lease = leaseOf({ units: 0, unitsPerMs: 0.03 });
    lease.report(0, WAITS);
    lease.accept(grant({ number: 2, units: 0, unitsPerMs: 0.01 }), at(0));
    expect(lease.report(900, WAITS).held).toBeCloseTo(0.02 * WAITS.patienceMs + 0.01 * 900, 9);
  });
});

describe('surrender', () => {
  test('says what was in hand and what overflowed, and ends the lease', () => {
    const lease = leaseOf({ units: 19 });
    const { held, returned, isFinal } = lease.surrender(300, 10);
    expect([held, unitsOf(returned), isFinal]).toEqual([20, expect.closeTo(2, 9), true]);
    expect([lease.isOver(300), lease.take(1, 300), lease.held(300)]).toEqual([true, false, 0]);
    expect(lease.surrender(300, 10)).toMatchObject({ held: 0, returned: [] });
  });

  test('a grant that is still to come is taken up all the same', () => {
    const lease = leaseOf();
    lease.surrender(300, 10);
    lease.accept(grant({ number: 2, units: 3 }), at(310, 290));
    expect(lease.held(310)).toBe(3);
  });
});

describe('what shadow counters are charged', () => {
  test('is what was spent, told once', () => {
    const lease = leaseOf();
    lease.take(3, 0);
    expect([lease.report(0, WAITS).spent, lease.report(0, WAITS).spent]).toEqual([3, 0]);
  });

  test('what is given back after it was told makes the next less, never negative', () => {
    const lease = leaseOf();
    lease.take(3, 0);
    lease.report(0, WAITS);
    lease.giveBack(2, { takenMs: 0, nowMs: 1 });
    expect(lease.report(1, WAITS).spent).toBe(0);
    lease.take(5, 2);
    expect(lease.report(2, WAITS).spent).toBe(3);
  });
});

describe('when to ask again', () => {
  const wants = (lease: HeldLease, nowMs: number, unitsPerSecond = 10) =>
    lease.wantsRenewal({ unitsPerSecond, soonMs: 30 }, nowMs);

  test('when the owner said so, earlier or later by what spreads holders', () => {
    const lease = new HeldLease('life');
    lease.accept(grant(), { sentMs: 0, nowMs: 20, delayMs: -5 });
    expect([wants(lease, 514), wants(lease, 515)]).toEqual([false, true]);
  });

  test('when it is much too large, but not before it has been in hand for a moment', () => {
    const lease = leaseOf({ unitsPerMs: 0.02 }, at(20));
    expect([wants(lease, 69, 10), wants(lease, 70, 10), wants(lease, 70, 14)]).toEqual([false, true, false]);
  });

  test('in time before it ends, but not before it has been in hand for a moment', () => {
    const lease = leaseOf({ renewInMs: 2_000 });
    expect([wants(lease, 969), wants(lease, 970)]).toEqual([false, true]);
    const short = leaseOf({ lifeMs: 60, renewInMs: 2_000 });
    expect([wants(short, 49), wants(short, 50)]).toEqual([false, true]);
  });

  test('when what is in hand will not last until an answer', () => {
    const lease = leaseOf({ units: 1 });
    expect([wants(lease, 0, 40), wants(lease, 0, 50)]).toEqual([false, true]);
  });

  test('but not while all is shared out', () => {
    const lease = leaseOf({ units: 0, isScarce: true });
    expect([wants(lease, 499, 1_000), wants(lease, 500)]).toEqual([false, true]);
  });

  test('L11 at once when the rules have changed, and what is scarce under them is not known', () => {
    const lease = leaseOf({ isScarce: true });
    lease.hurry();
    expect(wants(lease, 0)).toBe(true);
    expect(lease.isScarceFor(1, 0)).toBe(false);
  });
});

describe('scarcity', () => {
  test('denies what there is room for, and lets the owner decide what there is not', () => {
    const lease = leaseOf({ units: 0, isScarce: true });
    expect([lease.isScarceFor(1, 0), lease.isScarceFor(20, 0), lease.isScarceFor(21, 0)]).toEqual([
      true,
      true,
      false,
    ]);
  });

  test('ends with the lease', () => {
    expect(leaseOf({ isScarce: true }).isScarceFor(1, 1_000)).toBe(false);
  });

  test('A09 the wait is for what is missing, at the rate of the lease', () => {
    const lease = leaseOf({ units: 0, isScarce: true });
    expect(lease.waitMs(1, 0)).toBeCloseTo(100, 9);
    expect(lease.waitMs(1, 60)).toBeCloseTo(40, 9);
    expect(lease.waitMs(2, 60)).toBeCloseTo(140, 9);
  });

  test('without a rate it is until the renewal', () => {
    expect(leaseOf({ units: 0, unitsPerMs: 0, isScarce: true }).waitMs(1, 100)).toBe(400);
  });

  test('the dearest request is told, since the lease should have room for it', () => {
    const lease = leaseOf();
    lease.take(1, 0);
    lease.take(15, 0);
    lease.take(2, 0);
    expect([lease.report(0, WAITS).largestCost, lease.report(0, WAITS).largestCost]).toEqual([15, 0]);
  });
});
