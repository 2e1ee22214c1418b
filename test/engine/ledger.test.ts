import { expect, test } from 'vitest';
import { Ledger } from '../../src/engine/ledger.ts';

const bounds = { keepMs: 100, entriesMax: 3 };

test('what was done is found by its id, until it is taken back', () => {
  const ledger = new Ledger<string>(bounds);
  expect(ledger.find('a')).toBeUndefined();
  ledger.record('a', 'charged', 0);
  expect(ledger.find('a')).toBe('charged');
  expect(ledger.takeBack('a', 1)).toBe('charged');
  expect(ledger.takeBack('a', 2)).toBeUndefined();
  expect(ledger.find('a')).toBe('taken_back');
});

test('what is taken back before it was done is known as such', () => {
  const ledger = new Ledger<string>(bounds);
  expect(ledger.takeBack('a', 0)).toBeUndefined();
  expect(ledger.find('a')).toBe('taken_back');
});

test('entries are forgotten when they are old, and the oldest when there are too many', () => {
  const ledger = new Ledger<number>(bounds);
  ledger.record('old', 0, 0);
  ledger.record('at the edge', 1, 1);
  ledger.record('new', 2, 101);
  expect(['old', 'at the edge', 'new'].map((id) => ledger.find(id))).toEqual([undefined, 1, 2]);
  ledger.record('x', 3, 101);
  ledger.takeBack('y', 101);
  expect(['at the edge', 'new', 'x', 'y'].map((id) => ledger.find(id))).toEqual([
    undefined,
    2,
    3,
    'taken_back',
  ]);
});
