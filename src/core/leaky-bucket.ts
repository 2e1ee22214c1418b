/**
 * Leaky bucket: a queue that lets units out at a constant rate, as one number: the instant at which the next request may leave.
 *
 * A request is allowed when everything admitted before it has left within `maxDelayMs`, and is told how long to wait for that. Its
 * own cost is time that those behind it wait. So n requests at one instant leave after 0, T, 2T ..., T being window / quota,
 * until the delay is used up; and a dear request may be longer than the delay, as long as the queue before it is not.
 *
 * - `available` is how many requests of cost 1 would be accepted at this instant: at rest `floor(maxDelayMs / T) + 1`, at most the
 *   quota. A request of cost n is accepted when it is at least 1, not n.
 * - `used` is the length of the queue in units: 0 at rest.
 * - A cost above the quota is impossible: alone it would hold the door for more than a window.
 *
 * Rounding: as in `core/token-bucket`.
 */
import {
  type Algorithm,
  decidedByLimitAlone,
  denied,
  type Limit,
  type PastCharge,
  type Step,
} from './decision.ts';
import { movedBack, slackUs, snapToWhole, unitUsOf } from './rate.ts';

function decide(limit: Limit, nextAtUs: number | undefined, cost: number, nowMs: number): Step<number> {
  const settled = decidedByLimitAlone(limit, cost);
  if (settled !== undefined) return { decision: settled, state: nextAtUs };
  const unitUs = unitUsOf(limit);
  const nowUs = nowMs * 1000;
  const startUs = plausible(limit, nextAtUs, nowUs);
  const delayUs = startUs - nowUs;
  const excessUs = delayUs - limit.maxDelayMs * 1000;
  if (excessUs > slackUs(unitUs)) return { decision: denied(excessUs / 1000), state: nextAtUs };
  const delayMs = Math.min(delayUs / 1000, limit.maxDelayMs);
  return { decision: { outcome: 'allowed', delayMs }, state: startUs + cost * unitUs };
}

function available(limit: Limit, nextAtUs: number | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  const unitUs = unitUsOf(limit);
  const nowUs = nowMs * 1000;
  const spareUs = limit.maxDelayMs * 1000 - (plausible(limit, nextAtUs, nowUs) - nowUs);
  return Math.min(limit.quota, Math.floor((spareUs + slackUs(unitUs)) / unitUs) + 1);
}

function used(limit: Limit, nextAtUs: number | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  const unitUs = unitUsOf(limit);
  const nowUs = nowMs * 1000;
  return snapToWhole((plausible(limit, nextAtUs, nowUs) - nowUs) / unitUs, slackUs(unitUs) / unitUs);
}

function charge(limit: Limit, nextAtUs: number | undefined, cost: number, nowMs: number): number | undefined {
  if (limit.quota === 0 || cost === 0) return nextAtUs;
  const nowUs = nowMs * 1000;
  return Math.min(plausible(limit, nextAtUs, nowUs) + cost * unitUsOf(limit), nowUs + queueUsMax(limit));
}

function giveBack(
  limit: Limit,
  nextAtUs: number | undefined,
  past: PastCharge,
  nowMs: number,
): number | undefined {
  if (limit.quota === 0 || nextAtUs === undefined) return nextAtUs;
  const nowUs = nowMs * 1000;
  return movedBack(plausible(limit, nextAtUs, nowUs), past.cost, limit, nowUs);
}

function atRestAtMs(_limit: Limit, nextAtUs: number | undefined): number {
  return nextAtUs === undefined ? Number.NEGATIVE_INFINITY : nextAtUs / 1000;
}

/** The longest queue: one that has just accepted its dearest request at its longest delay. That is also a quota of debt. */
function queueUsMax(limit: Limit): number {
  return (limit.maxDelayMs + limit.windowMs) * 1000;
}

/** No queue is longer than the longest, even if its end was written under a faster clock. */
function plausible(limit: Limit, nextAtUs: number | undefined, nowUs: number): number {
  if (nextAtUs === undefined || nextAtUs <= nowUs) return nowUs;
  return Math.min(nextAtUs, nowUs + queueUsMax(limit));
}

export const leakyBucket: Algorithm<number> = { decide, available, used, charge, giveBack, atRestAtMs };
