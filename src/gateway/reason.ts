/**
 * Why a request was denied, as far as its answer depends on it: a rate, or requests in progress, and whose.
 */
import { countsSlots } from '../core/decision.ts';
import { isAboutOneCaller, type Winner } from '../policy/counter.ts';
import type { Decided } from './limiter.ts';

export interface Reason {
  /**
   * `own_in_progress`: the caller has as many requests in progress as it may. `all_in_progress`: a limit that it shares with others is
   * full, which is none of its doing. Beside a rate that is used up, or a full limit of its own, neither matters.
   */
  readonly kind: 'rate' | 'own_in_progress' | 'all_in_progress';
  /** The attribute that the denying counter is about, such as `api_key`. */
  readonly subject: string | undefined;
}

export function reasonOf({ verdict, match }: Decided): Reason {
  const denying = verdict.policies.filter(({ outcome }) => outcome === verdict.outcome);
  const winners = match.enforced.filter(({ rule }) => denying.some(({ policy }) => policy === rule.policy));
  const rate = winners.find((winner) => !isSlots(winner));
  if (rate !== undefined) return { kind: 'rate', subject: subjectOf(rate) };
  const own = winners.find(isAboutOneCaller);
  if (own !== undefined) return { kind: 'own_in_progress', subject: subjectOf(own) };
  return { kind: winners.length > 0 ? 'all_in_progress' : 'rate', subject: undefined };
}

function isSlots({ rule }: Winner): boolean {
  return rule.limit !== undefined && countsSlots(rule.limit);
}

function subjectOf({ pairs }: Winner): string | undefined {
  return pairs[0]?.[0];
}
