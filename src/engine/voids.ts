/**
 * Questions whose charge must not stand, until their owner has been told.
 *
 * A question is void when the request was denied elsewhere, or when its answer did not come in time and the request was decided without
 * it: then a debt stands for it, or nothing does. The ids ride on whatever goes to that owner next. The owner takes back what an id
 * charged, or will charge nothing when the question comes after all; either way it may be told many times.
 */

/** As long as the owner remembers what a question charged (`engine/owner`). */
const KEEP_MS = 15_000;

/** An isolate has at most 64 questions with a counter, and a breaker after three failures; a shared owner has many counters. */
const VOIDS_MAX = 1_024;

interface Void {
  readonly sinceMs: number;
  /** The owner has said that it charged; otherwise nobody knows. */
  isCharged: boolean;
}

export class Voids {
  readonly #voids = new Map<string, Void>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  add(questionId: string, { isCharged }: { isCharged: boolean }, nowMs: number): void {
    this.#voids.set(questionId, { sinceMs: nowMs, isCharged });
    this.#expire(nowMs);
  }

  /** How many of them are known to have been charged. */
  get charged(): number {
    return [...this.#voids.values()].filter(({ isCharged }) => isCharged).length;
  }

  /** The ids that the next message is to carry. */
  due(nowMs: number): readonly string[] {
    if (this.#voids.size === 0) return [];
    this.#expire(nowMs);
    return [...this.#voids.keys()];
  }

  /** A reply came to a message that carried these. */
  acknowledged(questionIds: readonly string[]): void {
    for (const id of questionIds) this.#voids.delete(id);
  }

  #expire(nowMs: number): void {
    for (const [id, { sinceMs, isCharged }] of this.#voids) {
      if (nowMs - sinceMs <= KEEP_MS && this.#voids.size <= VOIDS_MAX) return;
      this.#voids.delete(id);
      if (isCharged) this.#onLost(1);
    }
  }
}
