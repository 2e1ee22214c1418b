/**
 * Token bucket as one number per counter: the instant at which the bucket is full again.
 *
 * With T the time in which one unit comes back (window / quota), a request of `cost` moves that instant `cost * T` later, and fits
 * when the result is at most `burst * T` ahead of now. Nothing drips in the background; a bucket whose instant has passed is full
 * and needs no storage. This is GCRA (ITU-T I.371, virtual scheduling).
 *
 * Rounding: the instant is a float64 in microseconds, each charge rounds it once to the nearest, and comparisons forgive the slack
 * of `core/rate`. What is owed is a difference of two near instants, never a product of an epoch and a rate.
 */
import {
  ALLOWED,
  type Algorithm,
  decidedByLimitAlone,
  denied,
  type Limit,
  type PastCharge,
  type Step,
} from './decision.ts';
import { movedBack, slackUs, snapToWhole, unitUsOf } from './rate.ts';

function decide(limit: Limit, fullAtUs: number | undefined, cost: number, nowMs: number): Step<number> {
  const settled = decidedByLimitAlone(limit, cost);
  if (settled !== undefined) return { decision: settled, state: fullAtUs };
  const unitUs = unitUsOf(limit);
  const nowUs = nowMs * 1000;
  const chargedUs = plausible(limit, fullAtUs, nowUs) + cost * unitUs;
  const excessUs = chargedUs - nowUs - limit.burst * unitUs;
  if (excessUs > slackUs(unitUs)) return { decision: denied(excessUs / 1000), state: fullAtUs };
  return { decision: ALLOWED, state: chargedUs };
}

function available(limit: Limit, fullAtUs: number | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  const unitUs = unitUsOf(limit);
  const nowUs = nowMs * 1000;
  const owedUs = plausible(limit, fullAtUs, nowUs) - nowUs;
  return snapToWhole(limit.burst - owedUs / unitUs, slackUs(unitUs) / unitUs);
}

function used(limit: Limit, fullAtUs: number | undefined, nowMs: number): number {
  return limit.quota === 0 ? 0 : limit.burst - available(limit, fullAtUs, nowMs);
}

function charge(limit: Limit, fullAtUs: number | undefined, cost: number, nowMs: number): number | undefined {
  if (limit.quota === 0 || cost === 0) return fullAtUs;
  const nowUs = nowMs * 1000;
  const chargedUs = plausible(limit, fullAtUs, nowUs) + cost * unitUsOf(limit);
  return Math.min(chargedUs, nowUs + owedUsMax(limit));
}

/** Time is worth what it is worth: what came back since the charge is not taken off the refund, and full is the end of it. */
function giveBack(
  limit: Limit,
  fullAtUs: number | undefined,
  past: PastCharge,
  nowMs: number,
): number | undefined {
  if (limit.quota === 0 || fullAtUs === undefined) return fullAtUs;
  const nowUs = nowMs * 1000;
  return movedBack(plausible(limit, fullAtUs, nowUs), past.cost, limit, nowUs);
}

function atRestAtMs(_limit: Limit, fullAtUs: number | undefined): number {
  return fullAtUs === undefined ? Number.NEGATIVE_INFINITY : fullAtUs / 1000;
}

/** The most that can be owed: a whole bucket, and a quota of debt below it. */
function owedUsMax(limit: Limit): number {
  return limit.burst * unitUsOf(limit) + limit.windowMs * 1000;
}

/** A bucket is full at the latest when the most that can be owed has come back, even if its instant was written under a faster clock. */
function plausible(limit: Limit, fullAtUs: number | undefined, nowUs: number): number {
  if (fullAtUs === undefined || fullAtUs <= nowUs) return nowUs;
  return Math.min(fullAtUs, nowUs + owedUsMax(limit));
}

export const tokenBucket: Algorithm<number> = { decide, available, used, charge, giveBack, atRestAtMs };
