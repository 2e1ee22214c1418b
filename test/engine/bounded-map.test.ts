import { expect, test } from 'vitest';
import { BoundedMap } from '../../src/engine/bounded-map.ts';

test('the entry that was touched longest ago gives way, and is told of', () => {
  const displaced: [string, number][] = [];
  const map = new BoundedMap<number>(3, (value, key) => displaced.push([key, value]));
  for (const [at, key] of ['a', 'b', 'c'].entries()) map.set(key, at);
  map.get('a');
  map.touch('b');
  map.set('a', 9);
  map.set('d', 3);
  map.set('e', 4);
  expect(displaced).toEqual([
    ['c', 2],
    ['b', 1],
  ]);
  expect(map.values()).toEqual([9, 3, 4]);
});

test('deleted and cleared entries are not told of, and touching what is not there makes nothing', () => {
  const map = new BoundedMap<number>(2, () => expect.unreachable());
  map.set('a', 1);
  map.delete('a');
  expect(map.touch('a')).toBeUndefined();
  map.set('b', 2);
  map.clear();
  expect([map.size, map.values()]).toEqual([0, []]);
});
