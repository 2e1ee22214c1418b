/**
 * What an isolate knows of counters from their owners' last replies: enough to report, to choose whom to ask first, and to go on
 * with when an owner is out of reach.
 */
import type { Limit } from '../core/decision.ts';
import { capacity } from '../core/decision.ts';
import { BoundedMap } from './bounded-map.ts';
import type { CounterReport } from './messages.ts';

/** About 250 bytes each, so a few megabytes. A displaced entry costs a blind share in an outage and nothing else. */
const ENTRIES_MAX = 16_384;

/**
 * An owner that has just started knows no holders, and tells the first that asks that all the demand is its own. Until the others must have
 * asked as well, what an isolate was told before counts if it is less: else two isolates would each take the whole in the next outage.
 */
const SHARE_SETTLES_MS = 2_000;

/** What is older says nothing of who asks now: owners themselves forget a holder after so long. */
const SHARE_FORGOTTEN_MS = 10_000;

export interface Level {
  readonly limit: Limit;
  readonly remaining: number;
  readonly resetMs: number;
  readonly share: number;
  readonly atMs: number;
}

/** Where an owner's word comes from: which life of it, and when it was asked. */
export interface Word {
  readonly incarnation: string;
  readonly sentMs: number;
}

interface Told extends Level, Word {
  /** The share that an earlier life told last, and until when it counts. */
  readonly earlier: { readonly share: number; readonly untilMs: number } | undefined;
}

export class Known {
  readonly #levels = new BoundedMap<Told>(ENTRIES_MAX);

  /** A reply that comes later than one to a question that was sent later says nothing any more. */
  learn(
    { id, limit, remaining, resetMs, share }: CounterReport,
    { incarnation, sentMs }: Word,
    nowMs: number,
  ): void {
    const before = this.#levels.get(id);
    // What lies in the future was sent before the clock was set back.
    if (before !== undefined && sentMs < before.sentMs && before.sentMs <= nowMs) return;
    const earlier = before?.incarnation === incarnation ? before.earlier : earlierShare(before, nowMs);
    this.#levels.set(id, { limit, remaining, resetMs, share, atMs: nowMs, sentMs, incarnation, earlier });
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
    return { ...level, resetMs, remaining: remainingAfter(level, ageMs), share: shareAt(level, nowMs) };
  }
}

function shareAt({ share, earlier }: Told, nowMs: number): number {
  return earlier !== undefined && nowMs < earlier.untilMs ? Math.min(share, earlier.share) : share;
}

/** What a life that is over last told, as far as it still says something; a share of 0 is of nobody. */
function earlierShare(before: Told | undefined, nowMs: number): Told['earlier'] {
  if (before === undefined || nowMs - before.atMs > SHARE_FORGOTTEN_MS) return undefined;
  const share = shareAt(before, nowMs);
  return share > 0 ? { share, untilMs: nowMs + SHARE_SETTLES_MS } : undefined;
}

/** A bucket has refilled at its rate since; a window is taken as it was told, until it is over. */
function remainingAfter({ limit, remaining, resetMs }: Level, ageMs: number): number {
  if (ageMs >= resetMs) return capacity(limit);
  const refilled =
    limit.algorithm === 'token_bucket' ? Math.floor((ageMs * limit.quota) / limit.windowMs) : 0;
  return Math.max(0, Math.min(capacity(limit), remaining + refilled));
}
