/**
 * The worst cases of a concurrency limit: how many requests can be in progress at once, and when that is more than the limit.
 *
 * An envelope is of requests at once, so its rate is 0 and its burst is all there is.
 */
import type { Limit } from '../core/decision.ts';
import type { Rule } from '../policy/ruleset.ts';
import type { Bound, Envelope, Topology } from './bound.ts';

export function slotBoundOf({ failureMode, blindShare }: Rule, limit: Limit, topology: Topology): Bound {
  const { isolates, blindIsolates } = topology;
  const own = atOnce(limit.quota);
  const blind = blindIsolates * Math.max(1, blindShare * limit.quota);
  // Those in progress when the owner falls silent go on; beside them each isolate admits up to its share, and at least one.
  const beside = failureMode === 'closed' ? 0 : limit.quota + isolates - 1 + blind;
  const silent = { ...atOnce(limit.quota + beside), rateFactor: 0 };
  const crashUnits = limit.quota;
  const renewedInS = limit.windowMs / 3_000;
  const sentences = [
    `healthy: at most ${limit.quota} at once`,
    failureMode === 'closed'
      ? 'owner silent: nothing is admitted (closed), what is in progress goes on'
      : `owner silent: at most ${Math.ceil(silent.burstUnits)} at once`,
    `owner crashes: up to ${crashUnits} more until the slots are renewed (${Number(renewedInS.toFixed(1))} s)`,
    `an isolate dies: its slots stay taken for up to ${limit.windowMs / 1_000} s`,
  ];
  return { limit: own, steady: own, fallback: silent, flapping: silent, crashUnits, sentences };
}

function atOnce(requests: number): Envelope {
  return { burstUnits: requests, unitsPerSecond: 0 };
}
