/**
 * What an isolate admitted on behalf of one owner that it could not reach, until the owner has been told.
 *
 * The fallback's own bucket refills what it admitted, so a debt shrinks at that rate; of a fixed window only the current window's part is
 * owed. Once sent, a debt keeps its id and its units until a reply to a message that carried it has come: it may be sent many
 * times, and is charged once. Nothing is dropped without being counted.
 */
import type { Limit } from '../core/decision.ts';
import type { Debt } from './messages.ts';

/** A shared owner holds many callers; beyond this many in debt at once the oldest is given up. About 100 bytes each. */
const COUNTERS_MAX = 256;

/** More than a message needs: the rest goes with the next one. */
const PER_MESSAGE_MAX = 64;

/** An unacknowledged debt is repeated for so long; the owner remembers its id a little longer (`engine/owner`). */
const GIVE_UP_AFTER_MS = 300_000;

export interface Admission {
  readonly counterId: string;
  readonly limit: Limit;
  readonly cost: number;
  /** How fast the bucket that admitted it refills; 0 for a window, which does not. */
  readonly unitsPerMs: number;
  /** When nothing of it is owed any more: the end of its window. */
  readonly untilMs: number;
}

interface Owed {
  readonly limit: Limit;
  readonly unitsPerMs: number;
  readonly untilMs: number;
  units: number;
  atMs: number;
}

interface Sent {
  readonly debt: Debt;
  readonly sentAtMs: number;
}

export class Debts {
  readonly #owed = new Map<string, Owed>();
  readonly #sent = new Map<string, Sent>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  get size(): number {
    return this.#owed.size + this.#sent.size;
  }

  admitted({ counterId, limit, cost, unitsPerMs, untilMs }: Admission, nowMs: number): void {
    const known = this.#owed.get(counterId);
    const units = (known === undefined ? 0 : left(known, nowMs)) + cost;
    this.#owed.set(counterId, { limit, unitsPerMs, untilMs, units, atMs: nowMs });
    if (this.#owed.size <= COUNTERS_MAX) return;
    const oldest = this.#owed.keys().next().value;
    if (oldest === undefined) return;
    this.#owed.delete(oldest);
    this.#onLost(1);
  }

  /** The debts that the next message is to carry. `newId` makes an id that is never used again. */
  due(newId: () => string, nowMs: number): readonly Debt[] {
    if (this.size === 0) return [];
    for (const [counterId, owed] of this.#owed) {
      if (this.#sent.size >= PER_MESSAGE_MAX) break;
      this.#owed.delete(counterId);
      const units = Math.floor(left(owed, nowMs));
      if (units === 0) continue;
      const id = newId();
      this.#sent.set(id, { debt: { id, counterId, limit: owed.limit, units }, sentAtMs: nowMs });
    }
    for (const [id, { sentAtMs }] of this.#sent) {
      if (nowMs - sentAtMs <= GIVE_UP_AFTER_MS) continue;
      this.#sent.delete(id);
      this.#onLost(1);
    }
    return [...this.#sent.values()].map(({ debt }) => debt);
  }

  /** A reply came to a message that carried these. */
  acknowledged(debts: readonly Debt[]): void {
    for (const { id } of debts) this.#sent.delete(id);
  }
}

function left({ unitsPerMs, untilMs, units, atMs }: Owed, nowMs: number): number {
  return nowMs >= untilMs ? 0 : Math.max(0, units - (nowMs - atMs) * unitsPerMs);
}
