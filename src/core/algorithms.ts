/**
 * The one place that knows every algorithm: which one a limit names, which clock it reads, and what survives a change of numbers.
 *
 * A counter keeps its state together with the limit it was written under, so the state is always of the kind that the limit's
 * algorithm reads; when a rule changes, `carryOver` comes first.
 */
import type { LogicalClock } from './clock.ts';
import { concurrency, hold as holdSlot, release as releaseSlot, type Slots } from './concurrency.ts';
import {
  type Algorithm,
  type AlgorithmName,
  capacity,
  countsSlots,
  type Limit,
  type PastCharge,
  type Step,
} from './decision.ts';
import { type FixedWindow, fixedWindow } from './fixed-window.ts';
import { leakyBucket } from './leaky-bucket.ts';
import { type SlidingLog, slidingLog } from './sliding-log.ts';
import { type SlidingWindow, slidingWindow } from './sliding-window.ts';
import { tokenBucket } from './token-bucket.ts';

/** Plain numbers, arrays and objects: it can be stored and sent as it is. */
export type CounterState = number | FixedWindow | SlidingWindow | SlidingLog | Slots;

type State = CounterState | undefined;

const ALGORITHMS: Readonly<Record<AlgorithmName, Algorithm<CounterState>>> = {
  token_bucket: tokenBucket,
  leaky_bucket: leakyBucket,
  fixed_window: fixedWindow,
  sliding_window: slidingWindow,
  sliding_log: slidingLog,
  concurrency,
};

const WINDOWS: ReadonlySet<AlgorithmName> = new Set(['fixed_window', 'sliding_window', 'sliding_log']);

export function decide(limit: Limit, state: State, cost: number, nowMs: number, id = ''): Step<CounterState> {
  return ALGORITHMS[limit.algorithm].decide(limit, state, cost, nowMs, id);
}

export function available(limit: Limit, state: State, nowMs: number): number {
  return ALGORITHMS[limit.algorithm].available(limit, state, nowMs);
}

export function used(limit: Limit, state: State, nowMs: number): number {
  return ALGORITHMS[limit.algorithm].used(limit, state, nowMs);
}

export function charge(limit: Limit, state: State, cost: number, nowMs: number): State {
  return ALGORITHMS[limit.algorithm].charge(limit, state, cost, nowMs);
}

export function giveBack(limit: Limit, state: State, past: PastCharge, nowMs: number): State {
  return ALGORITHMS[limit.algorithm].giveBack(limit, state, past, nowMs);
}

export function atRestAtMs(limit: Limit, state: State): number {
  return ALGORITHMS[limit.algorithm].atRestAtMs(limit, state);
}

/** Which reading of the owner's clock is `nowMs` for this limit: fixed windows have edges in UTC, all others count time that passed. */
export function clockOf(limit: Limit): 'raw' | 'logical' {
  return limit.algorithm === 'fixed_window' ? 'raw' : 'logical';
}

/** A limit, and the present instant on the clock that it wants. */
export interface DatedLimit {
  readonly limit: Limit;
  readonly nowMs: number;
}

/**
 * The state under changed numbers or another algorithm: a fresh counter with the units in use charged to it, at most its capacity.
 * The same numbers return the very state; a window of another length starts at 0. Slots stay with their requests, and are no units.
 */
export function carryOver(before: DatedLimit & { readonly state: State }, after: DatedLimit): State {
  if (before.state === undefined || hasSameNumbers(before.limit, after.limit)) return before.state;
  if (countsSlots(before.limit) || countsSlots(after.limit))
    return before.limit.algorithm === after.limit.algorithm ? before.state : undefined;
  if (isOtherWindow(before.limit, after.limit)) return undefined;
  const usedBefore = used(before.limit, before.state, before.nowMs);
  return charge(after.limit, undefined, Math.min(usedBefore, capacity(after.limit)), after.nowMs);
}

/**
 * The state to keep once the raw clock has stepped back to `nowMs`. A count on the raw clock that now lies in the future is moved to
 * the present window: otherwise it would be taken for the present one again and again, until the clock has caught up.
 */
export function afterStepBack(limit: Limit, state: State, nowMs: number): State {
  if (state === undefined || clockOf(limit) === 'logical') return state;
  return charge(limit, undefined, used(limit, state, nowMs), nowMs);
}

/** A request is in progress: its slot is held from now on, asked for or not. Counters of units have no slots. */
export function hold(limit: Limit, state: State, id: string, nowMs: number): State {
  return countsSlots(limit) ? holdSlot(limit, state as Slots | undefined, id, nowMs) : state;
}

/** A request is over: whatever slot it holds is free. */
export function release(limit: Limit, state: State, id: string, nowMs: number): State {
  return countsSlots(limit) ? releaseSlot(state as Slots | undefined, id, nowMs) : state;
}

/** Whether two limits mean the same. */
export function hasSameNumbers(a: Limit, b: Limit): boolean {
  return (
    a.algorithm === b.algorithm &&
    a.quota === b.quota &&
    a.windowMs === b.windowMs &&
    a.burst === b.burst &&
    a.maxDelayMs === b.maxDelayMs
  );
}

function isOtherWindow(before: Limit, after: Limit): boolean {
  return WINDOWS.has(before.algorithm) && WINDOWS.has(after.algorithm) && before.windowMs !== after.windowMs;
}

/** The reading of the owner's clock that this limit's algorithm counts by. */
export function nowMsFor(limit: Limit, clock: LogicalClock): number {
  return clockOf(limit) === 'raw' ? clock.rawMs : clock.logicalMs;
}
