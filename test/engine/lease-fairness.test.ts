/** Whoever comes late to a counter that is in demand gets its part of it. */
import { expect, test } from 'vitest';
import { SECOND_MS, winner } from './rules.ts';
import { type Isolate, World } from './world.ts';

const STEP_MS = 5;

test.each([
  { early: 4, late: 1, perSecond: 400 },
  { early: 8, late: 2, perSecond: 200 },
  { early: 20, late: 4, perSecond: 100 },
])('$late isolates that join $early others, all at $perSecond a second of 1,000', async (numbers) => {
  const { early, late, perSecond } = numbers;
  const world = new World();
  const rule = winner({ quota: 1_000, windowMs: SECOND_MS, consistency: 'auto' });
  const isolates = Array.from({ length: early + late }, () => world.isolate());
  const admitted = new Map<Isolate, number>(isolates.map((isolate) => [isolate, 0]));
  /** Evenly, each a little after the one before. */
  async function ask(those: readonly Isolate[], forMs: number) {
    for (let ms = 0; ms < forMs; ms += STEP_MS) {
      for (const [at, isolate] of those.entries()) {
        const offset = (at * 0.37) % 1;
        const due = (sinceMs: number) => Math.floor((sinceMs * perSecond) / 1_000 + offset);
        for (let number = due(ms); number < due(ms + STEP_MS); number += 1)
          void isolate.send([rule]).then(({ outcome }) => {
            if (outcome === 'allowed') admitted.set(isolate, admitted.get(isolate)! + 1);
          });
      }
      await world.time.advance(STEP_MS);
    }
  }
  await ask(isolates.slice(0, early), 3 * SECOND_MS);
  await ask(isolates, SECOND_MS);
  for (const isolate of isolates) admitted.set(isolate, 0);
  await ask(isolates, 4 * SECOND_MS);
  const fair = 4_000 / isolates.length;
  expect(Math.min(...admitted.values())).toBeGreaterThan(0.8 * fair);
  expect(Math.max(...admitted.values())).toBeLessThan(1.3 * fair);
});
