/**
 * The time that one unit is worth, and how far rounding may go.
 *
 * Instants are float64, so a sum of them may be off in its last bits. Every comparison therefore forgives a little: one
 * microsecond, or a thousandth of a unit where units come faster than that. The slack is used in comparisons only and never enters
 * a state, so it cannot add up: over any length of time it is worth less than a thousandth of one unit.
 *
 * That covers the rounding as long as instants count from a near epoch (the logical clock's) and a full counter takes less than
 * some centuries to drain; limits beyond that are for `policy/schema` to refuse.
 */
import type { Limit } from './decision.ts';

const US_PER_MS = 1000;
const SLACK_US_MAX = 1;
const SLACK_UNITS_MAX = 1 / 1000;

/** Microseconds in which one unit comes back, spread evenly over the window. The quota must not be 0. */
export function unitUsOf(limit: Limit): number {
  return (limit.windowMs * US_PER_MS) / limit.quota;
}

export function slackUs(unitUs: number): number {
  return Math.min(SLACK_US_MAX, unitUs * SLACK_UNITS_MAX);
}

/** An instant moved back by so many units; `undefined`, which is rest, once that is no later than now. */
export function movedBack(atUs: number, units: number, limit: Limit, nowUs: number): number | undefined {
  const unitUs = unitUsOf(limit);
  const earlierUs = atUs - units * unitUs;
  return earlierUs - nowUs <= slackUs(unitUs) ? undefined : earlierUs;
}

/** The same slack, for algorithms that count units instead of time. */
export function slackUnits(limit: Limit): number {
  const unitUs = unitUsOf(limit);
  return slackUs(unitUs) / unitUs;
}

/** A whole number that rounding has pushed off by no more than the slack becomes whole again, so that it may be rounded down. */
export function snapToWhole(units: number, slack: number): number {
  const whole = Math.round(units);
  // Adding 0 turns -0 into 0.
  return Math.abs(units - whole) <= slack ? whole + 0 : units;
}
