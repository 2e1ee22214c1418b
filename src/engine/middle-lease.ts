/** The lease that a middle owner has of its root. Times are on its own logical clock. */
import type { Limit } from '../core/decision.ts';
import type { LentNow, MiddleGrant } from './messages.ts';
import { LEASE_MS } from './middle-terms.ts';

export interface MiddleLease {
  readonly number: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsAtMs: number;
  readonly isScarce: boolean;
}

export const NO_MIDDLE_LEASE: MiddleLease = {
  number: 0,
  unitsPerMs: 0,
  capacity: 0,
  endsAtMs: 0,
  isScarce: false,
};

/** It runs from when it was asked for, so that it ends before the root takes it for ended. */
export function leaseOf(grant: MiddleGrant, sentMs: number): MiddleLease {
  const { number, unitsPerMs, capacity, lifeMs, isScarce } = grant;
  return { number, unitsPerMs, capacity, endsAtMs: sentMs + lifeMs, isScarce };
}

/** What it lends, for how long yet. */
export function lentBy({ unitsPerMs, capacity, endsAtMs }: MiddleLease, nowMs: number): LentNow {
  return { unitsPerMs, capacity, endsInMs: Math.max(0, endsAtMs - nowMs) };
}

/** The credit is there until the root knows what this middle owner needs. */
const GRANTS_ON_CREDIT = 4;

/** A rate needs room to come in for so long; others are asked for theirs meanwhile, but not for ever. */
const ROOM_MS = 200;
const GRANTS_MAX = 16;

export function isKnownAfter(grants: number): boolean {
  return grants >= GRANTS_ON_CREDIT;
}

/** Until the root knows what is needed here, and has room for it. Where little is asked for, no rate at all means that others have yet to give it up. */
export function needsAdvance({ capacity, unitsPerMs, isScarce }: MiddleLease, grants: number): boolean {
  if (!isKnownAfter(grants)) return true;
  const awaitsRate = unitsPerMs === 0 && !isScarce;
  return grants < GRANTS_MAX && (awaitsRate || capacity < unitsPerMs * ROOM_MS);
}

/** A grant so much smaller than the one before is worth a word that it has come: others may be waiting for the rest. */
const MUCH_LESS = 0.75;

export function isMuchLess(lease: MiddleLease, before: MiddleLease): boolean {
  return lease.unitsPerMs < MUCH_LESS * before.unitsPerMs || lease.capacity < MUCH_LESS * before.capacity;
}

/** The longest that anything about a lease is put off. */
const PUT_OFF_MS_MAX = LEASE_MS;

/** A grant as it can be believed, of this rule; `undefined` when it is none. A root of another version, or a faulty one, must not spoil a counter. */
export function believableGrant(
  told: Partial<MiddleGrant>,
  { quota, windowMs, burst }: Limit,
): MiddleGrant | undefined {
  const { counterId, epoch, number } = told;
  if (typeof counterId !== 'string' || !isWhole(epoch) || !isWhole(number)) return undefined;
  const sums = [
    told.lent,
    told.owed,
    told.returned,
    told.unitsPerMs,
    told.capacity,
    told.lifeMs,
    told.renewInMs,
  ];
  if (!sums.every(isAmount) || !isAmount(told.share ?? 0)) return undefined;
  return {
    ...(told as MiddleGrant),
    unitsPerMs: Math.min(told.unitsPerMs!, quota / windowMs),
    capacity: Math.min(told.capacity!, burst),
    lifeMs: Math.min(told.lifeMs!, LEASE_MS),
    renewInMs: Math.min(told.renewInMs!, PUT_OFF_MS_MAX),
    isScarce: told.isScarce === true,
    share: Math.min(1, told.share ?? 0),
  };
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

function isAmount(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0;
}
