/**
 * What owners denied, remembered in the isolate, so that a flood costs its owner almost nothing.
 *
 * A denial holds for that counter and for costs at least as large, until its retry time, and at most for a second (longer only when
 * so many isolates ask that even one call a second each would be a flood). After that a few questions go through: as many at once as
 * tokens can have come back, at least one. The rest are denied with the time last told. An allowance that charged something, a new ruleset
 * or a give-back of its own makes the isolate forget.
 */
import { capacity, countsSlots, type Limit } from '../core/decision.ts';
import { BoundedMap } from './bounded-map.ts';
import { InFlight } from './in-flight.ts';

/** How long a denial is believed without asking again: a give-back or a raised limit is seen within this. */
const HOLD_MS = 1_000;

/**
 * A slot is free when some request ends, which may be at once, so a full concurrency limit is hardly believed: as long as the word of
 * a freed slot may be on its way. That is enough to keep a flood from costing its owner a call each.
 */
const SLOTS_HOLD_MS = 50;

/** An owner spends at most this many calls a second on isolates that ask whether a denial still stands. */
export const RECHECKS_PER_SECOND = 400;

/** About 200 bytes each: a few megabytes at most. Beyond it, a displaced denial costs one owner call. */
const ENTRIES_MAX = 16_384;

interface Denial {
  readonly cost: number;
  readonly limit: Limit;
  /** Until then nothing is asked. */
  readonly holdUntilMs: number;
  /** The time for which the owner told the caller to wait. */
  readonly retryAtMs: number;
  readonly inFlight: InFlight;
}

export interface Denied {
  readonly counterId: string;
  readonly cost: number;
  readonly limit: Limit;
  readonly retryAfterMs: number;
  readonly activeHolders: number;
}

export class DenyMemory {
  readonly #denials = new BoundedMap<Denial>(ENTRIES_MAX);

  remember(denied: Denied, nowMs: number): void {
    const { counterId, limit, activeHolders } = denied;
    const known = this.#denials.get(counterId);
    const { cost, retryAfterMs: toldMs } = forSmallestCost(denied, known, nowMs);
    const retryAfterMs = countsSlots(limit) ? Math.min(SLOTS_HOLD_MS, toldMs) : toldMs;
    const holdMs = Math.max(HOLD_MS, (activeHolders / RECHECKS_PER_SECOND) * 1_000);
    const denial = {
      cost,
      limit,
      holdUntilMs: nowMs + Math.min(retryAfterMs, holdMs),
      retryAtMs: nowMs + retryAfterMs,
      inFlight: known?.inFlight ?? new InFlight(),
    };
    this.#denials.set(counterId, denial);
  }

  /** How long a request of this cost is denied without asking; `undefined` when its owner is to be asked. */
  retryAfterMs(counterId: string, cost: number, nowMs: number): number | undefined {
    const denial = this.#denials.get(counterId);
    if (denial === undefined || !covers(denial, cost)) return undefined;
    const leftMs = denial.retryAtMs + extraWaitMs(denial.limit, cost - denial.cost) - nowMs;
    if (nowMs < denial.holdUntilMs) return leftMs;
    return denial.inFlight.count(nowMs) < rechecksMax(denial, nowMs) ? undefined : Math.max(1, leftMs);
  }

  /** The questions in flight on a remembered counter; `undefined` while it is not remembered. */
  rechecks(counterId: string): InFlight | undefined {
    return this.#denials.get(counterId)?.inFlight;
  }

  forget(counterId: string): void {
    this.#denials.delete(counterId);
  }

  forgetAll(): void {
    this.#denials.clear();
  }
}

/** A denial of a larger cost, said of the smaller one that is remembered: it must not make that one wait for more than its own units. */
function forSmallestCost(
  { cost, limit, retryAfterMs }: Denied,
  known: Denial | undefined,
  nowMs: number,
): Pick<Denied, 'cost' | 'retryAfterMs'> {
  if (known === undefined || isOver(known, nowMs) || cost <= known.cost) return { cost, retryAfterMs };
  if (isSliding(limit)) return { cost: known.cost, retryAfterMs: known.retryAtMs - nowMs };
  const knownWaitMs = retryAfterMs - extraWaitMs(limit, cost - known.cost);
  return knownWaitMs > 0 ? { cost: known.cost, retryAfterMs: knownWaitMs } : { cost, retryAfterMs };
}

/**
 * Equal and larger costs that the counter can hold; a quota of 0 denies them all alike. How long a larger one waits on a sliding
 * count, only its owner knows.
 */
function covers({ cost: deniedCost, limit }: Denial, cost: number): boolean {
  if (cost === deniedCost) return true;
  const couldFit = limit.quota === 0 || cost <= capacity(limit);
  return cost > deniedCost && couldFit && !isSliding(limit);
}

function isSliding({ algorithm }: Limit): boolean {
  return algorithm === 'sliding_window' || algorithm === 'sliding_log';
}

/** How much longer a request waits that costs so much more: a token bucket fills unit by unit, the others open for all costs at once. */
function extraWaitMs({ algorithm, windowMs, quota }: Limit, moreUnits: number): number {
  return algorithm === 'token_bucket' && quota > 0 ? (moreUnits * windowMs) / quota : 0;
}

function isOver(denial: Denial, nowMs: number): boolean {
  return nowMs >= denial.retryAtMs;
}

/** One until the retry time; from then on as many as can have come back since, which for a window may be its whole quota. */
function rechecksMax({ limit, cost, retryAtMs }: Denial, nowMs: number): number {
  if (nowMs < retryAtMs) return 1;
  const refills = limit.algorithm === 'token_bucket' || limit.algorithm === 'leaky_bucket';
  const cameBack = refills ? ((nowMs - retryAtMs) * limit.quota) / limit.windowMs : limit.quota;
  return 1 + Math.floor(cameBack / Math.max(1, cost));
}
