/**
 * What an isolate admitted on behalf of one owner that it could not reach, until the owner has been told.
 *
 * The fallback's own bucket refills what it admitted, so a debt shrinks at that rate, told or not; of a fixed window only the current
 * window's part is owed. Once sent, a debt keeps its id until a reply to a message that carried it has come: it may be sent many
 * times, each time with what is left of it, and is charged once. Nothing is dropped without being counted.
 */
import type { Limit } from '../core/decision.ts';
import type { Debt } from './messages.ts';

/** A shared owner holds many callers; beyond this many in debt at once the oldest is given up. About 100 bytes each. */
const COUNTERS_MAX = 256;

/** More than a message needs: the rest goes with the next one. */
const PER_MESSAGE_MAX = 64;

/** An unacknowledged debt is repeated for so long; the owner remembers its id a little longer (`engine/owner`). */
const GIVE_UP_AFTER_MS = 300_000;

/** What a subtraction of times may leave of a whole unit. */
const ROUNDING_UNITS = 1e-9;

export interface Admission {
  readonly counterId: string;
  readonly limit: Limit;
  readonly cost: number;
  /** How fast the bucket that admitted it refills; 0 for a window, which does not. */
  readonly unitsPerMs: number;
  /** When nothing of it is owed any more: the end of its window. */
  readonly untilMs: number;
}

/** One counter's debt: what is on its way under an id, and what came after. */
interface Account {
  readonly limit: Limit;
  readonly unitsPerMs: number;
  readonly untilMs: number;
  sent: Sent | undefined;
  unsentUnits: number;
  /** Up to when the refill has been taken off. */
  atMs: number;
}

interface Sent {
  readonly id: string;
  readonly sinceMs: number;
  units: number;
}

export class Debts {
  readonly #accounts = new Map<string, Account>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  /** How many counters are in debt. */
  get size(): number {
    return this.#accounts.size;
  }

  admitted({ counterId, limit, cost, unitsPerMs, untilMs }: Admission, nowMs: number): void {
    const known = this.#accounts.get(counterId);
    if (known !== undefined) refill(known, nowMs);
    const { sent, unsentUnits } = known ?? { sent: undefined, unsentUnits: 0 };
    const account = { limit, unitsPerMs, untilMs, sent, unsentUnits: unsentUnits + cost, atMs: nowMs };
    this.#accounts.set(counterId, account);
    if (this.#accounts.size <= COUNTERS_MAX) return;
    const oldest = this.#accounts.keys().next().value;
    if (oldest === undefined) return;
    this.#accounts.delete(oldest);
    this.#onLost(1);
  }

  /** So much of what was admitted was never needed. What is on its way may be charged already, and is then charged for good. */
  forgive(counterId: string, units: number, nowMs: number): void {
    const account = this.#accounts.get(counterId);
    if (account === undefined) return;
    refill(account, nowMs);
    const unsent = Math.min(units, account.unsentUnits);
    account.unsentUnits -= unsent;
    if (account.sent !== undefined) account.sent.units -= Math.min(units - unsent, account.sent.units);
    if (account.sent?.units === 0) account.sent = undefined;
  }

  /** Units that are owed on a counter, whether or not they are on their way. */
  owed(counterId: string, nowMs: number): number {
    const account = this.#accounts.get(counterId);
    if (account === undefined) return 0;
    refill(account, nowMs);
    return account.unsentUnits + (account.sent?.units ?? 0);
  }

  /** The debts that the next message is to carry. `newId` makes an id that is never used again. */
  due(newId: () => string, nowMs: number): readonly Debt[] {
    const debts: Debt[] = [];
    for (const [counterId, account] of this.#accounts) {
      refill(account, nowMs);
      if (account.sent !== undefined && nowMs - account.sent.sinceMs > GIVE_UP_AFTER_MS) {
        account.sent = undefined;
        this.#onLost(1);
      }
      if (isSettled(account)) this.#accounts.delete(counterId);
      else if (debts.length < PER_MESSAGE_MAX) {
        const sent = send(account, newId, nowMs);
        if (sent !== undefined)
          debts.push({ id: sent.id, counterId, limit: account.limit, units: wholeUnits(sent) });
      }
    }
    return debts;
  }

  /** A reply came to a message that carried these. */
  acknowledged(debts: readonly Debt[]): void {
    for (const { id, counterId } of debts) {
      const account = this.#accounts.get(counterId);
      if (account?.sent?.id !== id) continue;
      account.sent = undefined;
      if (isSettled(account)) this.#accounts.delete(counterId);
    }
  }
}

/** What is on its way was admitted first, so it is refilled first. */
function refill(account: Account, nowMs: number): void {
  const { sent, unsentUnits, unitsPerMs, untilMs, atMs } = account;
  const refilled = nowMs >= untilMs ? Number.POSITIVE_INFINITY : Math.max(0, nowMs - atMs) * unitsPerMs;
  account.atMs = nowMs;
  account.unsentUnits = Math.max(0, unsentUnits - Math.max(0, refilled - (sent?.units ?? 0)));
  if (sent === undefined) return;
  sent.units -= refilled;
  if (sent.units <= 0) account.sent = undefined;
}

/** What is on its way; when nothing is, the whole units that are owed go. A fraction stays until others make it whole. */
function send(account: Account, newId: () => string, nowMs: number): Sent | undefined {
  const units = Math.floor(account.unsentUnits);
  if (account.sent !== undefined || units === 0) return account.sent;
  account.sent = { id: newId(), sinceMs: nowMs, units };
  account.unsentUnits -= units;
  return account.sent;
}

/** A charge is of whole units. Rounding up keeps a repeated debt of one unit from becoming none. */
function wholeUnits({ units }: Sent): number {
  return Math.ceil(units - ROUNDING_UNITS);
}

function isSettled({ sent, unsentUnits }: Account): boolean {
  return sent === undefined && unsentUnits === 0;
}
