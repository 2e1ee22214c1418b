/**
 * How much of a counter one holder is lent.
 *
 * A lease has a part of the counter's rate, as large as the holder's part of the demand, and room for the units that arrive together.
 * So in steady state a holder lives on its rate, asks a few times a second at most, and the owner's own bucket is there for
 * newcomers and for whoever runs short. All parts of the rate add up to at most the rate, and while there is plenty all rooms leave the
 * owner a fifth at least.
 *
 * When demand exceeds the rate and what is left will not do for the next slice of time, all of it is shared out by demand: the terms are
 * then *scarce*, and a holder that runs dry denies by itself until its next renewal, instead of asking in vain.
 */
import type { Limit } from '../core/decision.ts';
import { capacity } from '../core/decision.ts';
import { RECHECKS_PER_SECOND } from './deny-memory.ts';
import type { LeaseGrant } from './lease.ts';

/** A slice is at least this long: a few round trips, or renewals would overtake each other. */
const SLICE_MS_MIN = 50;

/** How often a holder that has enough asks again: twice in the life of its lease, so that one lost message ends none. */
const CALM_RENEWAL_MS = 500;
const LIFE_MS = 1_000;

/**
 * Whoever has asked once asks again within so long, or is no hot key: the rate that it is lent is missing elsewhere. A holder that waits longer for
 * an answer is lent to for longer.
 */
const TENTATIVE_MS = 150;

/**
 * Whoever comes first to a cold key is lent too much of it, and may not be heard of again before a crowd has come; an owner that is split then lends
 * no more until that has ended. So a first lease is for so long, or twice as long as the holder waits for an answer: by then its renewal is here,
 * also from an owner that took a quarter of a second to start. One that took longer gets it back (`engine/lease-returns`).
 */
const FIRST_LIFE_MS = 400;

/** A renewal may come a little late. */
const REFILL_MARGIN = 1.2;

/** Room for what arrives while a renewal is late, in seconds of demand; and when more is asked for than comes in, and room is missing elsewhere. */
const ROOM_SECONDS = 0.4;
const TIGHT_ROOM_SECONDS = 0.2;

/** A holder is lent a little more rate than it last needed, so that it can show that it needs more. */
const RATE_MARGIN = 1.1;

/** The rest of the rate stays free for whoever has less than its part: what others give up is otherwise taken by who asks next. */
const FAIR_PART = 0.99;

/** Demand is an estimate; a tenth above the rate may be noise. */
const OVERLOAD = 1.1;

/** Whoever has too much of a bucket that lasts for longer than this will have said so by the time that it is missed. */
const SOON_MS = 2_000;

/** At most so much of what is left at once, in proportion to demand, while there is plenty: that always leaves something for the next. */
const PART_OF_LEVEL = 0.8;

/**
 * Whoever has less than the slice to come will take may have so much of what is left, however small its part: else a part of a unit is
 * nothing, and its requests wait in line for one unit an answer.
 */
const PART_FOR_SHORT = 0.25;

/** A rate that is within so much of what it would be lent now stays: while a word of another is on its way, the difference is nobody's. */
const STEADY_PART = 0.25;

/**
 * Nobody knows yet what a newcomer needs. It is lent at least so much of the rate that is free, whatever it says: of a cold key, where all
 * are newcomers and the bucket is full, rate that is not lent is lost. Its next question, soon after, tells.
 */
const NEWCOMERS_PART = 1 / 12;

/** A grant, but for what tells it apart from others. */
export type LeaseTerms = Omit<LeaseGrant, 'number'>;

export interface LeaseAsk {
  readonly limit: Limit;
  /** Units in the owner's own bucket now. */
  readonly level: number;
  /** Rate and room lent to others. */
  readonly lentToOthers: { readonly unitsPerMs: number; readonly capacity: number };
  /** Units in the asking holder's hands, and the rate that it was last lent. */
  readonly held: number;
  readonly unitsPerMs: number;
  /** The holder has had no lease in this life of the owner. What the first of a cold key are lent is too much once the others have come. */
  readonly isFirst: boolean;
  /** It has asked once, and may not ask again: what it is lent is for as long as it takes to show that. */
  readonly isTentative: boolean;
  /** How long it waits for an answer. */
  readonly patienceMs: number;
  /** The request that asks has just been denied for want of units. */
  readonly isDenied: boolean;
  /** The smallest useful lease: the cost of the request that asks. */
  readonly cost: number;
  /** What the lease should have room for, if that leaves some to others. */
  readonly largestCost: number;
  readonly demand: {
    /** The asking holder's. */
    readonly unitsPerSecond: number;
    readonly totalUnitsPerSecond: number;
    readonly holders: number;
  };
  /** Until the window ends, for a window; else infinite. */
  readonly lifeMsMax: number;
}

/** `undefined` when there is nothing worth lending. */
export function leaseTerms(ask: LeaseAsk): LeaseTerms | undefined {
  const { limit, demand, held } = ask;
  const holders = Math.max(1, demand.holders);
  const share = Math.min(
    1,
    demand.unitsPerSecond / Math.max(demand.totalUnitsPerSecond, demand.unitsPerSecond, 1e-9),
  );
  const sliceMs = Math.max(SLICE_MS_MIN, (holders / RECHECKS_PER_SECOND) * 1_000);
  const unitsPerMs = limit.algorithm === 'token_bucket' ? lentRate(ask, share) : 0;
  const room = lentRoom(ask, { share, holders, sliceMs, unitsPerMs });
  if (room < Math.max(1, ask.cost)) return undefined;
  const isScarce = isOverloaded(ask, sliceMs);
  const part = Math.max(share, 1 / holders) * (isScarce ? 1 : PART_OF_LEVEL);
  // What is scarce is spent at once, so it needs no room that would be missing elsewhere.
  const place = isScarce ? capacity(limit) - ask.lentToOthers.capacity : room;
  const short = isScarce ? 0 : (demand.unitsPerSecond / 1_000 - unitsPerMs) * sliceMs - held;
  const least = Math.min(short, ask.level * PART_FOR_SHORT);
  const wanted = Math.max(0, Math.min(place - held, Math.max(ask.level * part, least, aboveBrim(ask, room))));
  // A part of a unit here and a part there are a unit nowhere: only a shortage is shared out to the last bit. And a window's units are
  // counted one by one, since a part of one would be lost when it ends.
  const isWhole = limit.algorithm !== 'token_bucket' || !isScarce;
  const units = isWhole ? Math.floor(wanted) : wanted;
  const isSoon = isScarce || ask.isFirst || isPressed(ask);
  const renewInMs = isSoon ? sliceMs : Math.max(sliceMs, CALM_RENEWAL_MS);
  const lifeMs = Math.min(ask.lifeMsMax, lifeOf(ask, renewInMs));
  if (unitsPerMs === 0 && units + held < 1) return undefined;
  // Room for what is in hand, and for what comes in until the next renewal: more would lie empty here and be missing there.
  const needed = Math.max(1, ask.cost, held + units + unitsPerMs * renewInMs * REFILL_MARGIN);
  const lent = Math.min(Math.max(room, held + units), needed);
  return { units, unitsPerMs, capacity: lent, lifeMs, renewInMs, isScarce };
}

function lifeOf({ isFirst, isTentative, patienceMs }: LeaseAsk, renewInMs: number): number {
  const waitMs = Math.max(TENTATIVE_MS, Math.min(patienceMs, LIFE_MS / 2));
  const shortMs = Math.max(FIRST_LIFE_MS, 2 * waitMs);
  return isTentative ? waitMs : Math.max(isFirst ? shortMs : LIFE_MS, 2 * renewInMs);
}

function lentRate(
  { limit, lentToOthers, demand, isFirst, unitsPerMs: before }: LeaseAsk,
  share: number,
): number {
  const rate = limit.quota / limit.windowMs;
  const free = Math.max(0, rate - lentToOthers.unitsPerMs);
  const least = isFirst ? free * NEWCOMERS_PART : 0;
  const wanted = (demand.unitsPerSecond * RATE_MARGIN) / 1_000;
  const fair = share < 1 ? rate * share * FAIR_PART : rate;
  const next = Math.max(least, Math.min(fair, wanted));
  const isNear = Math.abs(next - before) < STEADY_PART * before;
  // More than its part stays only while enough is free for whoever comes.
  const isNobodys = before <= next || before <= free - (1 - FAIR_PART) * rate;
  return Math.min(free, isNear && isNobodys ? before : next);
}

/** What the owner's bucket could not hold any more once so much room is lent: it would be lost to everybody. */
function aboveBrim({ limit, level, lentToOthers }: LeaseAsk, room: number): number {
  if (limit.algorithm !== 'token_bucket') return 0;
  return level - (capacity(limit) - lentToOthers.capacity - room);
}

interface Slice {
  readonly share: number;
  readonly holders: number;
  readonly sliceMs: number;
  readonly unitsPerMs: number;
}

function lentRoom(
  { limit, lentToOthers, demand, cost, largestCost, lifeMsMax }: LeaseAsk,
  { share, holders, sliceMs, unitsPerMs }: Slice,
): number {
  const free = capacity(limit) - lentToOthers.capacity;
  const isTight = overloadOf(limit, demand) > 1;
  const roomSeconds = Math.min(isTight ? TIGHT_ROOM_SECONDS : ROOM_SECONDS, lifeMsMax / 1_000);
  const useful = Math.max(demand.unitsPerSecond * roomSeconds, 2 * unitsPerMs * sliceMs);
  const fair = Math.max(share, 1 / holders) * capacity(limit) * PART_OF_LEVEL;
  return Math.min(free, Math.max(1, cost, Math.min(largestCost, free / 2), Math.min(useful, free / 2, fair)));
}

/** At this demand all is soon used up. What is too much in one hand is then missing in another, so all ask again as if it were scarce. */
function isPressed({ limit, level, demand }: LeaseAsk): boolean {
  if (limit.algorithm !== 'token_bucket') return false;
  const overload = overloadOf(limit, demand);
  return overload > OVERLOAD && level < ((overload - 1) * limit.quota * SOON_MS) / limit.windowMs;
}

function overloadOf({ quota, windowMs }: Limit, { totalUnitsPerSecond }: LeaseAsk['demand']): number {
  return (totalUnitsPerSecond * windowMs) / (quota * 1_000);
}

/** Whether what is left will not do for the slice to come, beside what comes in meanwhile. */
function isOverloaded({ limit, level, demand, isDenied }: LeaseAsk, sliceMs: number): boolean {
  if (limit.algorithm !== 'token_bucket') return level < (demand.totalUnitsPerSecond / 1_000) * sliceMs;
  const rate = limit.quota / limit.windowMs;
  const overload = overloadOf(limit, demand);
  const isShort = level < (overload - 1) * rate * sliceMs;
  return (overload > OVERLOAD && isShort) || (overload > 1 && isDenied);
}

/** A bucket that is empty within a tenth of a second cannot be lent: what waits in one hand is missing in all others. */
const BURST_MS_MIN = 100;

/** Whether a limit's algorithm and burst allow leases at all. */
export function isLendable({ algorithm, quota, burst, windowMs }: Limit): boolean {
  if (quota === 0) return false;
  return (
    algorithm === 'fixed_window' || (algorithm === 'token_bucket' && burst * windowMs >= BURST_MS_MIN * quota)
  );
}
