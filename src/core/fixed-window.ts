/**
 * Fixed window: a count that starts again at each whole multiple of the window since 1970 in UTC.
 *
 * Cheap, and easy to explain to a caller ("100 an hour, on the hour"), at a price: a caller that spends its quota just before an
 * edge and again just after it has twice the quota through in an instant. All callers start again together, for the same reason.
 *
 * Its edges are wall-clock time, so it alone is given the raw clock. When that clock has stepped back, the count lies in a window to
 * come; it is read as the count of the present one: what was used stays used, and is forgotten when the present window ends. To make
 * that lasting, the owner runs `afterStepBack` of `core/algorithms` once.
 *
 * A debt ends with its window, like everything else here.
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
import { slackUnits, snapToWhole } from './rate.ts';

export interface FixedWindow {
  readonly startMs: number;
  /** Units charged since then, from 0 to twice the quota (a debt). */
  readonly count: number;
}

function decide(
  limit: Limit,
  state: FixedWindow | undefined,
  cost: number,
  nowMs: number,
): Step<FixedWindow> {
  const settled = decidedByLimitAlone(limit, cost);
  if (settled !== undefined) return { decision: settled, state };
  const startMs = startOf(limit, nowMs);
  const count = countSince(state, startMs) + cost;
  if (count > limit.quota + slackUnits(limit)) {
    return { decision: denied(startMs + limit.windowMs - nowMs), state };
  }
  return { decision: ALLOWED, state: { startMs, count } };
}

function available(limit: Limit, state: FixedWindow | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  return snapToWhole(limit.quota - countSince(state, startOf(limit, nowMs)), slackUnits(limit));
}

function used(limit: Limit, state: FixedWindow | undefined, nowMs: number): number {
  return limit.quota - available(limit, state, nowMs);
}

function charge(
  limit: Limit,
  state: FixedWindow | undefined,
  cost: number,
  nowMs: number,
): FixedWindow | undefined {
  if (limit.quota === 0 || cost === 0) return state;
  const startMs = startOf(limit, nowMs);
  return { startMs, count: Math.min(countSince(state, startMs) + cost, 2 * limit.quota) };
}

function giveBack(
  limit: Limit,
  state: FixedWindow | undefined,
  past: PastCharge,
  nowMs: number,
): FixedWindow | undefined {
  const startMs = startOf(limit, nowMs);
  if (state === undefined || past.chargedAtMs < startMs) return state;
  const count = countSince(state, startMs) - past.cost;
  return count <= 0 ? undefined : { startMs, count };
}

function atRestAtMs(limit: Limit, state: FixedWindow | undefined): number {
  return state === undefined ? Number.NEGATIVE_INFINITY : state.startMs + limit.windowMs;
}

/** The remainder is exact in floating point, which a quotient is not. */
function startOf(limit: Limit, nowMs: number): number {
  return nowMs - (nowMs % limit.windowMs);
}

function countSince(state: FixedWindow | undefined, startMs: number): number {
  return state === undefined || state.startMs < startMs ? 0 : state.count;
}

export const fixedWindow: Algorithm<FixedWindow> = { decide, available, used, charge, giveBack, atRestAtMs };
