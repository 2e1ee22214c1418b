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
import type { Decision, Limit } from '../core/decision.ts';
import { levelOf, refit, unitMsOf } from './bucket-level.ts';
import type { Counter } from './counters.ts';
import { FALLBACK_MARGIN } from './fallback.ts';
import type { MiddleGrant, MiddleReport, Total } from './messages.ts';
import { Meter } from './meter.ts';

/** Stand for nothing: a bucket needs a rate to say when it would be full, and room to be full. */
const RATE_MIN = 1e-9;
const BURST_MIN = 1e-9;

/** The credit is there until the root knows what this middle owner needs. */
const GRANTS_ON_CREDIT = 4;

/** How long a middle owner gathers what is asked for before its first word, unless half of the credit goes sooner. */
const FIRST_WORD_MS = 50;

/** So many units say enough of how fast they come. */
const TELLING_UNITS = 16;

/** No report sooner after an answer than this: what was asked for just before it says little. */
const PAUSE_MS = 50;

/** For so long a root's first answer is waited for, and nobody is told to hold. */
const NEW_MS = 1_000;

/** How often a root that does not answer is asked. */
const RETRY_MS = 1_000;

/** An estimate of the time to the root and back, before it has answered. */
const GUESSED_USUAL_MS = 150;

/** Nobody asks any more when so many units in a row have not been asked for that were to be expected. */
const FALLEN_UNITS = 12;

/** Isolates with leases say twice a second what they spent. */
const LENT_WORD_MS = 600;

/** After a denial isolates deny by themselves, and what they would have asked for is what they say that they wish for. */
const SHORT_MS = 2_000;

/** A counter that nobody has asked for so long is given up. */
const LEAVE_AFTER_MS = 2_000;

/** A grant so much smaller than the one before is worth a word that it has come. */
const MUCH_LESS = 0.75;

/** A renewal is asked for when what is in hand lasts for no longer than so many usual answer times. */
const SOON = 1.5;

/** The weight of the latest answer in what is usual. */
const LATEST_WEIGHT = 0.2;

/** What a sum of parts may be off by. */
const ROUNDING = 1e-9;

interface Lease {
  readonly number: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
  readonly isScarce: boolean;
  /** When the rate becomes `risesTo`, if that is still to come. */
  readonly risesAtMs: number;
  readonly risesTo: number;
}

/** A bucket beside the lease: so many units at `atMs`, refilling up to its capacity. */
interface Advance {
  readonly units: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly atMs: number;
}

/** `credit`: no lease yet. `leased`: what is left of the advance stays as it is. `cut`: the lease has ended unrenewed. */
type Mode = 'credit' | 'leased' | 'cut';

/** What an eviction must not forget. Times are on the owner's logical clock. */
export interface StoredUpstream {
  readonly rule: Limit;
  readonly startCredit: number;
  readonly epoch: number;
  readonly mode: Mode;
  readonly lease: Lease;
  readonly advance: Advance;
  readonly credit: Advance;
  readonly isCredit: boolean;
  readonly owed: Total;
  readonly returned: Total;
  readonly lent: number;
  readonly share: number;
}

export interface NewUpstream {
  readonly rule: Limit;
  readonly startCredit: number;
  /** Larger than that of any earlier life. */
  readonly epoch: number;
  readonly nowMs: number;
}

const NO_LEASE: Lease = {
  number: 0,
  unitsPerMs: 0,
  capacity: 0,
  endsAtMs: 0,
  isScarce: false,
  risesAtMs: Number.POSITIVE_INFINITY,
  risesTo: 0,
};
const NOTHING_LENT = { unitsPerMs: 0, capacity: 0, endsInMs: 0 };
const NOTHING: Total = { units: 0, heard: 0 };

export class Upstream {
  #rule: Limit;
  #startCredit: number;
  #epoch: number;
  #mode: Mode = 'credit';
  #lease = NO_LEASE;
  /** What the grant before lent beyond this one: the root counts on that until the next report, and so it is gone by until then. */
  #surplusPerMs = 0;
  /** Up to where the bucket is filled by what nobody has lent: the line. */
  #advance: Advance;
  /** What is left of the credit, while that is not the advance. */
  #credit: Advance;
  #isCredit = true;
  #owed = NOTHING;
  #returned = NOTHING;
  #lent = 0;
  #share: number;
  #grants = 0;
  #meter: Meter;
  #askedSinceReport = 0;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** When somebody asked after a pause. */
  #beganAtMs = Number.NEGATIVE_INFINITY;
  #largestCost = 1;
  #shortAtMs = Number.NEGATIVE_INFINITY;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #reportedDemand = 0;
  /** As much was asked for here, a second, by the last report; of what is short more may be wished for. */
  #reportedAsked = 0;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #hasHeard = false;
  #reportDueMs = Number.POSITIVE_INFINITY;
  #usualMs = GUESSED_USUAL_MS;

  constructor({ rule, startCredit, epoch, nowMs }: NewUpstream, stored?: StoredUpstream) {
    this.#rule = rule;
    this.#startCredit = startCredit;
    this.#epoch = epoch;
    this.#share = startCredit;
    this.#meter = new Meter(nowMs);
    this.#credit = this.#newAdvance(startCredit, Number.POSITIVE_INFINITY, nowMs);
    this.#advance = this.#credit;
    if (stored === undefined) return;
    this.#rule = stored.rule;
    this.#startCredit = stored.startCredit;
    this.#epoch = stored.epoch;
    this.#mode = stored.mode;
    this.#lease = stored.lease;
    this.#advance = stored.advance;
    this.#credit = stored.credit;
    this.#isCredit = stored.isCredit;
    this.#owed = stored.owed;
    this.#returned = stored.returned;
    this.#lent = stored.lent;
    this.#share = stored.share;
    // Whatever there was to tell is told at once.
    this.#reportDueMs = nowMs;
  }

  /** The rule's own numbers, which is what fields tell. */
  get rule(): Limit {
    return this.#rule;
  }

  /** This middle owner's part of all demand, as the root last told. */
  get share(): number {
    return this.#share;
  }

  /** Whether it has just begun, and the root's first answer may still be on its way. */
  isNew(nowMs: number): boolean {
    return this.#mode === 'credit' && nowMs - this.#beganAtMs < NEW_MS;
  }

  /** The numbers that the bucket goes by now. */
  limit(): Limit {
    const { windowMs, quota } = this.#rule;
    if (quota === 0) return this.#rule;
    const { unitsPerMs, units, capacity } = this.#advance;
    const isLeased = this.#mode === 'leased';
    const rate = isLeased ? this.#lease.unitsPerMs + this.#surplusPerMs : unitsPerMs;
    const burst = isLeased ? this.#lease.capacity + Math.max(0, units) : capacity;
    return { ...this.#rule, quota: Math.max(RATE_MIN, rate) * windowMs, burst: Math.max(BURST_MIN, burst) };
  }

  stored(): StoredUpstream {
    return {
      rule: this.#rule,
      startCredit: this.#startCredit,
      epoch: this.#epoch,
      mode: this.#mode,
      lease: this.#lease,
      advance: this.#advance,
      credit: this.#credit,
      isCredit: this.#isCredit,
      owed: this.#owed,
      returned: this.#returned,
      lent: this.#lent,
      share: this.#share,
    };
  }

  /** How long until nothing is lent, and what was taken would have come back at the rule's rate. */
  restInMs(counter: Counter, clock: LogicalClock): number {
    const missing = Math.max(0, counter.limit.burst - levelOf(counter, clock));
    const leaseMs = this.#mode === 'leased' ? this.#lease.endsAtMs - clock.logicalMs : 0;
    return Math.max(0, leaseMs, missing === 0 ? 0 : missing * unitMsOf(this.#rule));
  }

  /** A decision as it is told: what is too much for the bucket now may fit another time, and a lease that barely refills is not the rule. */
  told(decision: Decision, cost: number): Decision {
    const { quota, burst } = this.#rule;
    if (decision.outcome === 'allowed' || quota === 0 || cost > burst) return decision;
    const atMostMs = RETRY_MS + cost * unitMsOf(this.#rule);
    const waitMs = decision.outcome === 'denied' ? decision.retryAfterMs : atMostMs;
    return { outcome: 'denied', retryAfterMs: Math.min(waitMs, atMostMs) };
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
    this.#reportDueMs = nowMs;
    this.#credit = this.#newAdvance(startCredit, unitsAt(this.#credit, nowMs), nowMs);
    if (this.#mode === 'leased') return;
    const share = this.#mode === 'credit' ? startCredit : this.#share;
    this.#advance = this.#newAdvance(share, Number.POSITIVE_INFINITY, nowMs);
    this.#refit(counter, this.#advance.capacity - usedUnits, clock);
  }

  /** A lease that was not renewed has ended: from now on the share that was last told, until the root is heard of again. */
  settle(counter: Counter, clock: LogicalClock): void {
    if (clock.logicalMs >= this.#lease.risesAtMs) {
      const level = levelOf(counter, clock);
      this.#lease = { ...this.#lease, unitsPerMs: this.#lease.risesTo, risesAtMs: Number.POSITIVE_INFINITY };
      this.#refit(counter, level, clock);
    }
    if (this.#mode !== 'leased' || clock.logicalMs < this.#lease.endsAtMs) return;
    const level = levelOf(counter, clock);
    this.#endAdvance(level, clock.logicalMs);
    this.#mode = 'cut';
    this.#surplusPerMs = 0;
    this.#grants = 0;
    this.#advance = this.#newAdvance(this.#share, level, clock.logicalMs, FALLBACK_MARGIN);
    this.#refit(counter, level, clock);
  }

  /** Somebody would like to be lent some of it. */
  wanted(nowMs: number): void {
    if (nowMs - this.#askedAtMs > LEAVE_AFTER_MS) {
      this.#meter = new Meter(nowMs);
      this.#beganAtMs = nowMs;
    }
    if (this.#reportDueMs === Number.POSITIVE_INFINITY)
      this.#reportDueMs = nowMs + (this.#advance.capacity > 0 ? FIRST_WORD_MS : 0);
    this.#askedAtMs = nowMs;
  }

  /** Units were asked for here, or spent from what was lent on; `cost` is that of the dearest request. */
  asked(units: number, cost: number, nowMs: number): void {
    if (!(units > 0)) return;
    this.wanted(nowMs);
    this.#meter.arrive(units, nowMs);
    this.#askedSinceReport += units;
    this.#largestCost = Math.max(this.#largestCost, cost);
  }

  /** A request was denied here. */
  denied(nowMs: number): void {
    this.#shortAtMs = nowMs;
  }

  /** How long until there is something to tell the root; `undefined` while there is nothing. */
  dueInMs(counter: Counter, clock: LogicalClock): number | undefined {
    const nowMs = clock.logicalMs;
    const leaseMs = this.#mode === 'leased' ? this.#lease.endsAtMs - nowMs : Number.POSITIVE_INFINITY;
    const risesInMs = this.#lease.risesAtMs - nowMs;
    const dueInMs = Math.min(
      this.#reportDueMs - nowMs,
      leaseMs,
      risesInMs,
      this.#hasNewsInMs(counter, clock),
    );
    return dueInMs === Number.POSITIVE_INFINITY ? undefined : Math.max(0, dueInMs);
  }

  /** What to tell the root now; `undefined` when there turns out to be nothing. A final report ends the lease here, before it does there. */
  report(counter: Counter, counterId: string, clock: LogicalClock): MiddleReport | undefined {
    const nowMs = clock.logicalMs;
    const isIdle = nowMs - this.#askedAtMs >= LEAVE_AFTER_MS && (counter.lent?.isEmpty ?? true);
    const level = levelOf(counter, clock);
    const line = unitsAt(this.#advance, nowMs);
    const owed = this.#owed.units + Math.max(0, line - level);
    if (this.#mode !== 'leased' && isIdle && owed - this.#owed.heard < 1) {
      this.#reportDueMs = Number.POSITIVE_INFINITY;
      return undefined;
    }
    const isFallen = this.#fallenInMs(counter, nowMs) <= 0;
    if (isFallen) this.#meter = new Meter(nowMs);
    const isFinal = this.#mode === 'leased' && isIdle && owed - this.#owed.heard < ROUNDING;
    const held = Math.max(0, level - line);
    const lent = counter.lent?.lentNow(nowMs) ?? NOTHING_LENT;
    // What was lent on from the credit is no part of the root's rate.
    const isOnCredit = this.#grants < GRANTS_ON_CREDIT;
    const report: MiddleReport = {
      counterId,
      limit: this.#rule,
      epoch: this.#epoch,
      number: this.#mode === 'leased' ? this.#lease.number : 0,
      lentOn: isOnCredit ? NOTHING_LENT : lent,
      held: isFinal ? held : held + lent.capacity,
      owed: { ...this.#owed, units: owed },
      returned: this.#returned,
      lent: this.#lent,
      unitsPerSecond: isFinal ? 0 : this.#demand(counter, isFallen, nowMs),
      largestCost: this.#largestCost,
      isShort: this.#isShort(nowMs),
      isFinal,
    };
    this.#reportedAtMs = nowMs;
    this.#reportedDemand = report.unitsPerSecond;
    this.#reportedAsked = this.#meter.unitsPerSecond(nowMs);
    this.#askedSinceReport = 0;
    this.#reportDueMs = nowMs + RETRY_MS;
    if (isFinal) this.#leave(counter, level, clock);
    else if (this.#surplusPerMs > 0) {
      this.#surplusPerMs = 0;
      this.#refit(counter, level, clock);
    }
    return report;
  }

  /** What it begins with, as whoever asks has been told by the root; nothing to one that has heard from the root itself. */
  open(grant: MiddleGrant, counter: Counter, clock: LogicalClock): void {
    if (this.#hasHeard || !Number.isSafeInteger(grant.epoch)) return;
    this.#epoch = grant.epoch;
    this.hear(grant, counter, clock.logicalMs, clock);
    this.#reportDueMs = clock.logicalMs;
  }

  /** The root has answered a report that was sent at `sentMs`. */
  hear(grant: MiddleGrant, counter: Counter, sentMs: number, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    if (grant.epoch > this.#epoch) this.#begin(grant.epoch + 1, nowMs);
    if (grant.epoch !== this.#epoch) return;
    this.#hasHeard = true;
    this.#usualMs += LATEST_WEIGHT * (nowMs - sentMs - this.#usualMs);
    this.#heardAtMs = nowMs;
    this.#hearTotals(grant, nowMs);
    const units = Math.max(0, grant.lent - this.#lent);
    this.#lent += units;
    const level = levelOf(counter, clock) + units;
    this.#reportDueMs = Math.min(this.#reportDueMs, nowMs + Math.max(PAUSE_MS, grant.renewInMs));
    const isNews = grant.number > this.#lease.number && sentMs + grant.lifeMs > nowMs;
    this.#refit(counter, isNews ? this.#adoptGrant(grant, level, { sentMs, nowMs }) : level, clock);
  }

  #hearTotals({ owed, returned }: MiddleGrant, nowMs: number): void {
    const news = Math.max(0, owed - this.#owed.units);
    this.#owed = { units: this.#owed.units + news, heard: Math.max(this.#owed.heard, owed) };
    this.#advance = { ...this.#advance, units: unitsAt(this.#advance, nowMs) - news, atMs: nowMs };
    this.#returned = { ...this.#returned, heard: Math.max(this.#returned.heard, returned) };
  }

  /** Answers the level, from which an advance that is not needed any more has been taken. */
  #adoptGrant(
    grant: MiddleGrant,
    level: number,
    { sentMs, nowMs }: { sentMs: number; nowMs: number },
  ): number {
    const { number, capacity, lifeMs, renewInMs, risesInMs = 0, isScarce, share } = grant;
    const unitsPerMs = risesInMs > 0 ? 0 : grant.unitsPerMs;
    const risesAtMs = risesInMs > 0 ? nowMs + risesInMs : Number.POSITIVE_INFINITY;
    const before = this.#mode === 'leased' ? this.#lease : NO_LEASE;
    const isLess = unitsPerMs < MUCH_LESS * before.unitsPerMs || capacity < MUCH_LESS * before.capacity;
    this.#surplusPerMs = Math.max(0, before.unitsPerMs + this.#surplusPerMs - unitsPerMs);
    this.#mode = 'leased';
    this.#lease = {
      number,
      unitsPerMs,
      capacity,
      endsAtMs: sentMs + lifeMs,
      isScarce,
      risesAtMs,
      risesTo: grant.unitsPerMs,
    };
    // The root counts on the larger one until it hears that this one has come, and others may be waiting for the rest.
    this.#reportDueMs = nowMs + Math.max(PAUSE_MS, isLess ? 0 : renewInMs);
    this.#share = share;
    this.#grants += 1;
    const left = unitsAt(this.#advance, nowMs);
    this.#advance = { units: left, unitsPerMs: 0, capacity: 0, atMs: nowMs };
    return this.#grants < GRANTS_ON_CREDIT ? level : level - this.#endAdvance(level, nowMs);
  }

  /** The advance has done its work: what is missing in it is owed, and what is left of a credit is kept. Answers what is left. */
  #endAdvance(level: number, nowMs: number): number {
    const line = unitsAt(this.#advance, nowMs);
    const below = Math.max(0, line - level);
    this.#owed = { ...this.#owed, units: this.#owed.units + below };
    const left = line - below;
    this.#advance = { units: 0, unitsPerMs: 0, capacity: 0, atMs: nowMs };
    if (this.#isCredit) this.#credit = { ...this.#credit, units: left, atMs: nowMs };
    this.#isCredit = false;
    return left;
  }

  #leave(counter: Counter, level: number, clock: LogicalClock): void {
    const nowMs = clock.logicalMs;
    this.#endAdvance(level, nowMs);
    this.#mode = 'credit';
    this.#surplusPerMs = 0;
    this.#advance = { ...this.#credit, units: unitsAt(this.#credit, nowMs), atMs: nowMs };
    this.#isCredit = true;
    this.#begin(this.#epoch + 1, nowMs);
    this.#reportDueMs = Number.POSITIVE_INFINITY;
    this.#refit(counter, this.#advance.units, clock);
  }

  /** What the root has not heard of the old epoch counts in the new one. */
  #begin(epoch: number, nowMs: number): void {
    this.#epoch = epoch;
    this.#owed = { units: Math.max(0, this.#owed.units - this.#owed.heard), heard: 0 };
    this.#returned = NOTHING;
    this.#lent = 0;
    this.#grants = 0;
    this.#lease = { ...this.#lease, number: 0 };
    this.#reportDueMs = nowMs;
  }

  /** Puts the bucket under the present numbers. What a lease has no room for goes back to the root. */
  #refit(counter: Counter, level: number, clock: LogicalClock): void {
    const limit = this.limit();
    const over = level - Math.max(0, limit.burst - (counter.lent?.lentToOthers('').capacity ?? 0));
    if (over > 0 && this.#mode === 'leased') {
      this.#returned = { ...this.#returned, units: this.#returned.units + over };
    }
    refit(counter, limit, level, clock);
    counter.lent?.refitted(counter, clock);
  }

  #newAdvance(share: number, units: number, nowMs: number, margin = 1): Advance {
    const { quota, windowMs, burst } = this.#rule;
    const capacity = share === 0 ? 0 : Math.min(burst, Math.max(share * burst, this.#largestCost));
    return {
      units: Math.min(units, capacity),
      unitsPerMs: (margin * share * quota) / windowMs,
      capacity,
      atMs: nowMs,
    };
  }

  #demand(counter: Counter, isFallen: boolean, nowMs: number): number {
    const asked = this.#meter.unitsPerSecond(nowMs);
    const isWished = this.#isShort(nowMs) || this.#grants < GRANTS_ON_CREDIT;
    return isWished && !isFallen ? Math.max(asked, counter.demand.totalUnitsPerSecond(nowMs)) : asked;
  }

  #isShort(nowMs: number): boolean {
    return nowMs - this.#shortAtMs < SHORT_MS;
  }

  /** How long until there is something that the root should hear before it is due; not while an answer is awaited. */
  #hasNewsInMs(counter: Counter, clock: LogicalClock): number {
    const nowMs = clock.logicalMs;
    if (this.#reportedAtMs > this.#heardAtMs) return Number.POSITIVE_INFINITY;
    if (this.#isRunningLow(counter, clock)) return this.#heardAtMs + PAUSE_MS - nowMs;
    return this.#fallenInMs(counter, nowMs);
  }

  /** Whether what is left may not last until an answer comes. */
  #isRunningLow(counter: Counter, clock: LogicalClock): boolean {
    const nowMs = clock.logicalMs;
    const level = levelOf(counter, clock);
    if (this.#mode === 'credit')
      return (
        this.#askedSinceReport >= TELLING_UNITS ||
        (this.#askedSinceReport > 0 && level < this.#advance.capacity / 2)
      );
    if (this.#mode === 'cut' || this.#lease.isScarce) return false;
    const elapsedMs = Math.max(PAUSE_MS, nowMs - this.#reportedAtMs);
    const unitsPerMs = Math.max(this.#askedSinceReport / elapsedMs, this.#reportedDemand / 1_000);
    const shortPerMs = unitsPerMs - this.#lease.unitsPerMs;
    return level - unitsAt(this.#advance, nowMs) < shortPerMs * (SOON * this.#usualMs + PAUSE_MS);
  }

  /** How long until it can be told from chance that nobody asks any more, if nobody does. */
  #fallenInMs(counter: Counter, nowMs: number): number {
    if (this.#mode !== 'leased' || this.#reportedAsked === 0 || this.#isShort(nowMs))
      return Number.POSITIVE_INFINITY;
    const leastMs = (counter.lent?.isEmpty ?? true) ? PAUSE_MS : LENT_WORD_MS;
    return this.#askedAtMs + Math.max(leastMs, (FALLEN_UNITS * 1_000) / this.#reportedAsked) - nowMs;
  }
}

function unitsAt({ units, unitsPerMs, capacity, atMs }: Advance, nowMs: number): number {
  return unitsPerMs === 0 ? units : Math.max(units, Math.min(capacity, units + (nowMs - atMs) * unitsPerMs));
}
