/**
 * What an isolate knows of counters from their owners' last replies: enough to report, to choose whom to ask first, and to go on
 * with when an owner is out of reach.
 */
import type { Limit } from '../core/decision.ts';
import { capacity } from '../core/decision.ts';
import { BoundedMap } from './bounded-map.ts';
import type { CounterReport } from './messages.ts';

/** About 200 bytes each, so a few megabytes. A displaced entry costs a blind share in an outage and nothing else. */
const ENTRIES_MAX = 16_384;

export interface Level {
  readonly limit: Limit;
  readonly remaining: number;
  readonly resetMs: number;
  readonly share: number;
  readonly atMs: number;
}

export class Known {
  readonly #levels = new BoundedMap<Level>(ENTRIES_MAX);

  learn(report: CounterReport, nowMs: number): void {
    const { limit, remaining, resetMs, share } = report;
    this.#levels.set(report.id, { limit, remaining, resetMs, share, atMs: nowMs });
  }

  /** Its owner has charged a debt since: so much less is left than it last said. */
  charged(counterId: string, units: number): void {
    const level = this.#levels.get(counterId);
    if (level === undefined) return;
    const { limit, remaining, resetMs } = level;
    const refillMs =
      limit.algorithm === 'token_bucket' && limit.quota > 0 ? (units * limit.windowMs) / limit.quota : 0;
    this.#levels.set(counterId, { ...level, remaining: remaining - units, resetMs: resetMs + refillMs });
  }

  /** The last reply about this counter, brought forward to now; `undefined` when there was none. */
  level(counterId: string, nowMs: number): Level | undefined {
    const level = this.#levels.get(counterId);
    if (level === undefined) return undefined;
    const ageMs = Math.max(0, nowMs - level.atMs);
    const resetMs = Math.max(0, level.resetMs - ageMs);
    return { ...level, resetMs, remaining: remainingAfter(level, ageMs) };
  }
}

/** A bucket has refilled at its rate since; a window is taken as it was told, until it is over. */
function remainingAfter({ limit, remaining, resetMs }: Level, ageMs: number): number {
  if (ageMs >= resetMs) return capacity(limit);
  const refilled =
    limit.algorithm === 'token_bucket' ? Math.floor((ageMs * limit.quota) / limit.windowMs) : 0;
  return Math.max(0, Math.min(capacity(limit), remaining + refilled));
}
