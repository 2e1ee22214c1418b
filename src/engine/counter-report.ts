/**
 * What an owner says of one counter: what was decided, how much is left, and who else asks.
 */
import { available, decide, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { RETRY_GUESS_MS } from '../core/concurrency.ts';
import { capacity, countsSlots, type Decision } from '../core/decision.ts';
import { type Counter, restInMs, ruleLimitOf, told } from './counters.ts';
import type { CounterReport } from './messages.ts';

export interface Asking {
  readonly cost: number;
  readonly holder: string;
  readonly clock: LogicalClock;
}

/** `decision` is what was decided for it; levels are as they stand after that. */
export function report(counter: Counter, decision: Decision, { cost, holder, clock }: Asking): CounterReport {
  const { limit, state, demand, upstream } = counter;
  const nowMs = nowMsFor(limit, clock);
  const inBucket = decide(limit, state, cost, nowMs).decision;
  const again = told(counter, inBucket, cost);
  const left = Math.floor(available(limit, state, nowMs));
  const restMs = Math.max(0, restInMs(counter, clock));
  const isSlots = countsSlots(limit);
  return {
    id: counter.id,
    decision,
    limit: ruleLimitOf(counter),
    remaining: Math.min(Math.max(left, 0), capacity(ruleLimitOf(counter))),
    // Slots end with their requests, and nobody knows when: whoever has taken the last must not be believed to have it for long.
    resetMs: isSlots ? Math.min(restMs, RETRY_GUESS_MS) : restMs,
    fitsAgainInMs: again.outcome === 'denied' && !isSlots ? again.retryAfterMs : 0,
    activeHolders: demand.activeHolders,
    share: demand.share(holder) * (upstream?.told.share ?? 1),
  };
}
