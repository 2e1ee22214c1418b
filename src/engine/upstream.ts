/**
 * One counter of a middle owner: how it stands with the root, and what its bucket is worth for that.
 *
 * The bucket goes by the numbers of the lease that the root has granted, so whatever is decided, lent on or refilled here is cut out of the
 * root's own bucket. Where there is no lease, an *advance* stands in for it: at a cold start the credit, after a lease has ended
 * unrenewed (a partition) the share that the root last told. Both are one bucket with a line in it. Above the line are units of the
 * lease, below it the advance; what is missing below the line is owed, and goes to the root as a sum that only grows. Once the root has
 * heard of it, the line is so much lower.
 *
 * Nobody waits for the root. Sums and numbers of grants belong to an epoch; a middle owner that has given its lease up begins a new one.
 */
import { hasSameNumbers } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Limit } from '../core/decision.ts';
import { type Advance, advanceAt, moved, NO_ADVANCE, newAdvance, stopped } from './advance.ts';
import { levelOf, refit, unitMsOf } from './bucket-level.ts';
import type { Counter } from './counters.ts';
import { FALLBACK_MARGIN } from './fallback.ts';
import { lentLimit } from './lent-limit.ts';
import type { MiddleGrant, MiddleReport } from './messages.ts';
import { MiddleAccount } from './middle-account.ts';
import { MiddleDemand } from './middle-demand.ts';
import {
  believableGrant,
  isKnownAfter,
  isMuchLess,
  leaseOf,
  lentBy,
  type MiddleLease,
  NO_MIDDLE_LEASE,
  needsAdvance,
} from './middle-lease.ts';
import { MiddlePace } from './middle-pace.ts';
import { isRunningLow } from './middle-urgency.ts';
import type { Mode, NewUpstream, StoredUpstream } from './stored-upstream.ts';

/** How long a middle owner gathers what is asked for before its first word, unless half of the credit goes sooner. */
const FIRST_WORD_MS = 50;

/** What a sum of parts may be off by. */
const ROUNDING = 1e-9;

const NOTHING_LENT = { unitsPerMs: 0, capacity: 0, endsInMs: 0 };

export class Upstream {
  #rule: Limit;
  #startCredit: number;
  readonly #account: MiddleAccount;
  #mode: Mode;
  #lease: MiddleLease;
  /** What the grant before lent beyond this one: the root counts on that until the next report, and so it is gone by until then. */
  #surplusPerMs = 0;
  /** Whatever the root grants next is made later than this. */
  #grantedSinceMs = Number.NEGATIVE_INFINITY;
  /** Up to where the bucket is filled by what nobody has lent: the line. */
  #advance: Advance;
  /** What is left of the credit, once that is not the advance any more. */
  #credit: Advance | undefined;
  #share: number;
  #grants = 0;
  readonly #demand: MiddleDemand;
  readonly #pace = new MiddlePace();
  /** Nothing has been lent to it in any life. */
  #isFresh: boolean;

  constructor({ rule, startCredit, epoch, nowMs }: NewUpstream, stored?: StoredUpstream) {
    this.#isFresh = stored === undefined;
    this.#demand = new MiddleDemand(nowMs);
    this.#account = new MiddleAccount(epoch, stored?.account);
    this.#rule = stored?.rule ?? rule;
    this.#startCredit = stored?.startCredit ?? startCredit;
    this.#share = stored?.share ?? startCredit;
    this.#advance = stored?.advance ?? this.#newAdvance(startCredit, Number.POSITIVE_INFINITY, nowMs);
    this.#credit = stored?.credit;
    this.#lease = stored?.lease ?? NO_MIDDLE_LEASE;
    this.#mode = stored?.mode ?? 'credit';
    // Whatever there was to tell is told at once.
    if (stored !== undefined) this.#pace.by(nowMs);
  }

  /** The rule's own numbers, and this middle owner's part of all demand, as the root last told: what is told on. */
  get told(): { readonly rule: Limit; readonly share: number } {
    return { rule: this.#rule, share: this.#share };
  }

  /** Whether it has been lent something, in this life or before. */
  get hasBegun(): boolean {
    return this.#mode !== 'credit';
  }

  /** Whether it has just begun, and the root's first answer may still be on its way. */
  isNew(nowMs: number): boolean {
    return this.#mode === 'credit' && this.#demand.isNew(nowMs);
  }

  /** The numbers that the bucket goes by now. */
  limit(): Limit {
    const { unitsPerMs, units, capacity } = this.#advance;
    if (this.#mode !== 'leased') return lentLimit(this.#rule, unitsPerMs, capacity);
    const lease = this.#lease;
    return lentLimit(this.#rule, lease.unitsPerMs + this.#surplusPerMs, lease.capacity + Math.max(0, units));
  }

  stored(): StoredUpstream {
    return {
      rule: this.#rule,
      startCredit: this.#startCredit,
      mode: this.#mode,
      lease: this.#lease,
      advance: this.#advance,
      credit: this.#credit,
      account: this.#account.stored(),
      share: this.#share,
    };
  }

  /** How long until nothing is lent, and what was taken would have come back at the rule's rate. */
  restInMs(counter: Counter, clock: LogicalClock): number {
    const missing = Math.max(0, counter.limit.burst - levelOf(counter, clock));
    const leaseMs = this.#mode === 'leased' ? this.#lease.endsAtMs - clock.logicalMs : 0;
    return Math.max(0, leaseMs, missing === 0 ? 0 : missing * unitMsOf(this.#rule));
  }

  /** The rule's numbers have changed, or the credit. A lease stands until the root has been asked under the new ones. */
  adopt(
    counter: Counter,
    { rule, startCredit = this.#startCredit }: { rule: Limit; startCredit?: number | undefined },
    clock: LogicalClock,
  ): void {
    // Whatever else is asked for under this name cannot be lent.
    if (rule.algorithm !== 'token_bucket') return;
    if (startCredit === this.#startCredit && hasSameNumbers(rule, this.#rule)) return;
    const nowMs = clock.logicalMs;
    const usedUnits = counter.limit.burst - levelOf(counter, clock);
    this.#rule = rule;
    this.#startCredit = startCredit;
    this.#pace.by(nowMs);
    if (this.#credit !== undefined)
      this.#credit = this.#newAdvance(startCredit, advanceAt(this.#credit, nowMs).units, nowMs);
    if (this.#mode === 'leased') return;
    const share = this.#mode === 'credit' ? startCredit : this.#share;
    this.#advance = this.#newAdvance(share, Number.POSITIVE_INFINITY, nowMs);
    this.#refit(counter, this.#advance.capacity - usedUnits, clock);
  }

  /** A lease that was not renewed has ended: from now on the share that was last told, until the root is heard of again. */
  settle(counter: Counter, clock: LogicalClock): void {
    if (this.#mode !== 'leased' || clock.logicalMs < this.#lease.endsAtMs) return;
    const full = levelOf(counter, clock);
    const level = full - this.#endAdvance(full, clock.logicalMs);
    this.#mode = 'cut';
    this.#surplusPerMs = 0;
    this.#grants = 0;
    // Whoever asked for nothing when the root last spoke has no share, and goes on as one that was never told.
    const share = this.#share > 0 ? this.#share : this.#startCredit;
    // What is left of the lease was paid for, and is spent first: the root counts it as spent.
    this.#advance = this.#newAdvance(share, 0, clock.logicalMs, FALLBACK_MARGIN);
    this.#pace.by(clock.logicalMs);
    this.#refit(counter, level, clock);
  }

  /** Somebody would like to be lent some of it. */
  wanted(nowMs: number): void {
    this.#demand.wanted(nowMs);
    if (this.#pace.dueMs === Number.POSITIVE_INFINITY)
      this.#pace.by(nowMs + (this.#advance.capacity > 0 ? FIRST_WORD_MS : 0));
  }

  /** Units were asked for here, or spent from what was lent on; `cost` is that of the dearest request. */
  asked(units: number, cost: number, nowMs: number): void {
    if (!(units > 0)) return;
    this.wanted(nowMs);
    this.#demand.asked(units, cost, nowMs);
  }

  /** A request was denied here. */
  denied(nowMs: number): void {
    this.#demand.denied(nowMs);
  }

  /** How long until there is something to tell the root; `undefined` while there is nothing. */
  dueInMs(counter: Counter, clock: LogicalClock): number | undefined {
    const nowMs = clock.logicalMs;
    const leaseMs = this.#mode === 'leased' ? this.#lease.endsAtMs - nowMs : Number.POSITIVE_INFINITY;
    const dueInMs = Math.min(this.#pace.dueMs - nowMs, leaseMs, this.#hasNewsInMs(counter, clock));
    return dueInMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, dueInMs);
  }

  /** What to tell the root now; `undefined` when there turns out to be nothing. A final report ends the lease here, before it does there. */
  report(counter: Counter, counterId: string, clock: LogicalClock): MiddleReport | undefined {
    const nowMs = clock.logicalMs;
    const isIdle = this.#demand.isIdle(nowMs) && (counter.lent?.isEmpty ?? true);
    const level = levelOf(counter, clock);
    const line = advanceAt(this.#advance, nowMs).units;
    const lent = counter.lent?.lentNow(nowMs) ?? NOTHING_LENT;
    // Of a share that goes on beside a lease, what isolates hold is not missing; once they have spent it, it will be.
    const inHands = this.#mode === 'leased' && this.#credit !== undefined ? lent.capacity : 0;
    const owed = this.#account.owed(Math.max(0, line - level - inHands));
    const unheard = owed.units - owed.heard;
    if (this.#mode !== 'leased' && isIdle && unheard < 1) {
      this.#pace.rest();
      return undefined;
    }
    const isFinal = this.#mode === 'leased' && isIdle && unheard < ROUNDING;
    const held = Math.max(0, level - line);
    const isKnown = isKnownAfter(this.#grants);
    const wished = counter.demand.recentUnitsPerSecond(nowMs);
    const isShort = this.#demand.isShort(nowMs);
    const unitsPerSecond = this.#demand.report({ wished, isKnown, hasLent: lent.endsInMs > 0 }, nowMs);
    const report: MiddleReport = {
      counterId,
      limit: this.#rule,
      epoch: this.#account.epoch,
      number: this.#mode === 'leased' ? this.#lease.number : 0,
      lease: this.#mode === 'leased' ? lentBy(this.#lease, nowMs) : undefined,
      // What was lent on from the credit is no part of the root's rate.
      lentOn: isKnown ? lent : NOTHING_LENT,
      held: isFinal ? held : held + lent.capacity,
      owed,
      returned: this.#account.returned,
      lent: this.#account.lent,
      unitsPerSecond: isFinal ? 0 : unitsPerSecond,
      largestCost: this.#demand.largestCost,
      isShort,
      isFinal,
    };
    this.#pace.reported(nowMs);
    if (isFinal) this.#leave(counter, level, clock);
    else if (this.#surplusPerMs > 0) {
      this.#surplusPerMs = 0;
      this.#refit(counter, level, clock);
    }
    return report;
  }

  /** What it begins with, as whoever asks has been told by the root: more and more of it, until the root has heard of it. */
  open(told: MiddleGrant, counter: Counter, clock: LogicalClock): void {
    const grant = believableGrant(told, this.#rule);
    if (grant === undefined) return;
    const nowMs = clock.logicalMs;
    if (this.#isFresh) {
      this.#isFresh = false;
      this.#account.begin(grant.epoch);
      this.#pace.opened(nowMs);
    }
    if (grant.epoch === this.#account.epoch) this.#take(grant, counter, nowMs, clock);
  }

  /** The root has answered a report that was sent at `sentMs`. */
  hear(told: MiddleGrant, counter: Counter, sentMs: number, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    const grant = believableGrant(told, this.#rule);
    if (grant === undefined) return;
    const { epoch } = this.#account;
    if (grant.epoch > epoch) this.#begin(grant.epoch + 1, nowMs);
    if (grant.epoch !== epoch) return;
    this.#isFresh = false;
    this.#pace.heard(sentMs, nowMs);
    const before = this.#mode === 'leased' ? this.#lease : NO_MIDDLE_LEASE;
    // A newer grant was made later, also when it answers an older report: a copy of that has been long on its way.
    this.#grantedSinceMs = Math.max(this.#grantedSinceMs, sentMs);
    const isNews = this.#take(grant, counter, sentMs, clock);
    this.#pace.after(isNews && isMuchLess(this.#lease, before) ? 0 : grant.renewInMs);
  }

  /** Takes what a grant brings; whether it goes by that from now on. */
  #take(grant: MiddleGrant, counter: Counter, sentMs: number, clock: LogicalClock): boolean {
    const nowMs = clock.logicalMs;
    const { units, owed } = this.#account.hear(grant);
    this.#advance = moved(this.#advance, -owed, nowMs);
    const level = levelOf(counter, clock) + units;
    const isNews = grant.number > this.#lease.number && sentMs + grant.lifeMs > nowMs;
    this.#refit(counter, isNews ? this.#adoptGrant(grant, level, sentMs, nowMs) : level, clock);
    return isNews;
  }

  /** Answers the level, from which an advance that is not needed any more has been taken. */
  #adoptGrant(grant: MiddleGrant, level: number, sentMs: number, nowMs: number): number {
    const before = this.#mode === 'leased' ? this.#lease : NO_MIDDLE_LEASE;
    this.#mode = 'leased';
    this.#lease = leaseOf(grant, Math.max(sentMs, this.#grantedSinceMs));
    this.#surplusPerMs = Math.max(0, before.unitsPerMs + this.#surplusPerMs - this.#lease.unitsPerMs);
    this.#share = grant.share;
    this.#grants += 1;
    this.#advance = stopped(this.#advance, nowMs);
    return needsAdvance(this.#lease, this.#grants) ? level : level - this.#endAdvance(level, nowMs);
  }

  /** The advance has done its work: what is missing in it is owed, and what is left of a credit is kept. Answers what is left. */
  #endAdvance(level: number, nowMs: number): number {
    const line = advanceAt(this.#advance, nowMs).units;
    const below = Math.max(0, line - level);
    this.#account.owe(below);
    const left = line - below;
    this.#advance = NO_ADVANCE;
    this.#credit ??= this.#newAdvance(this.#startCredit, left, nowMs);
    return left;
  }

  #leave(counter: Counter, level: number, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    this.#endAdvance(level, nowMs);
    this.#mode = 'credit';
    this.#surplusPerMs = 0;
    this.#advance = advanceAt(this.#credit ?? this.#advance, nowMs);
    this.#credit = undefined;
    this.#begin(this.#account.epoch + 1, nowMs);
    this.#pace.rest();
    this.#refit(counter, this.#advance.units, clock);
  }

  /** A new epoch, in which nothing has been granted yet. */
  #begin(epoch: number, nowMs: number): void {
    this.#account.begin(epoch);
    this.#grants = 0;
    this.#lease = { ...this.#lease, number: 0 };
    this.#pace.by(nowMs);
  }

  /** Puts the bucket under the present numbers. What a lease has no room for goes back to the root. */
  #refit(counter: Counter, level: number, clock: LogicalClock): void {
    const limit = this.limit();
    const over = level - Math.max(0, limit.burst - (counter.lent?.lentToOthers('').capacity ?? 0));
    if (over > 0 && this.#mode === 'leased') this.#account.giveBack(over);
    refit(counter, limit, level, clock);
    counter.lent?.refitted(counter, clock);
  }

  #newAdvance(share: number, units: number, nowMs: number, margin = 1): Advance {
    const { largestCost } = this.#demand;
    return newAdvance(this.#rule, { share, units, margin, largestCost }, nowMs);
  }

  /** How long until there is something that the root should hear before it is due; not while an answer is awaited. */
  #hasNewsInMs(counter: Counter, clock: LogicalClock): number {
    const nowMs = clock.logicalMs;
    const soonestInMs = this.#pace.soonestMs - nowMs;
    if (soonestInMs === Number.POSITIVE_INFINITY) return soonestInMs;
    const inHand = {
      mode: this.#mode,
      lease: this.#lease,
      advance: this.#advance,
      level: levelOf(counter, clock),
    };
    if (isRunningLow(inHand, this.#demand, { aheadMs: this.#pace.aheadMs, nowMs })) return soonestInMs;
    const hasLent = counter.lent !== undefined && !counter.lent.isEmpty;
    return this.#mode === 'leased' ? this.#demand.fallenInMs(hasLent, nowMs) : Number.POSITIVE_INFINITY;
  }
}
