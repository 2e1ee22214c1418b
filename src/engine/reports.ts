/**
 * What is said of each policy of a request: what its lease or its owner answered, else what is remembered, else what was last known.
 */
import { takenBy } from '../core/decision.ts';
import type { Winner } from '../policy/counter.ts';
import type { Asked, GroupResult, Remembered } from './asked.ts';
import type { Known } from './known.ts';
import type { Answer, CounterReport } from './messages.ts';
import type { PolicyReport } from './verdict.ts';

export interface Told {
  readonly asked: readonly Asked[];
  /** What is remembered as denied. */
  readonly denials: readonly Remembered[];
  readonly cost: number;
}

export class Reports {
  readonly #known: Known;
  readonly #nowMs: () => number;

  constructor(known: Known, nowMs: () => number) {
    this.#known = known;
    this.#nowMs = nowMs;
  }

  /** One for each winner, in their order. */
  of(winners: readonly Winner[], { asked, denials, cost }: Told): readonly PolicyReport[] {
    return winners.map((winner): PolicyReport => {
      const denial = denials.find((each) => each.winner === winner);
      if (denial !== undefined) return this.#remembered(denial, cost);
      for (const { group, result } of asked) {
        if (result === undefined || !group.enforced.includes(winner)) continue;
        if (result.kind === 'leased' || result.kind === 'dry') return this.#leased(winner, result);
        const answer = result.kind === 'answered' && reportOn(winner, result.answer);
        if (answer) return answered(winner, answer);
      }
      return this.#lastKnown(winner);
    });
  }

  #remembered({ winner, retryAfterMs }: Remembered, cost: number): PolicyReport {
    const known = this.#lastKnown(winner);
    const remaining = Math.min(known.level?.remaining ?? 0, Math.max(0, takenBy(known.limit, cost) - 1));
    const level = { remaining, resetMs: retryAfterMs };
    return { ...known, outcome: 'denied', source: 'deny_memory', waitMs: retryAfterMs, level };
  }

  /** What is left is what the owner last said was left, beside what is in hand. */
  #leased(winner: Winner, result: LeaseResult): PolicyReport {
    const known = this.#lastKnown(winner);
    if (result.kind === 'leased') return { ...known, source: 'lease' };
    const { retryAfterMs } = result;
    const level = { remaining: 0, resetMs: retryAfterMs };
    return { ...known, outcome: 'denied', source: 'lease', waitMs: retryAfterMs, level };
  }

  #lastKnown({ counterId, rule }: Winner): PolicyReport {
    const level = this.#known.level(counterId, this.#nowMs());
    return { policy: rule.policy, limit: rule.limit!, outcome: 'allowed', source: 'owner', waitMs: 0, level };
  }
}

type LeaseResult = Extract<GroupResult, { kind: 'leased' | 'dry' }>;

export function reportOn({ counterId }: Winner, { counters }: Answer): CounterReport | undefined {
  return counters.find(({ id }) => id === counterId);
}

export function answered(
  { rule }: Winner,
  { decision, limit, remaining, resetMs }: CounterReport,
): PolicyReport {
  const { outcome } = decision;
  const waitMs = outcome === 'denied' ? decision.retryAfterMs : outcome === 'allowed' ? decision.delayMs : 0;
  const level = { remaining, resetMs: outcome === 'denied' ? waitMs : resetMs };
  return { policy: rule.policy, limit, outcome, source: 'owner', waitMs, level };
}

/**
 * The counters that some other counter of the request denied: their demand is not to look larger for it. Which of its counters a lease
 * has run short of, nobody knows, so none of them denies another.
 */
export function othersDenied(
  winners: readonly Winner[],
  reports: readonly PolicyReport[],
  asked: readonly Asked[],
): readonly Winner[] {
  const denying = reports.filter(({ outcome }) => outcome !== 'allowed').map(({ policy }) => policy);
  return winners.filter((winner) => {
    const dry = asked.find(({ group, result }) => result?.kind === 'dry' && group.enforced.includes(winner));
    const own = (dry?.group.enforced ?? [winner]).map(({ rule }) => rule.policy);
    return denying.some((policy) => !own.includes(policy));
  });
}

/** The later reports in place of the earlier ones of the same policies. */
export function merge(
  reports: readonly PolicyReport[],
  later: readonly PolicyReport[],
): readonly PolicyReport[] {
  if (later.length === 0) return reports;
  const byPolicy = new Map([...reports, ...later].map((report) => [report.policy, report]));
  return [...byPolicy.values()];
}
