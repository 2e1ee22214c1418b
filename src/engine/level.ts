/**
 * How a policy's level is told: in whole units and whole seconds, rounded so that nobody is promised too much.
 */
import { capacity } from '../core/decision.ts';
import type { PolicyReport } from './verdict.ts';

/** Units that can be spent now, 0 to the larger of quota and burst. */
export function remainingOf({ level, limit }: PolicyReport): number {
  return Math.min(Math.max(0, Math.floor(level?.remaining ?? 0)), Math.max(limit.quota, limit.burst));
}

/** Those that deny before all others, then by the part of their capacity that is left. */
export function mostConstrainedFirst(policies: readonly PolicyReport[]): readonly PolicyReport[] {
  return policies.length < 2 ? policies : [...policies].sort((a, b) => room(a) - room(b));
}

function room(report: PolicyReport): number {
  if (report.outcome !== 'allowed') return -1;
  if (report.level === undefined) return Number.POSITIVE_INFINITY;
  return remainingOf(report) / Math.max(1, capacity(report.limit));
}

/** Rounded up: a client that waits exactly so long finds what it was told. A billionth of slack keeps float noise from adding a second. */
export function wholeSeconds(ms: number, leastSeconds: number): number {
  return Math.max(leastSeconds, Math.ceil(ms / 1000 - 1e-9));
}
