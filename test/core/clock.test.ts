/** The logical clock: only ever forward, by as much as the raw clock went forward. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { advance, startClock } from '../../src/core/clock.ts';

test('a step back is no time at all, and the way forward again counts from there', () => {
  const start = startClock(1_793_000_000_000);
  const ahead = advance(start, start.rawMs + 500);
  const back = advance(ahead, start.rawMs - 60_000);
  const again = advance(back, start.rawMs - 59_000);
  expect([start, ahead, back, again].map(({ logicalMs }) => logicalMs)).toEqual([0, 500, 500, 1500]);
  expect(advance(again, again.rawMs)).toBe(again);
});

test('it never goes back, and between two readings gains no more than the raw clock did', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 2 ** 42 })), (readings) => {
      let clock = startClock(0);
      for (const rawMs of readings) {
        const next = advance(clock, rawMs);
        expect(next.logicalMs - clock.logicalMs).toBe(Math.max(0, rawMs - clock.rawMs));
        clock = next;
      }
    }),
  );
});
