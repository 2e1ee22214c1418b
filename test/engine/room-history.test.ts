import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RoomHistory } from '../../src/engine/room-history.ts';

function historyOf(...notes: readonly (readonly [room: number, atMs: number])[]): RoomHistory {
  const history = new RoomHistory();
  for (const [room, atMs] of notes) history.note(room, atMs);
  return history;
}

test.each([
  ['all of it', 0, 2],
  ['from a note on', 10, 2],
  ['after a note', 11, 3],
  ['the last', 30, 7],
  ['nothing since', 31, Number.POSITIVE_INFINITY],
])('the least since then: %s', (_, sinceMs, least) => {
  expect(historyOf([5, 0], [2, 10], [3, 20], [7, 30]).leastSince(sinceMs)).toBe(least);
});

test('of one instant the least counts', () => {
  expect(historyOf([5, 0], [2, 10], [9, 10]).leastSince(10)).toBe(2);
  expect(historyOf([5, 0], [9, 10], [2, 10]).leastSince(10)).toBe(2);
});

test('what comes back finds the room that has been there ever since, and takes it from then on', () => {
  const history = historyOf([2, 0], [5, 10], [9, 20]);
  expect(history.takeIn(4, 10)).toBe(4);
  expect([0, 10, 20].map((sinceMs) => history.leastSince(sinceMs))).toEqual([1, 1, 5]);
  expect(history.takeIn(4, 0)).toBe(1);
  expect(history.takeIn(4, 0)).toBe(0);
  expect(history.takeIn(9, 15)).toBe(4);
});

test('property: what has come back never stands where there was no room, and all comes back for which there was', () => {
  const notes = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 1, maxLength: 60 });
  const pieces = fc.array(fc.record({ units: fc.integer({ min: 1, max: 50 }), sinceMs: fc.nat(59) }), {
    maxLength: 20,
  });
  fc.assert(
    fc.property(notes, pieces, (rooms, returned) => {
      const history = historyOf(...rooms.map((room, atMs) => [room, atMs] as const));
      const left = [...rooms];
      for (const { units, sinceMs } of returned) {
        const fitting = Math.min(units, ...left.slice(sinceMs));
        expect(history.takeIn(units, sinceMs)).toBeCloseTo(fitting, 9);
        for (let at = sinceMs; at < left.length; at += 1) left[at]! -= fitting;
      }
      expect(Math.min(...left)).toBeGreaterThanOrEqual(-1e-9);
    }),
  );
});

test('a long one is kept more coarsely, never with more room than there was', () => {
  const history = new RoomHistory();
  for (let at = 0; at < 100_000; at += 1) history.note(at, at);
  for (const sinceMs of [0, 5_000, 99_000, 99_500, 99_900]) {
    expect(history.leastSince(sinceMs)).toBeLessThanOrEqual(sinceMs);
  }
  expect(history.leastSince(99_500)).toBeGreaterThan(99_400);
  expect(history.leastSince(99_900)).toBeGreaterThan(99_890);
});
