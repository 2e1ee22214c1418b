/**
 * What requests turned out to cost, until their owner has been told.
 *
 * Each correction bears the id of its request and is sent as it is until a reply acknowledges it; the owner makes it once. It rides on
 * whatever message goes to that owner next. Nothing is dropped without being counted.
 */
import type { Correction } from './messages.ts';

/** The owner remembers the id a little longer (`engine/after-the-fact`). */
const GIVE_UP_AFTER_MS = 300_000;

/** Half a minute of a busy isolate's estimates; about 300 bytes each. */
const CORRECTIONS_MAX = 1_024;

/** More than a message needs: the rest goes with the next one. */
const PER_MESSAGE_MAX = 64;

interface Pending {
  readonly correction: Correction;
  readonly sinceMs: number;
  /** When a message last carried it; `-Infinity` when none did. */
  sentMs: number;
}

export class Corrections {
  /** In order of time. */
  readonly #pending = new Map<string, Pending>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  get size(): number {
    return this.#pending.size;
  }

  add(correction: Correction, nowMs: number): void {
    this.#pending.set(correction.id, { correction, sinceMs: nowMs, sentMs: Number.NEGATIVE_INFINITY });
    this.#expire(nowMs);
  }

  isUntold(id: string, nowMs: number): boolean {
    this.#expire(nowMs);
    return this.#pending.has(id);
  }

  /** Whether there is one that no message has carried since `sinceMs`. */
  hasUnsent(sinceMs: number): boolean {
    for (const { sentMs } of this.#pending.values()) if (sentMs < sinceMs) return true;
    return false;
  }

  /** The corrections that the next message carries. */
  due(nowMs: number): readonly Correction[] {
    if (this.#pending.size === 0) return NOTHING_DUE;
    this.#expire(nowMs);
    const due: Correction[] = [];
    for (const pending of this.#pending.values()) {
      if (due.length === PER_MESSAGE_MAX) break;
      pending.sentMs = nowMs;
      due.push(pending.correction);
    }
    return due;
  }

  /** A reply came to a message that carried these; answers those that nobody had acknowledged before. */
  acknowledged(corrections: readonly Correction[]): readonly Correction[] {
    return corrections.filter(({ id }) => this.#pending.delete(id));
  }

  #expire(nowMs: number): void {
    for (const [id, { sinceMs }] of this.#pending) {
      if (nowMs - sinceMs <= GIVE_UP_AFTER_MS && this.#pending.size <= CORRECTIONS_MAX) return;
      this.#pending.delete(id);
      this.#onLost(1);
    }
  }
}

const NOTHING_DUE: readonly Correction[] = [];
