/**
 * Sliding log: every charge with its time, so that at any instant exactly the charges of the last window count.
 *
 * Charges of the same instant stay apart, because Worker clocks stand still between I/O and a whole burst can carry one time. It is
 * exact and it is the dearest algorithm: the log is at most as long as the quota is large (twice that in debt), and an allowance
 * copies it, so that a decision that is not acted on leaves no trace: 1.5 microseconds at a quota of 100, 50 at 10,000, which is why
 * `policy/schema` caps it there. A denial copies nothing.
 *
 * Rounding: times are compared with the slack of `core/rate`.
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
import { slackUnits, slackUs, snapToWhole, unitUsOf } from './rate.ts';

export interface SlidingLog {
  /** When each charge was made, the oldest first. */
  readonly timesMs: readonly number[];
  /** What each charge cost, in the same order; all above 0. */
  readonly costs: readonly number[];
  readonly totalCost: number;
}

function decide(limit: Limit, state: SlidingLog | undefined, cost: number, nowMs: number): Step<SlidingLog> {
  const settled = decidedByLimitAlone(limit, cost);
  if (settled !== undefined) return { decision: settled, state };
  const { from, totalCost } = liveCharges(limit, state, nowMs);
  const excess = totalCost + cost - limit.quota;
  if (state !== undefined && excess > slackUnits(limit)) {
    return { decision: denied(waitMs(limit, state, { from, excess }, nowMs)), state };
  }
  return { decision: ALLOWED, state: append(limit, state, cost, nowMs) };
}

function available(limit: Limit, state: SlidingLog | undefined, nowMs: number): number {
  if (limit.quota === 0) return 0;
  return snapToWhole(limit.quota - liveCharges(limit, state, nowMs).totalCost, slackUnits(limit));
}

function used(limit: Limit, state: SlidingLog | undefined, nowMs: number): number {
  return limit.quota - available(limit, state, nowMs);
}

function charge(
  limit: Limit,
  state: SlidingLog | undefined,
  cost: number,
  nowMs: number,
): SlidingLog | undefined {
  const untilDeepestDebt = 2 * limit.quota - liveCharges(limit, state, nowMs).totalCost;
  const charged = Math.min(cost, untilDeepestDebt);
  return charged <= 0 ? state : append(limit, state, charged, nowMs);
}

/** Takes the cost out of the charges made at that very time; one that has left the window, or was not made, gives nothing back. */
function giveBack(
  limit: Limit,
  state: SlidingLog | undefined,
  past: PastCharge,
  nowMs: number,
): SlidingLog | undefined {
  if (state === undefined) return undefined;
  const timesMs: number[] = [];
  const costs: number[] = [];
  let owedBack = past.cost;
  let totalCost = 0;
  for (let i = liveCharges(limit, state, nowMs).from; i < state.timesMs.length; i += 1) {
    const timeMs = state.timesMs[i]!;
    const refunded = timeMs === past.chargedAtMs ? Math.min(state.costs[i]!, owedBack) : 0;
    owedBack -= refunded;
    const cost = state.costs[i]! - refunded;
    if (cost === 0) continue;
    timesMs.push(timeMs);
    costs.push(cost);
    totalCost += cost;
  }
  return timesMs.length === 0 ? undefined : { timesMs, costs, totalCost };
}

function atRestAtMs(limit: Limit, state: SlidingLog | undefined): number {
  const newestMs = state?.timesMs.at(-1);
  return newestMs === undefined ? Number.NEGATIVE_INFINITY : newestMs + limit.windowMs;
}

/** Where the charges that still count begin, and what they cost together. */
function liveCharges(
  limit: Limit,
  state: SlidingLog | undefined,
  nowMs: number,
): { from: number; totalCost: number } {
  if (state === undefined) return { from: 0, totalCost: 0 };
  const { timesMs, costs } = state;
  const oldestLiveMs = nowMs - limit.windowMs + slackUs(unitUsOf(limit)) / 1000;
  let from = 0;
  let totalCost = state.totalCost;
  while (from < timesMs.length && timesMs[from]! <= oldestLiveMs) {
    totalCost -= costs[from]!;
    from += 1;
  }
  return { from, totalCost: from === timesMs.length ? 0 : totalCost };
}

/** The wait until the oldest charges that together make up the excess have left; no charge stays longer than a window. */
function waitMs(
  limit: Limit,
  state: SlidingLog,
  { from, excess }: { from: number; excess: number },
  nowMs: number,
): number {
  const slack = slackUnits(limit);
  let freed = 0;
  let last = from;
  for (; last < state.costs.length - 1; last += 1) {
    freed += state.costs[last]!;
    if (freed >= excess - slack) break;
  }
  return Math.min(limit.windowMs, state.timesMs[last]! + limit.windowMs - nowMs);
}

function append(limit: Limit, state: SlidingLog | undefined, cost: number, nowMs: number): SlidingLog {
  if (state === undefined) return { timesMs: [nowMs], costs: [cost], totalCost: cost };
  const { from, totalCost } = liveCharges(limit, state, nowMs);
  const timesMs = state.timesMs.slice(from);
  const costs = state.costs.slice(from);
  // Never before the newest: the order is what lets old charges leave from the front, whatever the clock did.
  timesMs.push(Math.max(nowMs, timesMs.at(-1) ?? nowMs));
  costs.push(cost);
  return { timesMs, costs, totalCost: totalCost + cost };
}

export const slidingLog: Algorithm<SlidingLog> = { decide, available, used, charge, giveBack, atRestAtMs };
