/**
 * How far the two counts of `sliding_window` are from the exact `sliding_log`, on a generated heavy-tailed trace.
 *
 * 270,000 sources send for ten minutes against a limit of 100 a minute. Their rates follow a Pareto law (shape 1.2), so most send almost
 * nothing and a few send up to five times the limit; they send in bursts of random length. Two comparisons:
 *
 * - *The estimate*: every request is counted, refused or not, and the estimate is wrong when it and the true count lie on two
 *   sides of the limit. The published figures for this approximation are of that kind: on 400 million real requests from 270,000
 *   sources, 0.003% wrong, rates within 6% on average, and no source refused that was within its limit.
 * - *The limiter*: only admitted requests are counted, each algorithm with its own history, and the log's answer counts as right.
 *   Its share of wrong decisions is not comparable: of a source far above the limit the two admit as much, but not the same
 *   requests, so the share grows with the traffic of such sources (here 17% of all, on purpose). What a caller notices is the rate
 *   admitted, and whether one within its limit is refused.
 */
import { expect, test } from 'vitest';
import type { Limit } from '../../src/core/decision.ts';
import { type SlidingLog, slidingLog } from '../../src/core/sliding-log.ts';
import { type SlidingWindow, slidingWindow } from '../../src/core/sliding-window.ts';
import { limitOf, MINUTE_MS } from './subject.ts';

const SEED = 20_261_103;
const SOURCES = 270_000;
const TRACE_MS = 10 * MINUTE_MS;
const QUOTA = 100;
const APPROXIMATE = limitOf('sliding_window', QUOTA, MINUTE_MS);
const EXACT: Limit = { ...APPROXIMATE, algorithm: 'sliding_log' };

const RATE_SHAPE = 1.2;
const SLOWEST_PER_MINUTE = 0.2;
const FASTEST_PER_MINUTE = 5 * QUOTA;
const BURST_MEAN_MAX = 4;

/** SplitMix32: small, seeded, and even enough for a trace. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x9e3779b9) | 0;
    let mixed = Math.imul(state ^ (state >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 2 ** 32;
  };
}

/**
 * What this trace measures, and what is accepted: a tenth more, since a runtime may round `Math.log` otherwise. Three other seeds
 * gave figures at most a quarter above these, and 3 sources within their limit that were ever refused.
 */
const THRESHOLDS = {
  /** Share of requests at which the estimate is on the wrong side of the limit. */
  estimatesWrong: { measured: 0.00384, threshold: 0.0042 },
  /** Mean relative error of the estimate, over the sources that were limited. */
  estimateError: { measured: 0.0531, threshold: 0.058 },
  /** Share of decisions that differ from the log's: of all, and of those about sources within the limit. */
  decisionsWrong: { measured: 0.0389, threshold: 0.043 },
  decisionsWrongWithin: { measured: 8.2e-6, threshold: 9e-6 },
  /** Relative difference of the admitted rate, over the sources that were limited: the mean, and the worst. */
  admittedError: { measured: 0.013, threshold: 0.0143 },
  admittedErrorMax: { measured: 0.0605, threshold: 0.067 },
  /** Sources that the log never refused and the approximation did; all of them came within a tenth of the limit. */
  withinEverRefused: { measured: 10, threshold: 11 },
} as const;

/** The times at which one source sends, in whole milliseconds, the first window's phase at random. */
function* sendTimes(random: () => number): Generator<number> {
  const pareto = SLOWEST_PER_MINUTE / (1 - random()) ** (1 / RATE_SHAPE);
  const perMinute = Math.min(pareto, FASTEST_PER_MINUTE);
  const burstMean = 1 + random() * (BURST_MEAN_MAX - 1);
  const gapMeanMs = (MINUTE_MS * burstMean) / perMinute;
  for (let atMs = 0; ; ) {
    atMs += -Math.log(1 - random()) * gapMeanMs;
    if (atMs >= TRACE_MS) return;
    do yield Math.floor(atMs);
    while (random() < 1 - 1 / burstMean);
  }
}

interface Outcome {
  readonly requests: number;
  readonly estimatesWrong: number;
  /** Mean of |estimate - true count| / true count over the requests of this source. */
  readonly estimateError: number;
  /** The most that this source ever sent within one window. */
  readonly peak: number;
  readonly decisionsWrong: number;
  readonly admitted: number;
  readonly admittedByLog: number;
}

/** Limits that never refuse anything here, to count with. */
const COUNTED = limitOf('sliding_window', 100 * QUOTA, MINUTE_MS);
const COUNTED_EXACTLY: Limit = { ...COUNTED, algorithm: 'sliding_log' };

function compareEstimates(
  times: readonly number[],
): Pick<Outcome, 'estimatesWrong' | 'estimateError' | 'peak'> {
  let window: SlidingWindow | undefined;
  let log: SlidingLog | undefined;
  let estimatesWrong = 0;
  let errors = 0;
  let peak = 0;
  for (const atMs of times) {
    window = slidingWindow.charge(COUNTED, window, 1, atMs);
    log = slidingLog.charge(COUNTED_EXACTLY, log, 1, atMs);
    const estimate = slidingWindow.used(COUNTED, window, atMs);
    const count = slidingLog.used(COUNTED_EXACTLY, log, atMs);
    if (estimate > QUOTA !== count > QUOTA) estimatesWrong += 1;
    peak = Math.max(peak, count);
    errors += Math.abs(estimate - count) / count;
  }
  return { estimatesWrong, estimateError: errors / times.length, peak };
}

function compareDecisions(
  times: readonly number[],
): Pick<Outcome, 'decisionsWrong' | 'admitted' | 'admittedByLog'> {
  let window: SlidingWindow | undefined;
  let log: SlidingLog | undefined;
  let [decisionsWrong, admitted, admittedByLog] = [0, 0, 0];
  for (const atMs of times) {
    const approximate = slidingWindow.decide(APPROXIMATE, window, 1, atMs);
    const exact = slidingLog.decide(EXACT, log, 1, atMs);
    window = approximate.state;
    log = exact.state;
    if (approximate.decision.outcome === 'allowed') admitted += 1;
    if (exact.decision.outcome === 'allowed') admittedByLog += 1;
    if (approximate.decision.outcome !== exact.decision.outcome) decisionsWrong += 1;
  }
  return { decisionsWrong, admitted, admittedByLog };
}

function mean(outcomes: readonly Outcome[], of: (outcome: Outcome) => number): number {
  return total(outcomes, of) / outcomes.length;
}

function total(outcomes: readonly Outcome[], of: (outcome: Outcome) => number): number {
  return outcomes.reduce((sum, outcome) => sum + of(outcome), 0);
}

test('sliding_window stays close to sliding_log on a heavy-tailed trace', { timeout: 60_000 }, () => {
  const random = seeded(SEED);
  const outcomes: Outcome[] = [];
  for (let source = 0; source < SOURCES; source += 1) {
    // One that would send nothing in this time is drawn again, as one in five is.
    let times = [...sendTimes(random)];
    while (times.length === 0) times = [...sendTimes(random)];
    outcomes.push({ requests: times.length, ...compareEstimates(times), ...compareDecisions(times) });
  }
  const within = outcomes.filter((one) => one.admittedByLog === one.requests);
  const limited = outcomes.filter((one) => one.admittedByLog < one.requests);
  const refused = within.filter((one) => one.admitted < one.requests);
  const requests = total(outcomes, (one) => one.requests);
  const rateError = (one: Outcome) => Math.abs(one.admitted - one.admittedByLog) / one.admittedByLog;
  const figures = {
    sources: outcomes.filter((one) => one.requests > 0).length,
    requests,
    limitedSources: limited.length,
    limitedTraffic: total(limited, (one) => one.requests) / requests,
    estimatesWrong: total(outcomes, (one) => one.estimatesWrong) / requests,
    estimateError: mean(limited, (one) => one.estimateError),
    decisionsWrong: total(outcomes, (one) => one.decisionsWrong) / requests,
    decisionsWrongWithin: total(within, (one) => one.decisionsWrong) / total(within, (one) => one.requests),
    admittedError: mean(limited, rateError),
    admittedErrorMax: Math.max(...limited.map(rateError)),
    withinEverRefused: refused.length,
    lowestPeakRefused: Math.min(...refused.map((one) => one.peak)) / QUOTA,
  };
  const place = JSON.stringify({ seed: SEED, ...figures });
  expect(figures.sources, place).toBe(SOURCES);
  expect(figures.requests, place).toBeGreaterThan(3_000_000);
  expect(figures.limitedSources, place).toBeGreaterThan(250);
  for (const [name, { threshold }] of Object.entries(THRESHOLDS)) {
    expect(figures[name as keyof typeof THRESHOLDS], `${name} of ${place}`).toBeLessThanOrEqual(threshold);
  }
  expect(figures.lowestPeakRefused, place).toBeGreaterThan(0.9);
});
