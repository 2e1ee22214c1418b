/**
 * How much of a counter its root lends to one middle owner.
 *
 * A middle owner never makes a request wait for the root, so it must have in hand what will be asked of it for a round trip to the other side of
 * the world and longer. So rate and room are shared out by demand, nearly all of both, and whoever has all the demand holds nearly all of
 * the counter. Terms for isolates (`engine/lease-terms`) keep a fifth back for newcomers; here newcomers live on their credit meanwhile.
 *
 * Demand is what was asked for lately, and of a newcomer next to nothing is known: the first of nine that start at once would else be lent
 * everything on the word of one request.
 */
import type { LogicalClock } from '../core/clock.ts';
import { capacity, type Limit } from '../core/decision.ts';
import type { Demand } from './demand.ts';
import type { MiddleGrant } from './messages.ts';

/** The root keeps as much of the burst for whoever has none. */
const LENT_PART = 0.95;

/** When all is shared out, half of the room stays with the root: it is there that what one does not use comes to others. */
const SCARCE_ROOM_PART = 0.5;

/** A lease has room for what comes in for so long; by then it has been renewed. */
const INFLOW_MS = 2_000;

/**
 * With more than this part of the rate asked for, it matters who needs it: until then all of it is shared out, since the root has no room for
 * it to wait in.
 */
const TIGHT_PART = 0.8;

/** Whoever has its room full needs little beyond what is asked for: the rest would overflow there, and others may be short of it. */
const FULL_PART = 0.8;
const FULL_MARGIN = 1.05;

/** Whoever has not may have so much more than its part of what others leave. */
const SHORT_MARGIN = 1.25;

/** With less than this part of the rate asked for it is calm. */
const CALM_PART = 0.5;

/** A rate that is as near as this to what it should be is left alone: what is lowered counts twice for a while. */
const NEAR_ENOUGH = 0.1;

/**
 * Once more is asked for than comes in nobody is lent more than its part on purpose: others leave nothing over, and whoever asks for least would be
 * left without for good. A rate that is up to a quarter above its part stays, since what is lowered counts twice for a while, but only while some of
 * the rate is free for whoever has less.
 */
const SCARCE_SURPLUS = 0.25;
const FREE_PART = 0.015;

/** Until its fourth grant a middle owner is lent half again what it asks for, and room for as long as two more round trips. */
const NEWCOMER_GRANTS = 3;
const NEWCOMER_MARGIN = 1.5;
const NEWCOMER_MS = 400;

/** Demand is an estimate; a tenth above the rate may be noise. */
const OVERLOAD = 1.1;

/** A debt is paid back out of the rate, before that is lent: within so long, and by so much of it at most. */
const REPAID_MS = 2_000;
const REPAID_PART = 0.5;

/** How long a middle owner goes on without a word from the root. */
export const LEASE_MS = 5_000;
const CALM_RENEWAL_MS = 700;
const SCARCE_RENEWAL_MS = 500;

export type MiddleTerms = Pick<
  MiddleGrant,
  'unitsPerMs' | 'capacity' | 'lifeMs' | 'renewInMs' | 'isScarce' | 'share'
> & {
  readonly units: number;
};

export interface MiddleAsk {
  readonly limit: Limit;
  /** Units in the root's own bucket now; below 0 is a debt. */
  readonly level: number;
  readonly lentToOthers: { readonly unitsPerMs: number; readonly capacity: number };
  /** The rate that the newest grant lent. */
  readonly unitsPerMs: number;
  /** Units in the middle owner's hands. */
  readonly held: number;
  /** Grants in this epoch so far. */
  readonly grants: number;
  readonly largestCost: number;
  readonly isShort: boolean;
  /** Nobody has been short lately. */
  readonly isPlenty: boolean;
  readonly demand: MiddleDemands;
  /** The same, where whoever pauses counts for what it asked for before, fading. */
  readonly recent: MiddleDemands;
}

/** The total is at least the asking middle owner's. */
export interface MiddleDemands {
  readonly unitsPerSecond: number;
  readonly totalUnitsPerSecond: number;
}

/** What others have asked for was told a while ago, half of the time between two reports on average, and has faded since. */
const FADED = 1.05;

/** As a holder last said, beside what all have said. */
export function demandsOf(demand: Demand, holder: string, { logicalMs }: LogicalClock): MiddleDemands {
  const unitsPerSecond = demand.unitsPerSecond(holder, logicalMs);
  const others = Math.max(0, demand.totalUnitsPerSecond(logicalMs) - unitsPerSecond);
  return { unitsPerSecond, totalUnitsPerSecond: unitsPerSecond + others * FADED };
}

export function middleTerms(ask: MiddleAsk): MiddleTerms {
  const { limit, held, lentToOthers } = ask;
  const level = Math.max(0, ask.level);
  const isNew = ask.grants < NEWCOMER_GRANTS;
  // Where nobody is short a pause costs nothing: it is shared out by what was asked for lately, and not by what is asked for just now.
  const demand = !isNew && isCalm(ask) ? ask.recent : ask.demand;
  const share = demand.totalUnitsPerSecond > 0 ? demand.unitsPerSecond / demand.totalUnitsPerSecond : 0;
  const isScarce = !isNew && isOverloaded(ask);
  const free = Math.max(0, capacity(limit) - lentToOthers.capacity);
  const least = Math.min(capacity(limit), Math.max(1, ask.largestCost));
  const fair = share * capacity(limit) * LENT_PART * (isScarce ? SCARCE_ROOM_PART : 1);
  const soon = isNew
    ? (demand.unitsPerSecond * NEWCOMER_MARGIN * NEWCOMER_MS) / 1_000
    : Number.POSITIVE_INFINITY;
  const room = Math.min(free, Math.max(least, Math.min(fair, soon)));
  const wanted = isScarce ? level * share : room - held;
  const aboveBrim = level - (free - room);
  const units = Math.max(0, Math.min(level, Math.max(wanted, aboveBrim)));
  const unitsPerMs = lentRate(ask, {
    share,
    isNew,
    isFull: held >= FULL_PART * room,
    isSurelyShort: isScarce && overloadOf(ask) > OVERLOAD,
    asked: demand.unitsPerSecond / 1_000,
  });
  return {
    units,
    unitsPerMs,
    // Room that nothing comes into would be missing where units come back to.
    capacity: Math.min(room, Math.max(least, held + units + unitsPerMs * INFLOW_MS)),
    lifeMs: LEASE_MS,
    renewInMs: isNew ? 0 : isScarce ? SCARCE_RENEWAL_MS : CALM_RENEWAL_MS,
    isScarce,
    share,
  };
}

interface RateAsk {
  readonly share: number;
  /** Units a millisecond. */
  readonly asked: number;
  readonly isNew: boolean;
  readonly isFull: boolean;
  /** Scarce, and by more than may be noise. */
  readonly isSurelyShort: boolean;
}

function lentRate(
  { limit, level, lentToOthers, unitsPerMs: own }: MiddleAsk,
  { share, asked, isNew, isFull, isSurelyShort }: RateAsk,
): number {
  const whole = limit.quota / limit.windowMs;
  const rate = Math.max(whole * (1 - REPAID_PART), whole - Math.max(0, -level) / REPAID_MS);
  const free = Math.max(0, rate - lentToOthers.unitsPerMs);
  const fair = rate * share;
  if (isSurelyShort) {
    const most = Math.max(fair, Math.min((1 + SCARCE_SURPLUS) * fair, free - FREE_PART * rate));
    return Math.min(free, own >= (1 - NEAR_ENOUGH) * fair && own <= most ? own : fair);
  }
  const isTight = asked > TIGHT_PART * fair;
  const plenty = isFull ? Math.min(fair, FULL_MARGIN * asked) : SHORT_MARGIN * fair;
  const target = isNew ? Math.min(fair, NEWCOMER_MARGIN * asked) : isTight ? plenty : fair;
  const isNear = own <= target && own >= (1 - NEAR_ENOUGH) * target;
  return Math.min(free, isNear ? own : target);
}

function isCalm(ask: MiddleAsk): boolean {
  return ask.isPlenty && overloadOf(ask) <= CALM_PART;
}

/** Whether what is left will not do until everybody has reported again. */
function isOverloaded(ask: MiddleAsk): boolean {
  const { limit, level, isShort, demand } = ask;
  const shortPerMs = demand.totalUnitsPerSecond / 1_000 - limit.quota / limit.windowMs;
  const isLow = level < shortPerMs * SCARCE_RENEWAL_MS;
  return (overloadOf(ask) > OVERLOAD && isLow) || (shortPerMs > 0 && isShort);
}

function overloadOf({ limit, demand: { totalUnitsPerSecond } }: MiddleAsk): number {
  return (totalUnitsPerSecond * limit.windowMs) / (limit.quota * 1_000);
}
