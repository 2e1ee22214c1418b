/**
 * Sliding window, approximated from two counts: the window in progress, and the one before it.
 *
 * The window that ends now covers all of the present count and the last part of the previous one, whose requests are taken as evenly
 * spread: estimate = previous * (W - elapsed) / W + current. The estimate is not rounded, so one unit frees up as often as the
 * previous count says, and a request fits from where that straight line meets the limit, in this window or the next.
 * Rounding: that instant is compared with now, with the slack of `core/rate`.
 *
 * How far the approximation is from `sliding_log` is measured in its accuracy test. It may refuse a caller that bunches its requests
 * at the end of one window and the beginning of the next, and never admits more than twice the quota in any one window length.
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
import { slackUs, unitUsOf } from './rate.ts';

export interface SlidingWindow {
  /** When the window in progress began: a whole multiple of the window since the clock's epoch. */
  readonly startMs: number;
  /** Units charged in the window before that. */
  readonly previous: number;
  /** Units charged since `startMs`. */
  readonly current: number;
}

function decide(
  limit: Limit,
  state: SlidingWindow | undefined,
  cost: number,
  nowMs: number,
): Step<SlidingWindow> {
  const settled = decidedByLimitAlone(limit, cost);
  if (settled !== undefined) return { decision: settled, state };
  const present = presentWindow(limit, state, nowMs);
  const retryAfterMs = waitMs(limit, present, cost, nowMs);
  if (retryAfterMs > slackMs(limit)) return { decision: denied(retryAfterMs), state };
  return { decision: ALLOWED, state: { ...present, current: present.current + cost } };
}

function available(limit: Limit, state: SlidingWindow | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  const present = presentWindow(limit, state, nowMs);
  const left = limit.quota - estimate(limit, present, nowMs);
  // A whole number that a request would get shows as such, though rounding may have left it a little short.
  const whole = Math.ceil(left) + 0;
  return waitMs(limit, present, whole, nowMs) <= slackMs(limit) ? whole : left;
}

function used(limit: Limit, state: SlidingWindow | undefined, nowMs: number): number {
  return limit.quota - available(limit, state, nowMs);
}

function charge(
  limit: Limit,
  state: SlidingWindow | undefined,
  cost: number,
  nowMs: number,
): SlidingWindow | undefined {
  if (limit.quota === 0 || cost === 0) return state;
  const present = presentWindow(limit, state, nowMs);
  const untilDeepestDebt = Math.max(0, 2 * limit.quota - estimate(limit, present, nowMs));
  return { ...present, current: present.current + Math.min(cost, untilDeepestDebt) };
}

function giveBack(
  limit: Limit,
  state: SlidingWindow | undefined,
  past: PastCharge,
  nowMs: number,
): SlidingWindow | undefined {
  if (state === undefined) return undefined;
  const present = presentWindow(limit, state, nowMs);
  const { startMs, previous, current } = present;
  if (past.chargedAtMs >= startMs) return orAtRest({ ...present, current: Math.max(0, current - past.cost) });
  if (past.chargedAtMs >= startMs - limit.windowMs) {
    return orAtRest({ ...present, previous: Math.max(0, previous - past.cost) });
  }
  return state;
}

function atRestAtMs(limit: Limit, state: SlidingWindow | undefined): number {
  if (state === undefined) return Number.NEGATIVE_INFINITY;
  return state.startMs + (state.current > 0 ? 2 : 1) * limit.windowMs;
}

/** The two counts as they stand at `nowMs`. A window that lies in the future, after a step back of the clock, is the present one. */
function presentWindow(limit: Limit, state: SlidingWindow | undefined, nowMs: number): SlidingWindow {
  const startMs = nowMs - (nowMs % limit.windowMs);
  if (state === undefined) return { startMs, previous: 0, current: 0 };
  if (state.startMs >= startMs) return { startMs, previous: state.previous, current: state.current };
  const isNextWindow = startMs - state.startMs < 1.5 * limit.windowMs;
  return { startMs, previous: isNextWindow ? state.current : 0, current: 0 };
}

function estimate(limit: Limit, { startMs, previous, current }: SlidingWindow, nowMs: number): number {
  const elapsedMs = nowMs - startMs;
  return (previous * (limit.windowMs - elapsedMs)) / limit.windowMs + current;
}

/** How long until the falling estimate leaves room for `cost`; 0 or less when it does already. */
function waitMs(
  limit: Limit,
  { startMs, previous, current }: SlidingWindow,
  cost: number,
  nowMs: number,
): number {
  const { quota, windowMs } = limit;
  const elapsedMs = nowMs - startMs;
  const roomBesideCurrent = quota - cost - current;
  if (roomBesideCurrent < 0) {
    // Too much was charged in this window; in the next it is the previous count, and falls.
    return windowMs - elapsedMs + windowMs * (1 - (quota - cost) / current);
  }
  return previous === 0 ? 0 : windowMs * (1 - roomBesideCurrent / previous) - elapsedMs;
}

function slackMs(limit: Limit): number {
  return slackUs(unitUsOf(limit)) / 1000;
}

function orAtRest(window: SlidingWindow): SlidingWindow | undefined {
  return window.previous === 0 && window.current === 0 ? undefined : window;
}

export const slidingWindow: Algorithm<SlidingWindow> = {
  decide,
  available,
  used,
  charge,
  giveBack,
  atRestAtMs,
};
