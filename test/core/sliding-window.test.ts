/** The sliding window (two counts) as a table of timelines. */
import { expect, test } from 'vitest';
import { slidingWindow } from '../../src/core/sliding-window.ts';
import { type Case, HOUR_MS, limitOf, MINUTE_MS, run, YEAR_MS } from './subject.ts';

function window(quota: number, windowMs: number) {
  return limitOf('sliding_window', quota, windowMs);
}

const CASES: readonly Case[] = [
  {
    name: 'A07 the wait is until one unit has faded from the previous window, not until the window ends',
    limit: window(60, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 60 },
      { at: 72_000, ask: 1, times: 12, left: 0 },
      { at: 72_000, ask: 1, gets: { waitMs: 1000 } },
      { at: 73_000, ask: 1 },
    ],
  },
  {
    name: 'A17 what is left counts the faded part of the previous window',
    limit: window(100, 100_000),
    steps: [
      { at: 0, ask: 1, times: 50 },
      { at: 110_000, ask: 1, times: 10, left: 45 },
      { at: 110_000, ask: 1, times: 45, left: 0 },
      { at: 110_000, ask: 1, gets: { waitMs: 2000 } },
    ],
  },
  {
    name: 'a wait that reaches into the next window is as exact',
    limit: window(10, 10_000),
    steps: [
      { at: 4000, ask: 10 },
      { at: 5000, ask: 2, gets: { waitMs: 7000 } },
      { at: 11_999, ask: 2, gets: { waitMs: 1 } },
      { at: 12_000, ask: 2, left: 0 },
    ],
  },
  {
    name: 'a dear request against a small previous count is denied until the last of it has faded',
    limit: window(1_000_000, YEAR_MS),
    steps: [
      { at: 0, ask: 1 },
      { at: 0, ask: 1_000_000, gets: { waitMs: 2 * YEAR_MS } },
      { at: 2 * YEAR_MS - 1, ask: 1_000_000, gets: { waitMs: 1 } },
      { at: 2 * YEAR_MS, ask: 1_000_000 },
    ],
  },
  {
    name: 'B03 costs are summed',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 8 },
      { at: 0, ask: 1, times: 2 },
      { at: 0, ask: 1, gets: { waitMs: 66_000 } },
    ],
  },
  {
    name: 'B05 a cost above the quota has no wait',
    limit: window(3, 2000),
    steps: [{ at: 0, ask: 4, gets: 'impossible', left: 3 }],
  },
  {
    name: 'C01, C03 a step back of the clock changes nothing, a step forward refills once',
    limit: window(2, 10_000),
    steps: [
      { at: 5000, ask: 2, left: 0 },
      { at: 40_000, ask: 2, left: 0 },
      { at: 1000, ask: 1, gets: { waitMs: 15_000 }, left: 0 },
      { at: 16_000, ask: 1 },
    ],
  },
  {
    name: 'I09 what is given back is taken from the window it was charged in',
    limit: window(10, 10_000),
    steps: [
      { at: 9000, ask: 10 },
      { at: 15_000, left: 5 },
      { at: 15_000, giveBack: { cost: 4, chargedAtMs: 9000 }, left: 7 },
      { at: 15_000, ask: 1, left: 6 },
      { at: 25_000, giveBack: { cost: 6, chargedAtMs: 9000 }, left: 9 },
      {
        at: 25_000,
        giveBack: { cost: 5, chargedAtMs: 15_000 },
        left: 10,
        restsInMs: Number.NEGATIVE_INFINITY,
      },
    ],
  },
  {
    name: 'L01, L13 raising 10 to 20 with 10 used leaves 10, whatever was denied',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 40, gets: { waitMs: 66_000 } },
      { at: 0, reload: window(20, MINUTE_MS), left: 10 },
    ],
  },
  {
    name: 'a window of another length starts at 0',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 10 },
      { at: 1000, reload: window(10, HOUR_MS), left: 10 },
    ],
  },
  {
    name: 'M09 a peek and a charge draw the line at the same place',
    limit: window(1, HOUR_MS),
    steps: [
      { at: 0, ask: 0, left: 1 },
      { at: 0, ask: 1, left: 0 },
      { at: 0, ask: 1, gets: { waitMs: 2 * HOUR_MS } },
    ],
  },
  {
    name: 'W01 the quota does not double around an edge; the slack is what has faded',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 59_000, ask: 1, times: 10 },
      { at: 61_000, left: 0 },
      { at: 61_000, ask: 1, gets: { waitMs: 5000 } },
      { at: 66_000, ask: 1, left: 0 },
    ],
  },
  {
    name: 'W03 a frozen clock does not merge requests',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 90, gets: { waitMs: 66_000 } },
    ],
  },
  {
    name: 'W05 windows are left behind after any gap, whole or not',
    limit: window(2, 1000),
    steps: [
      { at: 0, ask: 2 },
      { at: 3500, ask: 2, left: 0 },
      { at: 5000, left: 2 },
    ],
  },
  {
    name: 'W07 callers do not start again together: one admitted at 7 s is still counted at 12 s',
    limit: window(1, 10_000),
    steps: [
      { at: 7000, ask: 1 },
      { at: 12_000, ask: 1, gets: { waitMs: 8000 } },
      { at: 20_000, ask: 1 },
    ],
  },
  {
    name: 'X07 a debt is at most a quota, fades like everything else, and is in the wait',
    limit: window(15, 15_000),
    steps: [
      { at: 0, charge: 40, left: -15 },
      { at: 0, ask: 1, gets: { waitMs: 23_000 } },
      { at: 23_000, ask: 1, left: 0 },
    ],
  },
];

test.each(CASES)('$name', run);

test('C01 on a clock that stepped back over an edge, the counts are those of the present window', () => {
  const limit = window(2, 10_000);
  const ahead = slidingWindow.charge(limit, undefined, 2, 51_000);
  expect(slidingWindow.available(limit, ahead, 1000)).toBe(0);
  expect(slidingWindow.decide(limit, ahead, 1, 1000).decision).toEqual({
    outcome: 'denied',
    retryAfterMs: 14_000,
  });
});
