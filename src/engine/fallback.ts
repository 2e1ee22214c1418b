/**
 * What an isolate does for itself when an owner does not answer and the rule says `open`: a local bucket as large as the isolate's
 * part of the demand.
 *
 * Promise: an isolate admits at most share x (what remained) at once and share x rate x 1.2 after that; the shares told to isolates add up
 * to one, so all of them together stay within 1.2 times the limit. An isolate that was never told a share uses the rule's blind share.
 * A share that was old when the outage began counts for less, since the demand may have moved. At least one request of the largest cost
 * fits, or nobody with a small share could send one at all. `engine/bound` prices all of it.
 *
 * Of a concurrency limit an isolate admits as long as its own requests in progress, whoever admitted them, are fewer than its share of it.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import { RETRY_GUESS_MS } from '../core/concurrency.ts';
import { capacity, countsSlots, takenBy } from '../core/decision.ts';
import type { Winner } from '../policy/counter.ts';
import type { Known, Level } from './known.ts';
import { giveBackAll, type LocalBucket, takeAll } from './local-buckets.ts';
import { type PolicyReport, worstOutcome } from './verdict.ts';

/** Room above the share for demand that moves between isolates during the outage; the price is in the bound. */
export const FALLBACK_MARGIN = 1.2;

/** A share loses half of what it is above the blind share for each of these between the last reply and the outage. */
const SHARE_HALF_LIFE_MS = 10_000;

/** Each outage has buckets of its own: what the last one left would be more than the owner now has. And no rule's bucket has this name. */
function keyOf(counterId: string, silentSinceMs: number): string {
  return `fallback ${silentSinceMs} ${counterId}`;
}

export interface FallbackRequest {
  readonly winners: readonly Winner[];
  readonly cost: number;
  readonly largestCost: number;
  /** When the owner fell silent. */
  readonly silentSinceMs: number;
  /** Units of a counter that this isolate admitted and its owner does not know of yet. */
  readonly owedUnits: (counterId: string) => number;
  /** Slots of a counter that requests of this isolate hold. */
  readonly heldSlots: (counterId: string) => number;
}

export interface FallbackResult {
  readonly isAdmitted: boolean;
  readonly reports: readonly PolicyReport[];
  readonly charged: readonly Charged[];
}

/** A counter of units, and the local bucket that stands in for it: what refills the debt. */
export interface Charged {
  readonly winner: Winner;
  readonly bucket: LocalBucket;
}

export class Fallback {
  readonly #table: BucketTable;
  readonly #known: Known;

  constructor(table: BucketTable, known: Known) {
    this.#table = table;
    this.#known = known;
  }

  /** All or nothing over the winners of one owner. */
  decide(request: FallbackRequest, nowMs: number): FallbackResult {
    const { winners, cost } = request;
    const reports = new Map<Winner, PolicyReport>();
    for (const winner of winners.filter(hasSlots)) reports.set(winner, this.#slotReport(winner, request));
    const isRoom = worstOutcome([...reports.values()]) === 'allowed';
    const charged = winners
      .filter((winner) => !hasSlots(winner))
      .map((winner) => ({ winner, bucket: this.#bucket(winner, request, nowMs) }));
    const taken = takeAll(this.#table, charged.map(bucketOf), cost, nowMs);
    for (const [at, report] of taken.entries())
      reports.set(charged[at]!.winner, { ...reportOf(charged[at]!.winner), ...report });
    const isAdmitted = worstOutcome([...reports.values()]) === 'allowed';
    if (!isRoom && taken.every(({ outcome }) => outcome === 'allowed')) this.giveBack(charged, cost, nowMs);
    return { isAdmitted, charged, reports: winners.map((winner) => reports.get(winner)!) };
  }

  giveBack(charged: readonly Charged[], cost: number, nowMs: number): void {
    giveBackAll(this.#table, charged.map(bucketOf), cost, nowMs);
  }

  /** What a request turned out to cost beyond its estimate. */
  charge(charged: readonly Charged[], cost: number, nowMs: number): void {
    for (const { bucket } of charged) this.#table.charge(bucket.key, bucket.limit, cost, nowMs);
  }

  #slotReport(winner: Winner, { silentSinceMs, cost, heldSlots }: FallbackRequest): PolicyReport {
    const { limit, blindShare } = winner.rule;
    const share = this.#share(winner.counterId, blindShare, silentSinceMs);
    const slots = limit!.quota === 0 ? 0 : Math.max(1, Math.floor(share * limit!.quota));
    const left = slots - heldSlots(winner.counterId) - takenBy(limit!, cost);
    const isRoom = left >= 0 || cost === 0;
    const waitMs = isRoom ? 0 : RETRY_GUESS_MS;
    const level = { remaining: Math.max(0, left), resetMs: RETRY_GUESS_MS };
    return { ...reportOf(winner), outcome: isRoom ? 'allowed' : 'denied', waitMs, level };
  }

  #share(counterId: string, blindShare: number, silentSinceMs: number): number {
    const told = this.#known.level(counterId, silentSinceMs);
    return told === undefined ? blindShare : shareAt(told, blindShare, silentSinceMs);
  }

  /** The isolate's bucket for a counter. Until it is first taken from, it holds the isolate's part of what was left, refilled since. */
  #bucket({ counterId, rule }: Winner, request: FallbackRequest, nowMs: number): LocalBucket {
    const { silentSinceMs, largestCost, cost } = request;
    const limit = rule.limit!;
    const told = this.#known.level(counterId, silentSinceMs);
    const share = this.#share(counterId, rule.blindShare, silentSinceMs);
    const smallest = Math.min(capacity(limit), Math.max(largestCost, cost));
    const bucket = {
      algorithm: 'token_bucket',
      quota: limit.quota,
      windowMs: limit.windowMs / (share * FALLBACK_MARGIN),
      burst: Math.max(share * capacity(limit), smallest),
      maxDelayMs: 0,
    } as const;
    const key = keyOf(counterId, silentSinceMs);
    if (limit.quota > 0 && !this.#table.has(key, nowMs)) {
      const left = told === undefined ? bucket.burst : share * told.remaining;
      const refillMs = nowMs - Math.max(silentSinceMs, told?.atMs ?? silentSinceMs);
      const units = left - request.owedUnits(counterId) + (refillMs * bucket.quota) / bucket.windowMs;
      if (units < bucket.burst) this.#table.set(key, bucket, units, nowMs);
    }
    return { key, limit: bucket };
  }
}

function bucketOf({ bucket }: Charged): LocalBucket {
  return bucket;
}

function hasSlots({ rule }: Winner): boolean {
  return countsSlots(rule.limit!);
}

function reportOf({ rule }: Winner): PolicyReport {
  const { policy, limit } = rule;
  return {
    policy,
    limit: limit!,
    outcome: 'allowed',
    source: 'fallback',
    waitMs: 0,
    level: undefined,
  };
}

/**
 * The isolate's part of the demand, as last told; a part above the blind share goes halfway back to it for each half-life
 * between the last reply and the outage.
 */
function shareAt(told: Level, blindShare: number, silentSinceMs: number): number {
  if (told.share === 0) return blindShare;
  if (told.share <= blindShare) return told.share;
  const trust = 2 ** (-Math.max(0, silentSinceMs - told.atMs) / SHARE_HALF_LIFE_MS);
  return blindShare + (told.share - blindShare) * trust;
}
