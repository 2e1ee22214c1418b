/** A rule's limit as a middle owner has it: with the rate and the room that it was lent, and told as if it had them all. */
import type { Decision, Limit } from '../core/decision.ts';
import { unitMsOf } from './bucket-level.ts';

/** Stand for nothing: a bucket needs a rate to say when it would be full, and room to be full. */
const RATE_MIN = 1e-9;
const BURST_MIN = 1e-9;

/** By then there is another word from the root. */
const WORD_MS = 250;

export function lentLimit(rule: Limit, unitsPerMs: number, room: number): Limit {
  if (rule.quota === 0) return rule;
  const quota = Math.max(RATE_MIN, unitsPerMs) * rule.windowMs;
  return { ...rule, quota, burst: Math.max(BURST_MIN, room) };
}

/** A decision as it is told: what is too much for the bucket now may fit another time, and a lease that barely refills is not the rule. */
export function toldBy(rule: Limit, decision: Decision, cost: number): Decision {
  if (decision.outcome === 'allowed' || rule.quota === 0 || cost > rule.burst) return decision;
  const atMostMs = WORD_MS + cost * unitMsOf(rule);
  const waitMs = decision.outcome === 'denied' ? decision.retryAfterMs : atMostMs;
  return { outcome: 'denied', retryAfterMs: Math.min(waitMs, atMostMs) };
}
