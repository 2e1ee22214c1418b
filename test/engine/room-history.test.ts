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

test('what has come back takes the room that was there, down to none', () => {
  const history = historyOf([2, 0], [5, 10], [9, 20]);
  history.fill(4);
  expect([0, 10, 20].map((sinceMs) => history.leastSince(sinceMs))).toEqual([0, 1, 5]);
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
