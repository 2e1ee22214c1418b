/** The leaky bucket as a table of timelines: a constant rate out, and a delay before it. */
import { test } from 'vitest';
import { type Case, limitOf, MINUTE_MS, run } from './subject.ts';

function queue(quota: number, windowMs: number, maxDelayMs: number) {
  return limitOf('leaky_bucket', quota, windowMs, { maxDelayMs });
}

const CASES: readonly Case[] = [
  {
    name: 'requests at one instant leave one by one, until the delay is used up',
    limit: queue(10, 1000, 250),
    steps: [
      { at: 0, ask: 0, left: 3 },
      { at: 0, ask: 1, gets: 'ok', left: 2 },
      { at: 0, ask: 1, gets: { delayMs: 100 }, left: 1 },
      { at: 0, ask: 1, gets: { delayMs: 200 }, left: 0 },
      { at: 0, ask: 1, gets: { waitMs: 50 }, left: 0, restsInMs: 300 },
      { at: 50, ask: 1, gets: { delayMs: 250 } },
    ],
  },
  {
    name: 'without a delay it spaces requests evenly',
    limit: queue(10, 1000, 0),
    steps: [
      { at: 0, ask: 1, left: 0 },
      { at: 40, ask: 1, gets: { waitMs: 60 } },
      { at: 100, ask: 1 },
    ],
  },
  {
    name: 'an idle spell saves nothing up',
    limit: queue(10, 1000, 0),
    steps: [
      { at: 0, ask: 1 },
      { at: MINUTE_MS, ask: 1 },
      { at: MINUTE_MS, ask: 1, gets: { waitMs: 100 } },
    ],
  },
  {
    name: 'a dear request goes at once, and those behind it wait for all of its cost',
    limit: queue(30, MINUTE_MS, 1000),
    steps: [
      { at: 0, ask: 10 },
      { at: 0, ask: 1, gets: { waitMs: 19_000 } },
      { at: 19_000, ask: 1, gets: { delayMs: 1000 } },
    ],
  },
  {
    name: 'B05 a cost above the quota has no wait',
    limit: queue(3, 2000, 1000),
    steps: [{ at: 0, ask: 4, gets: 'impossible', restsInMs: Number.NEGATIVE_INFINITY }],
  },
  {
    name: 'a delay longer than the window shows the quota, and accepts more',
    limit: queue(2, 100, 1000),
    steps: [
      { at: 0, left: 2 },
      { at: 0, charge: 10, left: 2 },
      { at: 0, charge: 10, left: 1 },
      { at: 0, charge: 10, left: -1, restsInMs: 1100 },
    ],
  },
  {
    name: 'A23 the wait of a fast queue is not 0',
    limit: queue(1000, 1000, 0),
    steps: [
      { at: 0, ask: 1 },
      { at: 0, ask: 1, gets: { waitMs: 1 } },
    ],
  },
  {
    name: 'C01, C03 a step back of the clock changes nothing, a step forward empties the queue once',
    limit: queue(5, 5000, 1000),
    steps: [
      { at: 100_000, ask: 1 },
      { at: 100_000, ask: 1, gets: { delayMs: 1000 } },
      { at: 89_000, ask: 1, gets: { waitMs: 1000 } },
      { at: 90_000, ask: 1, gets: { delayMs: 1000 } },
    ],
  },
  {
    name: 'L01, L13 the length of the queue carries over to another rate, without what was denied',
    limit: queue(10, 1000, 250),
    steps: [
      { at: 0, ask: 1 },
      { at: 0, ask: 1, gets: { delayMs: 100 } },
      { at: 0, ask: 1, gets: { delayMs: 200 } },
      { at: 0, ask: 1, times: 20, gets: { waitMs: 50 } },
      { at: 0, reload: queue(100, 1000, 250), left: 23 },
      { at: 0, ask: 1, gets: { delayMs: 30 } },
    ],
  },
  {
    name: 'X07 a charge after the fact makes the queue longer than the delay, by a window at most',
    limit: queue(10, 1000, 500),
    steps: [
      { at: 0, charge: 40 },
      { at: 0, ask: 1, gets: { waitMs: 1000 }, left: -9 },
    ],
  },
  {
    name: 'a request that is given back makes room for the next',
    limit: queue(10, 1000, 0),
    steps: [
      { at: 0, ask: 1 },
      { at: 10, giveBack: { cost: 1, chargedAtMs: 0 }, restsInMs: Number.NEGATIVE_INFINITY },
      { at: 10, ask: 1 },
    ],
  },
];

test.each(CASES)('$name', run);
