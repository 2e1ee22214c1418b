import { expect, test } from 'vitest';
import { Random, zipf } from '../../scripts/sim/random.ts';
import { Time } from '../../scripts/sim/time.ts';
import { type Phase, repeated, startStream } from '../../scripts/sim/traffic.ts';

async function arrivals(phases: readonly Phase[]): Promise<readonly number[]> {
  const time = new Time();
  const atMs: number[] = [];
  const request = () => ({ group: 'all', isolate: 0, enforced: [] });
  startStream({ phases, request }, { time, random: new Random(1), send: () => atMs.push(time.elapsedMs) });
  await time.runOut();
  return atMs;
}

test('each phase has its own rate, from its beginning to its end', async () => {
  const atMs = await arrivals([
    { forMs: 10_000, perSecond: 100 },
    { forMs: 5_000, perSecond: 0 },
    { forMs: 10_000, perSecond: 300 },
  ]);
  const within = (fromMs: number, toMs: number) =>
    atMs.filter((each) => each >= fromMs && each < toMs).length;
  expect(within(0, 10_000) / 1_000).toBeCloseTo(1, 1);
  expect(within(10_000, 15_000)).toBe(0);
  expect(within(15_000, 25_000) / 3_000).toBeCloseTo(1, 1);
  expect(within(25_000, Number.POSITIVE_INFINITY)).toBe(0);
});

test('a cycle is repeated until the time is full', () => {
  const cycle = [
    { forMs: 300, perSecond: 1 },
    { forMs: 200, perSecond: 0 },
  ];
  expect(repeated(cycle, 900).map(({ forMs, perSecond }) => `${forMs}:${perSecond}`)).toEqual([
    '300:1',
    '200:0',
    '300:1',
    '100:0',
  ]);
});

test("Zipf's law: the second gets half of what the first gets", () => {
  const draw = zipf(100);
  const random = new Random(1);
  const drawn = Array.from({ length: 50_000 }, () => draw(random));
  const count = (at: number) => drawn.filter((each) => each === at).length;
  expect(count(1) / count(0)).toBeCloseTo(0.5, 1);
  expect(count(9) / count(0)).toBeCloseTo(0.1, 1);
  expect(Math.max(...drawn)).toBe(99);
});
