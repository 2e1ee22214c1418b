/**
 * All the counters of one question decided together, all or nothing: the enforced ones decide, and when they admit, every one that admits is
 * charged, shadow counters among them.
 */
import { decide, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Decision } from '../core/decision.ts';
import { type Counter, told } from './counters.ts';

export interface Asked {
  readonly counter: Counter;
  readonly shadow: boolean;
}

export interface Asking {
  readonly id: string;
  readonly cost: number;
}

export interface Charge {
  readonly counter: Counter;
  readonly cost: number;
  readonly at: LogicalClock;
}

export interface Decided {
  readonly outcome: Decision['outcome'];
  /** One for each counter, in their order. */
  readonly decisions: readonly Decision[];
  readonly charges: readonly Charge[];
}

export function decideAll(counters: readonly Asked[], { id, cost }: Asking, clock: LogicalClock): Decided {
  const steps = counters.map(({ counter: { limit, state } }) =>
    decide(limit, state, cost, nowMsFor(limit, clock), id),
  );
  const decisions = steps.map(({ decision }, at) => told(counters[at]!.counter, decision, cost));
  const outcome = worstOf(decisions.filter((_, at) => !counters[at]!.shadow));
  const charges: Charge[] = [];
  if (outcome === 'allowed' && cost > 0) {
    for (const [at, { counter }] of counters.entries()) {
      const { decision, state } = steps[at]!;
      if (decision.outcome !== 'allowed') continue;
      counter.state = state;
      charges.push({ counter, cost, at: clock });
    }
  }
  return { outcome, decisions, charges };
}

function worstOf(decisions: readonly Decision[]): Decision['outcome'] {
  if (decisions.some(({ outcome }) => outcome === 'impossible')) return 'impossible';
  return decisions.some(({ outcome }) => outcome === 'denied') ? 'denied' : 'allowed';
}
