import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Overflow, PIECES_MAX, type Returned } from '../../src/engine/overflow.ts';

const unitsOf = (pieces: readonly Returned[]) => pieces.reduce((sum, { units }) => sum + units, 0);

test('what overflows at an even pace is told apart by when it did, the oldest first', () => {
  const overflow = new Overflow();
  overflow.add(6, 100, 175);
  const pieces = [
    { units: 2, agoMs: 110 },
    { units: 2, agoMs: 85 },
    { units: 2, agoMs: 60 },
  ];
  expect(overflow.take(200, 10)).toEqual(pieces);
  expect(overflow.take(200, 10)).toEqual([]);
});

test('what overflows in one moment is one piece, and so is what follows within a moment', () => {
  const overflow = new Overflow();
  overflow.add(3, 50, 50);
  overflow.add(4, 60, 60);
  overflow.add(0, 90, 190);
  expect(overflow.take(100, 0)).toEqual([{ units: 7, agoMs: 50 }]);
});

test('what is cleared is not reported', () => {
  const overflow = new Overflow();
  overflow.add(3, 50, 90);
  overflow.clear();
  expect(overflow.take(100, 0)).toEqual([]);
});

test('property: all of it is reported, in a few pieces, none of it as later than it was', () => {
  const step = fc.record({
    units: fc.double({ min: 0.01, max: 100, noNaN: true }),
    pauseMs: fc.integer({ min: 0, max: 200 }),
    lastsMs: fc.integer({ min: 0, max: 400 }),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 40 }), (steps) => {
      const overflow = new Overflow();
      const truth: { units: number; sinceMs: number; untilMs: number }[] = [];
      let nowMs = 0;
      for (const { units, pauseMs, lastsMs } of steps) {
        const sinceMs = nowMs + pauseMs;
        nowMs = sinceMs + lastsMs;
        overflow.add(units, sinceMs, nowMs);
        truth.push({ units, sinceMs, untilMs: nowMs });
      }
      const pieces = overflow.take(nowMs, 0);
      expect(pieces.length).toBeLessThanOrEqual(PIECES_MAX);
      expect(unitsOf(pieces)).toBeCloseTo(
        truth.reduce((sum, { units }) => sum + units, 0),
        6,
      );
      for (const { agoMs } of pieces) {
        const atMs = nowMs - agoMs;
        const claimed = unitsOf(pieces.filter((piece) => piece.agoMs <= agoMs));
        const later = truth.map(({ units, sinceMs, untilMs }) => {
          if (sinceMs >= atMs - 1e-6) return units;
          return untilMs <= atMs ? 0 : (units * (untilMs - atMs)) / (untilMs - sinceMs);
        });
        expect(claimed).toBeLessThanOrEqual(later.reduce((sum, units) => sum + units, 0) + 1e-6);
      }
    }),
  );
});
