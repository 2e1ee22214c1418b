/**
 * The words that every algorithm shares: what a limit is, what a decision is, and the shape of an algorithm.
 *
 * An algorithm is arithmetic over numbers. It reads no clock, keeps no memory and throws nothing: it takes the state that it
 * returned last time and the present instant, and says what the next state would be. The caller decides whether to keep that state,
 * which is what makes "all counters or none" a matter of not assigning.
 */

export type AlgorithmName =
  | 'token_bucket'
  | 'leaky_bucket'
  | 'fixed_window'
  | 'sliding_window'
  | 'sliding_log'
  | 'concurrency';

/** The numbers of a rule. They are checked once, by `policy/schema`; here they are taken as sound. */
export interface Limit {
  readonly algorithm: AlgorithmName;
  /** Whole units admitted per window, >= 0 (`concurrency`: requests at once). A quota of 0 denies every request. */
  readonly quota: number;
  /** Length of the window in whole milliseconds, >= 1 (`concurrency`: how long a slot is held that nobody renews). */
  readonly windowMs: number;
  /** The most units that fit in one instant (`token_bucket`); the other algorithms have `burst === quota`. */
  readonly burst: number;
  /** The longest that a request may be held back before it goes on (`leaky_bucket`); 0 for the others. */
  readonly maxDelayMs: number;
}

/**
 * What was decided about one request on one counter.
 *
 * - `allowed`: it may go on after `delayMs` (0 but for `leaky_bucket`).
 * - `denied`: the same request fits after `retryAfterMs` if nothing else is charged meanwhile; always > 0. Of `concurrency` it is a guess.
 * - `impossible`: its cost is above what the counter can ever hold, so no wait helps.
 */
export type Decision =
  | { readonly outcome: 'allowed'; readonly delayMs: number }
  | { readonly outcome: 'denied'; readonly retryAfterMs: number }
  | { readonly outcome: 'impossible' };

export const ALLOWED: Decision = Object.freeze({ outcome: 'allowed', delayMs: 0 });
export const IMPOSSIBLE: Decision = Object.freeze({ outcome: 'impossible' });

export function denied(retryAfterMs: number): Decision {
  return { outcome: 'denied', retryAfterMs };
}

/**
 * What the numbers alone decide, whatever has been counted; `undefined` when the counter has to be asked.
 *
 * No wait helps against a quota of 0, but a rule is often set to 0 for a while ("switch this off until tonight"), so it denies
 * rather than calls the request impossible, and asks for a whole window of patience.
 */
export function decidedByLimitAlone(limit: Limit, cost: number): Decision | undefined {
  if (cost === 0) return ALLOWED;
  if (limit.quota === 0) return denied(limit.windowMs);
  if (cost > capacity(limit)) return IMPOSSIBLE;
  return undefined;
}

/** A decision and the state to keep if it is acted on. After anything but `allowed`, `state` is the state that was given. */
export interface Step<State> {
  readonly decision: Decision;
  readonly state: State | undefined;
}

/**
 * One algorithm. `state` is what an earlier call returned; `undefined` means never seen, a full quota. `nowMs` is on the clock
 * that the state was written under (see `core/clock`). `cost` is a whole number >= 0, and 0 is a peek: it is always allowed,
 * and changes nothing. `id` names the request; only `concurrency` asks who holds what.
 */
export interface Algorithm<State> {
  decide(limit: Limit, state: State | undefined, cost: number, nowMs: number, id?: string): Step<State>;
  /**
   * Units that could be spent now: from -quota (a debt) to the capacity; may be fractional. A request of cost 1 is allowed
   * exactly when this is at least 1. So is one of cost n at n, but for `leaky_bucket` (see there).
   */
  available(limit: Limit, state: State | undefined, nowMs: number): number;
  /**
   * Units in use now: 0 at rest, never negative, above the capacity by a debt. It is `capacity(limit) - available` but for
   * `leaky_bucket`, which accepts less at once than it holds.
   */
  used(limit: Limit, state: State | undefined, nowMs: number): number;
  /** Charges `cost` without asking, into debt if need be: at most one quota below empty, what is beyond is forgiven. */
  charge(limit: Limit, state: State | undefined, cost: number, nowMs: number): State | undefined;
  /** Takes back a charge of `cost` made at `chargedAtMs`, never beyond full; a window takes back only what it still counts. */
  giveBack(limit: Limit, state: State | undefined, charge: PastCharge, nowMs: number): State | undefined;
  /** The instant from which the state says nothing (the counter is full again) and may be dropped; `-Infinity` for `undefined`. */
  atRestAtMs(limit: Limit, state: State | undefined): number;
}

export interface PastCharge {
  readonly cost: number;
  readonly chargedAtMs: number;
  /** The request that was charged (`concurrency`). */
  readonly id?: string;
}

/**
 * The most units that a counter of this limit ever holds, and so the dearest request that it can admit: the burst of a token
 * bucket, the quota of everything else. A quota of 0 holds nothing, whatever its burst says.
 */
export function capacity(limit: Limit): number {
  if (limit.quota === 0) return 0;
  return limit.algorithm === 'token_bucket' ? limit.burst : limit.quota;
}

/** Whether the limit is about requests in progress, and not about units over time. */
export function countsSlots({ algorithm }: Limit): boolean {
  return algorithm === 'concurrency';
}

/** What a request of this cost takes of a counter: its cost, or one slot. A peek takes nothing of either. */
export function takenBy(limit: Limit, cost: number): number {
  return countsSlots(limit) ? Math.min(cost, 1) : cost;
}
