/** The token bucket as a table of timelines. Cases that begin with a letter and a number name a fault that a real limiter shipped. */
import { describe, expect, test } from 'vitest';
import { tokenBucket } from '../../src/core/token-bucket.ts';
import { type Case, DAY_MS, HOUR_MS, limitOf, MINUTE_MS, run, Subject, YEAR_MS } from './subject.ts';

function bucket(quota: number, windowMs: number, burst = quota) {
  return limitOf('token_bucket', quota, windowMs, { burst });
}

const CASES: readonly Case[] = [
  {
    name: 'A09 the wait counts the fraction of a token that is already back',
    limit: bucket(1, 1000),
    steps: [
      { at: 0, ask: 1 },
      { at: 200, ask: 1, gets: { waitMs: 800 } },
      { at: 900, ask: 1, gets: { waitMs: 100 } },
      { at: 1000, ask: 1 },
    ],
  },
  {
    name: 'A13 a state lives until everything owed has come back, not one unit of it',
    limit: bucket(10, 10_000),
    steps: [
      { at: 0, ask: 10, restsInMs: 10_000 },
      { at: 1200, ask: 5, gets: { waitMs: 3800 }, restsInMs: 8800 },
      { at: 5000, ask: 5 },
    ],
  },
  {
    name: 'A15 an oversize request after an idle spell shows no more than the limit',
    limit: bucket(5, 5000),
    steps: [
      { at: 0, ask: 1 },
      { at: 60_000, ask: 6, gets: 'impossible', left: 5 },
    ],
  },
  {
    name: 'A19 what is left is rounded down and skips no value',
    limit: bucket(2, 180),
    steps: [
      { at: 0, ask: 1, left: 1 },
      { at: 3, ask: 1, left: 0 },
    ],
  },
  {
    name: 'A19 also a millisecond before a unit comes back',
    limit: bucket(2, 180),
    steps: [
      { at: 0, ask: 1, left: 1 },
      { at: 89, ask: 1, left: 0 },
      { at: 90, left: 1 },
    ],
  },
  {
    name: 'A23 the wait for one unit of a fast bucket is 1 ms, not 0',
    limit: bucket(1000, 1000),
    steps: [
      { at: 0, ask: 1000 },
      { at: 0, ask: 1, gets: { waitMs: 1 } },
      { at: 1, ask: 1 },
    ],
  },
  {
    name: 'B01 a cost above what is left is denied and takes nothing',
    limit: bucket(1, 10_000, 10),
    steps: [
      { at: 0, ask: 8, left: 2 },
      { at: 0, ask: 1_000_000, gets: 'impossible', left: 2 },
      { at: 0, ask: 3, gets: { waitMs: 10_000 }, left: 2 },
      { at: 0, ask: 1, left: 1 },
    ],
  },
  {
    name: 'B05 a cost above the burst has no wait, even on a fresh counter',
    limit: bucket(3, 2000, 3),
    steps: [{ at: 0, ask: 4, gets: 'impossible', left: 3, restsInMs: Number.NEGATIVE_INFINITY }],
  },
  {
    name: 'B13 5,000 pass in one tick of the clock, the next does not',
    limit: bucket(5000, 1000),
    steps: [
      { at: 0, ask: 1, times: 5000, left: 0 },
      { at: 0, ask: 1, gets: { waitMs: 0.2 } },
    ],
  },
  {
    name: 'B15 never more than the burst in one instant: not at first, not after a month',
    limit: bucket(5, 1000),
    steps: [
      { at: 0, ask: 6, gets: 'impossible' },
      { at: 30 * DAY_MS, ask: 1, times: 5 },
      { at: 30 * DAY_MS, ask: 1, gets: { waitMs: 200 } },
    ],
  },
  {
    name: 'B17 a small quota has its whole quota as burst',
    limit: bucket(5, DAY_MS),
    steps: [
      { at: 0, ask: 1, times: 5 },
      { at: 0, ask: 1, gets: { waitMs: DAY_MS / 5 } },
    ],
  },
  {
    name: 'B19 the burst is not tied to the rate',
    limit: bucket(1, 2000, 5),
    steps: [
      { at: 0, ask: 5 },
      { at: 10_000, ask: 5 },
    ],
  },
  {
    name: 'B25 nothing can be taken from a debt, and asking does not lessen it',
    limit: bucket(50, MINUTE_MS),
    steps: [
      { at: 0, charge: 60, left: -10 },
      { at: 0, ask: 1, gets: { waitMs: 13_200 }, left: -10 },
    ],
  },
  {
    name: 'B27 the whole quota comes back in a window, not a unit',
    limit: bucket(100, 10_000),
    steps: [
      { at: 0, ask: 100 },
      { at: 10_000, ask: 50, left: 50 },
    ],
  },
  {
    name: 'C01 a step back of the clock takes nothing',
    limit: bucket(5, 1000),
    steps: [
      { at: 100_000, ask: 1, times: 3, left: 2 },
      { at: 89_000, ask: 1, left: 1 },
      { at: 89_200, ask: 1, left: 1 },
    ],
  },
  {
    name: 'C03 a step forward refills once, and the step back does not lock',
    limit: bucket(5, 5000),
    steps: [
      { at: 0, ask: 5, left: 0 },
      { at: 11_000, ask: 5, left: 0 },
      { at: 1000, ask: 1, gets: { waitMs: 1000 } },
      { at: 2000, ask: 1 },
    ],
  },
  {
    name: 'C07 a month is the 30 days that are enforced',
    limit: bucket(1, 30 * DAY_MS),
    steps: [
      { at: 0, ask: 1 },
      { at: 0, ask: 1, gets: { waitMs: 30 * DAY_MS } },
    ],
  },
  {
    name: 'L01 raising 10 to 20 with 10 used leaves 10',
    limit: bucket(10, MINUTE_MS),
    steps: [
      { at: 0, ask: 1, times: 10, left: 0 },
      { at: 0, reload: bucket(20, MINUTE_MS), left: 10 },
      { at: 0, ask: 1, times: 5, left: 5 },
    ],
  },
  {
    name: 'lowering 20 to 10 with 10 used leaves 0',
    limit: bucket(20, MINUTE_MS),
    steps: [
      { at: 0, ask: 10 },
      { at: 0, reload: bucket(10, MINUTE_MS), left: 0 },
      { at: 0, ask: 1, gets: { waitMs: 6000 } },
    ],
  },
  {
    name: 'L11 a changed limit holds at once for known callers: 30, then 0, then 150',
    limit: bucket(30, MINUTE_MS),
    steps: [
      { at: 0, ask: 1 },
      { at: 0, reload: bucket(0, MINUTE_MS), left: 0 },
      { at: 0, ask: 1, gets: { waitMs: MINUTE_MS } },
      { at: 0, reload: bucket(150, MINUTE_MS), left: 150 },
      { at: 0, ask: 1, times: 100, left: 50 },
    ],
  },
  {
    name: 'L13 what was denied is not counted when the limit is raised',
    limit: bucket(10, HOUR_MS),
    steps: [
      { at: 0, ask: 1, times: 10 },
      { at: 0, ask: 1, times: 40, gets: { waitMs: HOUR_MS / 10 } },
      { at: 0, reload: bucket(20, HOUR_MS), left: 10 },
      { at: 0, ask: 1, times: 10, left: 0 },
    ],
  },
  {
    name: 'L15 lowering the burst below what is there leaves a bucket that refills',
    limit: bucket(1, 1000, 5),
    steps: [
      { at: 0, reload: bucket(1, 1000, 2), left: 2 },
      { at: 2000, ask: 1, times: 2 },
      { at: 2000, ask: 1, gets: { waitMs: 1000 } },
      { at: 3000, ask: 1 },
    ],
  },
  {
    name: 'M09 a peek and a charge draw the line at the same place',
    limit: bucket(1, HOUR_MS),
    steps: [
      { at: 0, ask: 0, left: 1 },
      { at: 0, ask: 1 },
      { at: 0, ask: 0, left: 0 },
      { at: 0, ask: 1, gets: { waitMs: HOUR_MS } },
    ],
  },
  {
    name: 'X07 a charge after the fact goes through, at most a quota into debt, and the next request waits for it',
    limit: bucket(15, 15_000),
    steps: [
      { at: 0, charge: 40, left: -15 },
      { at: 0, ask: 1, gets: { waitMs: 16_000 } },
      { at: 16_000, ask: 1 },
    ],
  },
  {
    name: 'what is given back late stops at full',
    limit: bucket(10, 10_000),
    steps: [
      { at: 0, ask: 4, left: 6 },
      { at: 1000, giveBack: { cost: 2, chargedAtMs: 0 }, left: 9 },
      { at: 1000, giveBack: { cost: 2, chargedAtMs: 0 }, left: 10, restsInMs: Number.NEGATIVE_INFINITY },
    ],
  },
];

test.each(CASES)('$name', run);

describe('B07, B09 what comes back depends on the time, not on how often one asks', () => {
  test.each([
    {
      name: 'B07 1,200 a minute, every 10 ms for two minutes',
      limit: bucket(1200, MINUTE_MS),
      everyMs: 10,
      forMs: 2 * MINUTE_MS,
      units: 2400,
    },
    {
      name: 'B09 one a day, every second for 25 hours',
      limit: bucket(1, DAY_MS),
      everyMs: 1000,
      forMs: 25 * HOUR_MS,
      units: 1,
    },
    {
      name: 'B09 999 a second, every millisecond for ten seconds',
      limit: bucket(999, 1000),
      everyMs: 1,
      forMs: 10_000,
      units: 9990,
    },
    {
      name: 'one a year, every hour for a year',
      limit: bucket(1, YEAR_MS),
      everyMs: HOUR_MS,
      forMs: YEAR_MS,
      units: 1,
    },
  ])('$name', ({ limit, everyMs, forMs, units }) => {
    const subject = new Subject(limit);
    subject.charge(limit.burst);
    let admitted = 0;
    for (let atMs = 0; atMs <= forMs; atMs += everyMs) {
      while (subject.at(atMs).ask(1).outcome === 'allowed') admitted += 1;
    }
    expect(admitted).toBe(units);
  });
});

test('B11 a very slow bucket is full at first, at a real epoch time', () => {
  const limit = bucket(1, 10_000_000);
  const nowMs = 1_793_000_000_123;
  const first = tokenBucket.decide(limit, undefined, 1, nowMs);
  expect(first.decision).toEqual({ outcome: 'allowed', delayMs: 0 });
  const second = tokenBucket.decide(limit, first.state, 1, nowMs);
  expect(second.decision).toEqual({ outcome: 'denied', retryAfterMs: expect.closeTo(10_000_000, 3) });
});

test('C05 with the clock thrown 40 minutes ahead and back, the wait stays within capacity and debt', () => {
  const limit = bucket(2000, 1000, 5000);
  const ahead = tokenBucket.charge(limit, undefined, 5000, 40 * MINUTE_MS);
  const { decision } = tokenBucket.decide(limit, ahead, 5000, 0);
  expect(decision).toEqual({ outcome: 'denied', retryAfterMs: expect.closeTo(3500, 3) });

  const subject = new Subject(limit).at(40 * MINUTE_MS);
  subject.charge(5000);
  expect(subject.at(0).ask(5000)).toEqual({ outcome: 'denied', retryAfterMs: expect.closeTo(2500, 3) });
});

test('C11 a decision and everything shown beside it come from one instant', () => {
  const limit = bucket(2, 1000);
  const nowMs = 999.999;
  const first = tokenBucket.decide(limit, undefined, 1, nowMs);
  expect(tokenBucket.available(limit, first.state, nowMs)).toBe(1);
  expect(tokenBucket.atRestAtMs(limit, first.state)).toBeCloseTo(nowMs + 500, 6);
});

test('a million a second stay exact after a day without rest', () => {
  const limit = bucket(1_000_000, 1000);
  const subject = new Subject(limit).at(DAY_MS);
  for (let tick = 0; tick < 100; tick += 1) {
    subject.at(DAY_MS + tick);
    const expected = tick === 0 ? 1_000_000 : 1000;
    expect(Math.floor(subject.available)).toBe(expected);
    expect(subject.ask(expected).outcome).toBe('allowed');
    expect(subject.ask(1).outcome).toBe('denied');
  }
});
