/**
 * Questions whose charge must not stand, until their owner has been told.
 *
 * A question is void when the request was denied elsewhere, or when its answer did not come in time and the request was decided without
 * it: then a debt stands for it, or nothing does. The ids ride on whatever goes to that owner next. The owner takes back what an id
 * charged, or will charge nothing when the question comes after all; either way it may be told many times. It knows what it
 * charged only as long as it stays in memory: a later incarnation finds nothing to take back, so what that one acknowledges is lost.
 */

/** As long as the owner remembers what a question charged (`engine/owner`). */
const KEEP_MS = 15_000;

/** An isolate has at most 64 questions with a counter, and a breaker after three failures; a shared owner has many counters. */
const VOIDS_MAX = 1_024;

interface Void {
  readonly sinceMs: number;
  /** The incarnation of the owner that said that it charged; otherwise nobody knows. */
  readonly chargedBy: string | undefined;
}

export class Voids {
  readonly #voids = new Map<string, Void>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  add(questionId: string, chargedBy: string | undefined, nowMs: number): void {
    // At the end, so that the order is that of time also when it is added again.
    this.#voids.delete(questionId);
    this.#voids.set(questionId, { sinceMs: nowMs, chargedBy });
    this.#expire(nowMs);
  }

  /** How many of them are known to have been charged. */
  get charged(): number {
    return [...this.#voids.values()].filter(({ chargedBy }) => chargedBy !== undefined).length;
  }

  /** The ids that the next message is to carry. */
  due(nowMs: number): readonly string[] {
    if (this.#voids.size === 0) return [];
    this.#expire(nowMs);
    return [...this.#voids.keys()];
  }

  /** A reply came to a message that carried these, from this incarnation of the owner. */
  acknowledged(questionIds: readonly string[], incarnation: string): void {
    for (const id of questionIds) {
      const chargedBy = this.#voids.get(id)?.chargedBy;
      this.#voids.delete(id);
      if (chargedBy !== undefined && chargedBy !== incarnation) this.#onLost(1);
    }
  }

  #expire(nowMs: number): void {
    for (const [id, { sinceMs, chargedBy }] of this.#voids) {
      if (nowMs - sinceMs <= KEEP_MS && this.#voids.size <= VOIDS_MAX) return;
      this.#voids.delete(id);
      if (chargedBy !== undefined) this.#onLost(1);
    }
  }
}
