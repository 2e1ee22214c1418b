import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Heap, type Scheduled } from '../../scripts/sim/heap.ts';

const action = fc.oneof(
  { weight: 3, arbitrary: fc.record({ add: fc.nat({ max: 20 }) }) },
  { weight: 1, arbitrary: fc.constant('take' as const) },
  { weight: 1, arbitrary: fc.record({ remove: fc.nat() }) },
);

function inOrder(events: readonly Scheduled[]): readonly Scheduled[] {
  return events.toSorted((a, b) => a.atMs - b.atMs || a.number - b.number);
}

test('property: it holds what a sorted list would, whatever is added, taken and cancelled', () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 80 }), (actions) => {
      const heap = new Heap<Scheduled>();
      let expected: readonly Scheduled[] = [];
      for (const [number, each] of actions.entries()) {
        if (each === 'take') {
          expect(heap.takeFirst()).toBe(expected[0]);
          expected = expected.slice(1);
        } else if ('add' in each) {
          const event = { atMs: each.add, number, place: -1 };
          heap.add(event);
          expected = inOrder([...expected, event]);
        } else if (expected.length > 0) {
          const event = expected[each.remove % expected.length]!;
          heap.remove(event);
          expected = expected.filter((other) => other !== event);
        }
        expect([heap.size, heap.first]).toEqual([expected.length, expected[0]]);
      }
      while (heap.size > 0) {
        expect(heap.takeFirst()).toBe(expected[0]);
        expected = expected.slice(1);
      }
      expect(expected).toEqual([]);
    }),
  );
});

test('an event that has left is not removed again, whoever stands in its place', () => {
  const heap = new Heap<Scheduled>();
  const [first, second] = [1, 2].map((atMs) => ({ atMs, number: atMs, place: -1 }));
  heap.add(first!);
  heap.add(second!);
  heap.takeFirst();
  heap.remove(first!);
  expect(heap.first).toBe(second);
});

test('the last event, put in the place of one that was cancelled, may have to go up', () => {
  const heap = new Heap<Scheduled>();
  const times = [0, 20, 1, 21, 22, 2, 3, 23, 24, 25, 26, 4, 5, 6, 7];
  const events = times.map((atMs, number) => ({ atMs, number, place: -1 }));
  for (const event of events) heap.add(event);
  const cancelled = events[times.indexOf(23)]!;
  const moved = events.at(-1)!;
  const { place } = cancelled;
  heap.remove(cancelled);
  expect(place).toBe(7);
  // Not under the 20 and the 21 that the cancelled one stood under.
  expect(moved.place).toBe(1);
});
