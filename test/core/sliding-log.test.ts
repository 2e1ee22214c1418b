/** The sliding log as a table of timelines: at most the quota in any window, exactly. */
import { expect, test } from 'vitest';
import { slidingLog } from '../../src/core/sliding-log.ts';
import { type Case, HOUR_MS, limitOf, MINUTE_MS, run, type Step } from './subject.ts';

function log(quota: number, windowMs: number) {
  return limitOf('sliding_log', quota, windowMs);
}

function everyMs(gapMs: number, times: number): Step[] {
  return Array.from({ length: times }, (_, i) => ({ at: i * gapMs, ask: 1 }));
}

const CASES: readonly Case[] = [
  {
    name: 'A03 the wait is until the oldest request leaves the window, and falls as time passes',
    limit: log(10, MINUTE_MS),
    steps: [
      ...everyMs(2000, 10),
      { at: 20_000, ask: 1, gets: { waitMs: 40_000 } },
      { at: 35_000, ask: 1, gets: { waitMs: 25_000 } },
      { at: 60_000, ask: 1 },
      { at: 60_000, ask: 1, gets: { waitMs: 2000 } },
    ],
  },
  {
    name: 'A25 a steady caller waits for one unit, not for a block of a whole window',
    limit: log(10, 10_000),
    steps: [...everyMs(1000, 10), { at: 9500, ask: 1, gets: { waitMs: 500 } }, { at: 10_000, ask: 1 }],
  },
  {
    name: 'B03 costs are summed exactly',
    limit: log(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 8 },
      { at: 1000, ask: 1, times: 2 },
      { at: 1000, ask: 1, gets: { waitMs: 59_000 } },
      { at: 1000, ask: 9, gets: { waitMs: 60_000 } },
    ],
  },
  {
    name: 'B05 a cost above the quota has no wait',
    limit: log(3, 2000),
    steps: [{ at: 0, ask: 4, gets: 'impossible', left: 3 }],
  },
  {
    name: 'C01, C03 a step back of the clock changes nothing, a step forward refills once',
    limit: log(2, 10_000),
    steps: [
      { at: 5000, ask: 2 },
      { at: 40_000, ask: 2 },
      { at: 1000, ask: 1, gets: { waitMs: 10_000 }, left: 0 },
      { at: 11_000, ask: 2 },
    ],
  },
  {
    name: 'I09 what is given back is taken out at the time of its charge, if that still counts',
    limit: log(5, 10_000),
    steps: [
      { at: 0, ask: 2 },
      { at: 4000, ask: 3, left: 0 },
      { at: 5000, giveBack: { cost: 2, chargedAtMs: 4000 }, left: 2 },
      { at: 5000, giveBack: { cost: 9, chargedAtMs: 3000 }, left: 2 },
      { at: 11_000, giveBack: { cost: 2, chargedAtMs: 0 }, left: 4, restsInMs: 3000 },
      { at: 11_000, giveBack: { cost: 9, chargedAtMs: 4000 }, left: 5, restsInMs: Number.NEGATIVE_INFINITY },
    ],
  },
  {
    name: 'L01, L13 raising 10 to 20 with 10 used leaves 10, whatever was denied',
    limit: log(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 40, gets: { waitMs: MINUTE_MS } },
      { at: 0, reload: log(20, MINUTE_MS), left: 10 },
    ],
  },
  {
    name: 'a window of another length starts at 0',
    limit: log(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 10 },
      { at: 1000, reload: log(10, HOUR_MS), left: 10 },
    ],
  },
  {
    name: 'M09 a peek and a charge draw the line at the same place',
    limit: log(1, HOUR_MS),
    steps: [
      { at: 0, ask: 0, left: 1 },
      { at: 0, ask: 1, left: 0 },
      { at: 0, ask: 1, gets: { waitMs: HOUR_MS } },
    ],
  },
  {
    name: 'W01 at most the quota in any window, also around an edge',
    limit: log(10, MINUTE_MS),
    steps: [
      { at: 59_000, ask: 1, times: 10 },
      { at: 61_000, ask: 1, times: 10, gets: { waitMs: 58_000 } },
      { at: 118_999, ask: 1, gets: { waitMs: 1 } },
      { at: 119_000, ask: 1, times: 10 },
    ],
  },
  {
    name: 'W03 requests of one tick stay apart',
    limit: log(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 90, gets: { waitMs: MINUTE_MS } },
    ],
  },
  {
    name: 'W05 old requests are left behind after any gap',
    limit: log(2, 1000),
    steps: [
      { at: 0, ask: 2 },
      { at: 3500, ask: 2, left: 0 },
    ],
  },
  {
    name: 'W07 the window begins with the request: one admitted at 7 s counts until 17 s',
    limit: log(1, 10_000),
    steps: [
      { at: 7000, ask: 1 },
      { at: 12_000, ask: 1, gets: { waitMs: 5000 } },
      { at: 17_000, ask: 1 },
    ],
  },
  {
    name: 'X07 a debt is at most a quota, and is in the wait',
    limit: log(15, MINUTE_MS),
    steps: [
      { at: 0, charge: 10 },
      { at: 5000, charge: 40, left: -15 },
      { at: 5000, ask: 1, gets: { waitMs: MINUTE_MS } },
      { at: MINUTE_MS, left: -5 },
    ],
  },
];

test.each(CASES)('$name', run);

test('C01 on a clock that stepped back, the newest charge stays the last in the log', () => {
  const limit = log(3, 10_000);
  const ahead = slidingLog.charge(limit, undefined, 1, 40_000);
  const back = slidingLog.charge(limit, ahead, 1, 1000);
  expect(back?.timesMs).toEqual([40_000, 40_000]);
  expect(slidingLog.available(limit, back, 1000)).toBe(1);
});
