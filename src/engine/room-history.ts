/**
 * How much room a bucket has had lately: the least of it since a given instant.
 *
 * Units that overflowed in a holder's hands come back to their owner late. They would have found a place in its bucket then if there has
 * been room for them all the while since. Whoever keeps the history notes the room before each charge and whenever it has shrunk;
 * between two notes it only shrinks.
 */

/** A few round trips are told apart. */
const SLOT_MS = 20;

/** Two seconds, which is longer than a holder is silent. What overflowed before that is not taken back. */
const SLOTS_MAX = 100;

interface Slot {
  readonly fromMs: number;
  least: number;
}

export class RoomHistory {
  /** In order of time. */
  readonly #slots: Slot[] = [];
  #isComplete = true;

  note(room: number, nowMs: number): void {
    const last = this.#slots.at(-1);
    if (last !== undefined && nowMs < last.fromMs + SLOT_MS) {
      last.least = Math.min(last.least, room);
      return;
    }
    this.#slots.push({ fromMs: nowMs, least: room });
    if (this.#slots.length <= SLOTS_MAX) return;
    this.#slots.shift();
    this.#isComplete = false;
  }

  /** Units have come back, and count as if they had been there all the while: others that overflowed meanwhile find less room. */
  fill(units: number): void {
    for (const slot of this.#slots) slot.least = Math.max(0, slot.least - units);
  }

  leastSince(sinceMs: number): number {
    const [oldest] = this.#slots;
    if (oldest === undefined || (sinceMs < oldest.fromMs && !this.#isComplete)) return 0;
    let least = Number.POSITIVE_INFINITY;
    for (const slot of this.#slots) if (slot.fromMs + SLOT_MS > sinceMs) least = Math.min(least, slot.least);
    return least;
  }
}
