import fc from 'fast-check';
import { expect, test } from 'vitest';
import { RecencyMap } from '../../src/engine/recency-map.ts';

const KEYS = ['a', 'b', 'c', 'd'];

test('property: holds what a Map would, in which putting and touching take an entry out and put it back', () => {
  const step = fc.record({
    does: fc.constantFrom('put', 'touch', 'delete', 'shift', 'clear', 'get'),
    key: fc.constantFrom(...KEYS),
    value: fc.integer(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const map = new RecencyMap<number>();
      const model = new Map<string, number>();
      for (const { does, key, value } of steps) {
        const known = model.get(key);
        if (does === 'put') map.put(key, value);
        else if (does === 'touch') expect(map.touch(key)).toBe(known);
        else if (does === 'get') expect(map.get(key)).toBe(known);
        else if (does === 'delete') map.delete(key);
        else if (does === 'shift') expect(map.shift()).toEqual([...model][0]);
        else map.clear();
        if (does === 'clear') model.clear();
        else if (does !== 'get') model.delete(does === 'shift' ? ([...model][0]?.[0] ?? '') : key);
        if (does === 'put') model.set(key, value);
        if (does === 'touch' && known !== undefined) model.set(key, known);
        const entries = [...model];
        expect(map.values()).toEqual([...model.values()]);
        expect([map.size, map.oldest, map.newest]).toEqual([
          model.size,
          entries[0]?.[1],
          entries.at(-1)?.[1],
        ]);
      }
    }),
  );
});
