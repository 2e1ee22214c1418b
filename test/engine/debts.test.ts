import { describe, expect, test } from 'vitest';
import { type Admission, Debts } from '../../src/engine/debts.ts';
import { limitOf, MINUTE_MS } from './rules.ts';

const limit = limitOf({ quota: 60 });

function debts() {
  const lost: number[] = [];
  const all = new Debts((count) => lost.push(count));
  let made = 0;
  const due = (nowMs: number) => {
    const newId = () => {
      made += 1;
      return `debt ${made}`;
    };
    return all.due(newId, nowMs);
  };
  const units = (nowMs: number) => due(nowMs).map((debt) => debt.units);
  return { all, due, units, lost };
}

function admission(more: Partial<Admission> = {}): Admission {
  return { counterId: 'c', limit, cost: 1, unitsPerMs: 0.001, untilMs: Number.POSITIVE_INFINITY, ...more };
}

describe('what is owed', () => {
  test('is nothing at first', () => {
    expect(debts().due(0)).toEqual([]);
  });

  test('is what was admitted, less what its bucket has refilled since, in whole units', () => {
    const { all, due } = debts();
    all.admitted(admission({ cost: 5 }), 0);
    all.admitted(admission({ cost: 3 }), 2_000);
    expect(due(3_500)).toEqual([{ id: 'debt 1', counterId: 'c', limit, units: 4 }]);
  });

  test('of a window is all of it until the window ends, and then nothing', () => {
    const { all, units } = debts();
    all.admitted(admission({ cost: 5, unitsPerMs: 0, untilMs: MINUTE_MS }), 0);
    all.admitted(admission({ cost: 2, unitsPerMs: 0, untilMs: MINUTE_MS }), 30_000);
    expect(units(MINUTE_MS - 1)).toEqual([7]);
    expect(units(MINUTE_MS)).toEqual([]);
    all.admitted(admission({ cost: 1, unitsPerMs: 0, untilMs: 2 * MINUTE_MS }), MINUTE_MS);
    expect(units(MINUTE_MS)).toEqual([1]);
  });

  test('goes with every message, under the same id, until a reply to one of them has come', () => {
    const { all, due } = debts();
    all.admitted(admission({ cost: 5, unitsPerMs: 0 }), 0);
    const first = due(0);
    expect(due(1)).toEqual(first);
    all.acknowledged(first);
    expect(due(2)).toEqual([]);
  });

  test('goes on shrinking while no reply comes: a long outage leaves no more than its bucket owes', () => {
    const { all, units } = debts();
    for (let second = 0; second < 120; second += 1) {
      all.admitted(admission({ cost: 1 }), second * 1_000);
      units(second * 1_000 + 500);
    }
    const owed = units(120_000).reduce((sum, each) => sum + each, 0);
    expect(owed).toBeLessThanOrEqual(1);
  });

  test('keeps its fractions: many small outages forgive no more than one long one', () => {
    const { all, due } = debts();
    let reported = 0;
    for (let at = 0; at < 100; at += 1) {
      all.admitted(admission({ cost: 1 }), at * 10);
      const sent = due(at * 10 + 5);
      reported += sent.reduce((sum, { units }) => sum + units, 0);
      all.acknowledged(sent);
    }
    expect(reported).toBe(99);
  });

  test('a report that is repeated is never more than it was, nor less than what is left of it', () => {
    const { all, units } = debts();
    all.admitted(admission({ cost: 3 }), 0);
    expect([0, 10, 1_000, 1_001, 2_500, 3_000].map((atMs) => units(atMs))).toEqual([
      [3],
      [3],
      [2],
      [2],
      [1],
      [],
    ]);
  });

  test('can be asked for: sent or not, until it is acknowledged', () => {
    const { all, due } = debts();
    all.admitted(admission({ cost: 5 }), 0);
    const sent = due(0);
    all.admitted(admission({ cost: 2 }), 500);
    expect(all.owed('c', 1_000)).toBeCloseTo(6, 9);
    all.acknowledged(sent);
    expect(all.owed('c', 1_000)).toBeCloseTo(2, 9);
    expect(all.owed('of another', 1_000)).toBe(0);
  });

  test('what came after a report that nobody acknowledged is a debt of its own', () => {
    const { all, due } = debts();
    all.admitted(admission({ cost: 5, unitsPerMs: 0 }), 0);
    const first = due(0);
    all.admitted(admission({ cost: 2, unitsPerMs: 0 }), 0);
    all.acknowledged(first);
    const second = due(0);
    expect(second.map((debt) => debt.units)).toEqual([2]);
    expect(second[0]?.id).not.toBe(first[0]?.id);
  });

  test('an acknowledgement of another message changes nothing', () => {
    const { all, units } = debts();
    all.admitted(admission({ cost: 5, unitsPerMs: 0 }), 0);
    units(0);
    all.acknowledged([{ id: 'of somebody else', counterId: 'c', limit, units: 5 }]);
    expect(units(0)).toEqual([5]);
  });
});

describe('bounds', () => {
  test('a message carries at most 64; the rest goes with later ones', () => {
    const { all, due } = debts();
    for (let at = 0; at < 100; at += 1) all.admitted(admission({ counterId: `c${at}`, unitsPerMs: 0 }), 0);
    const first = due(0);
    expect(first).toHaveLength(64);
    all.acknowledged(first);
    const second = due(0);
    expect(second).toHaveLength(36);
    expect(new Set([...first, ...second].map(({ counterId }) => counterId)).size).toBe(100);
  });

  test('beyond 256 counters in debt the oldest is given up, and counted', () => {
    const { all, lost } = debts();
    for (let at = 0; at < 258; at += 1) all.admitted(admission({ counterId: `c${at}` }), 0);
    expect(lost).toEqual([1, 1]);
    expect(all.size).toBe(256);
  });

  test('a debt that nobody acknowledged for five minutes is given up, and counted', () => {
    const { all, units, lost } = debts();
    all.admitted(admission({ cost: 5, unitsPerMs: 0 }), 0);
    expect(units(0)).toEqual([5]);
    expect(units(300_000)).toEqual([5]);
    expect(units(300_001)).toEqual([]);
    expect(lost).toEqual([1]);
    expect(all.size).toBe(0);
  });
});
