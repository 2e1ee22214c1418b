/**
 * The fixed window as a table of timelines.
 *
 * W07 (windows that begin with a caller's first request) does not apply: these begin at whole multiples of the window in UTC, for
 * every caller alike. W01 shows the price.
 */
import { test } from 'vitest';
import { type Case, DAY_MS, HOUR_MS, limitOf, MINUTE_MS, run } from './subject.ts';

function window(quota: number, windowMs: number) {
  return limitOf('fixed_window', quota, windowMs);
}

const CASES: readonly Case[] = [
  {
    name: 'A01 the wait ends at the edge, and the retry at that time is admitted',
    limit: window(5, 10_000),
    steps: [
      { at: 400, ask: 1, times: 5 },
      { at: 3700, ask: 1, gets: { waitMs: 6300 } },
      { at: 9999, ask: 1, gets: { waitMs: 1 } },
      { at: 10_000, ask: 1, left: 4 },
    ],
  },
  {
    name: 'A05 every answer, the first to the denied one, knows when the window ends',
    limit: window(2, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, restsInMs: 60_000 },
      { at: 1000, ask: 1, restsInMs: 59_000 },
      { at: 2000, ask: 1, gets: { waitMs: 58_000 }, restsInMs: 58_000 },
    ],
  },
  {
    name: 'B03 costs are summed',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 8 },
      { at: 0, ask: 1, times: 2 },
      { at: 0, ask: 1, gets: { waitMs: MINUTE_MS } },
    ],
  },
  {
    name: 'C09 a day is a day in UTC, however late it was first used',
    limit: window(3, DAY_MS),
    steps: [
      { at: 18 * HOUR_MS, ask: 1 },
      { at: 25 * HOUR_MS, ask: 1, times: 3 },
      { at: 25 * HOUR_MS, ask: 1, times: 7, gets: { waitMs: 23 * HOUR_MS } },
    ],
  },
  {
    name: 'I09 what is given back after the edge does not touch the new window',
    limit: window(1, 10_000),
    steps: [
      { at: 9000, ask: 1 },
      { at: 11_000, giveBack: { cost: 1, chargedAtMs: 9000 }, left: 1 },
      { at: 11_000, ask: 1 },
      { at: 11_000, giveBack: { cost: 1, chargedAtMs: 9000 }, left: 0 },
      { at: 11_000, ask: 1, times: 2, gets: { waitMs: 9000 } },
    ],
  },
  {
    name: 'what is given back within its window can be used again',
    limit: window(1, 10_000),
    steps: [
      { at: 1000, ask: 1 },
      { at: 2000, giveBack: { cost: 1, chargedAtMs: 1000 }, left: 1 },
      { at: 2000, ask: 1, left: 0 },
    ],
  },
  {
    name: 'C01 after a step back over an edge the count is that of the present window: no refill, no freeze',
    limit: window(2, 10_000),
    steps: [
      { at: 31_000, ask: 2 },
      { at: 12_000, ask: 1, gets: { waitMs: 8000 }, left: 0 },
      { at: 19_999, ask: 1, gets: { waitMs: 1 } },
      { at: 20_000, ask: 1, left: 1 },
    ],
  },
  {
    name: 'C03 a year ahead and back locks nobody for a year',
    limit: window(2, MINUTE_MS),
    steps: [
      { at: 365 * DAY_MS, ask: 2 },
      { at: 0, ask: 1, gets: { waitMs: MINUTE_MS } },
      { at: MINUTE_MS, ask: 2 },
      { at: MINUTE_MS, ask: 1, gets: { waitMs: MINUTE_MS } },
      { at: 2 * MINUTE_MS, ask: 2 },
    ],
  },
  {
    name: 'what was charged before the clock stepped back can still be given back',
    limit: window(2, 10_000),
    steps: [
      { at: 31_000, ask: 2 },
      { at: 12_000, giveBack: { cost: 1, chargedAtMs: 31_000 }, left: 1 },
    ],
  },
  {
    name: 'L01, L13 raising 10 to 20 with 10 used leaves 10, whatever was denied',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 40, gets: { waitMs: MINUTE_MS } },
      { at: 1000, reload: window(20, MINUTE_MS), left: 10 },
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
      { at: 0, ask: 1, gets: { waitMs: HOUR_MS } },
    ],
  },
  {
    name: 'W01 twice the quota can pass around an edge: that is what a fixed window costs',
    limit: window(10, MINUTE_MS),
    steps: [
      { at: 59_000, ask: 1, times: 10 },
      { at: 61_000, ask: 1, times: 10 },
      { at: 61_000, ask: 1, gets: { waitMs: 59_000 } },
    ],
  },
  {
    name: 'W05 a gap of several windows starts a new one',
    limit: window(1, 1000),
    steps: [
      { at: 0, ask: 1 },
      { at: 3500, ask: 1 },
      { at: 3500, ask: 1, gets: { waitMs: 500 } },
    ],
  },
  {
    name: 'X07 a debt is at most a quota, and ends with its window',
    limit: window(15, MINUTE_MS),
    steps: [
      { at: 0, charge: 40, left: -15 },
      { at: 1000, ask: 1, gets: { waitMs: 59_000 } },
      { at: MINUTE_MS, ask: 15 },
    ],
  },
];

test.each(CASES)('$name', run);
