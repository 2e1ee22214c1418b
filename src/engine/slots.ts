/**
 * The slots that requests of this isolate hold at one owner, and what the owner has not been told of them.
 *
 * A slot that the owner hears nothing of is free after its life, so each is renewed every third of it: two words in a row may be lost. A
 * slot that is let go is told until the owner acknowledges it, or has freed it by itself. Words ride on whatever message goes to that
 * owner next, in whatever order; the owner keeps them straight by the request's id.
 */
import type { CounterRef, SlotNotice } from './messages.ts';

const RENEWALS_PER_LIFE = 3;

/** More requests than an isolate's memory has room for; beyond it the oldest is left to end by itself. About 200 bytes each. */
const SLOTS_MAX = 16_384;

/** More than a message needs: the rest goes with the next one. */
const PER_MESSAGE_MAX = 256;

interface Held {
  readonly counters: readonly CounterRef[];
  readonly lifeMs: number;
  /** When the owner was last told, and had heard; `-Infinity` when it never was. */
  renewedMs: number;
  /** When a message last spoke of it; `-Infinity` when none did. */
  sentMs: number;
}

interface Freed {
  readonly counters: readonly CounterRef[];
  /** By then the owner has freed it without being told. */
  readonly untilMs: number;
  sentMs: number;
}

export interface Holding {
  readonly id: string;
  readonly counters: readonly CounterRef[];
  /** When the question was sent that took them; absent when no owner knows of it. */
  readonly takenMs?: number;
}

export class HeldSlots {
  readonly #held = new Map<string, Held>();
  readonly #freed = new Map<string, Freed>();
  readonly #live = new Map<string, number>();
  readonly #onLost: (count: number) => void;

  constructor(onLost: (count: number) => void) {
    this.#onLost = onLost;
  }

  /** Slots that are held, or were let go without the owner's knowing. */
  get size(): number {
    return this.#held.size + this.#freed.size;
  }

  /** How many slots of a counter are held by requests of this isolate. */
  live(counterId: string): number {
    return this.#live.get(counterId) ?? 0;
  }

  /** Answers how often the slot is to be renewed. */
  hold({ id, counters, takenMs = NEVER }: Holding): number {
    const lifeMs = Math.min(...counters.map(({ limit }) => limit.windowMs));
    this.#held.set(id, { counters, lifeMs, renewedMs: takenMs, sentMs: takenMs });
    this.#count(counters, 1);
    if (this.#held.size > SLOTS_MAX) this.#forgetOldest();
    return lifeMs / RENEWALS_PER_LIFE;
  }

  /** A slot that no owner has ever been told of is simply gone. */
  free(id: string, counters: readonly CounterRef[], nowMs: number): void {
    const held = this.#held.get(id);
    if (this.#held.delete(id)) this.#count(counters, -1);
    if (held?.sentMs === NEVER) return;
    const lifeMs = Math.max(...counters.map(({ limit }) => limit.windowMs));
    this.#freed.set(id, { counters, untilMs: nowMs + lifeMs, sentMs: NEVER });
    if (this.#freed.size > SLOTS_MAX) this.#lose(this.#freed.keys().next().value!);
  }

  /** Whether it is time to tell the owner that this request still holds its slots. */
  isRenewalDue(id: string, nowMs: number): boolean {
    const held = this.#held.get(id);
    return held !== undefined && isDue(held, nowMs);
  }

  /** Whether the owner has yet to be told that this request's slots are free. */
  isFreed(id: string, nowMs: number): boolean {
    this.#expire(nowMs);
    return this.#freed.has(id);
  }

  /** Whether there is something to tell that no message has spoken of since `sinceMs`. */
  hasUnsent(sinceMs: number, nowMs: number): boolean {
    this.#expire(nowMs);
    for (const { sentMs } of this.#freed.values()) if (sentMs < sinceMs) return true;
    for (const held of this.#held.values()) if (held.sentMs < sinceMs && isDue(held, nowMs)) return true;
    return false;
  }

  /** What the next message carries. */
  due(nowMs: number): readonly SlotNotice[] {
    if (this.#held.size === 0 && this.#freed.size === 0) return NOTHING_DUE;
    this.#expire(nowMs);
    const notices: SlotNotice[] = [];
    for (const [id, freed] of this.#freed) {
      if (notices.length === PER_MESSAGE_MAX) return notices;
      freed.sentMs = nowMs;
      notices.push({ id, counters: freed.counters, isHeld: false });
    }
    for (const [id, held] of this.#held) {
      if (notices.length === PER_MESSAGE_MAX) return notices;
      if (!isDue(held, nowMs)) continue;
      held.sentMs = nowMs;
      notices.push({ id, counters: held.counters, isHeld: true });
    }
    return notices;
  }

  /** A reply came to a message that was sent at `sentMs` and carried these. */
  acknowledged(notices: readonly SlotNotice[], sentMs: number): void {
    for (const { id, isHeld } of notices) {
      const held = this.#held.get(id);
      if (!isHeld) this.#freed.delete(id);
      else if (held !== undefined) {
        held.renewedMs = Math.max(held.renewedMs, sentMs);
        // The ones renewed longest ago stay in front, so that a full message leaves out the others.
        this.#held.delete(id);
        this.#held.set(id, held);
      }
    }
  }

  #expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#freed) if (nowMs >= untilMs) this.#lose(id);
  }

  #lose(id: string): void {
    this.#freed.delete(id);
    this.#onLost(1);
  }

  #forgetOldest(): void {
    const oldest = this.#held.entries().next().value;
    if (oldest === undefined) return;
    this.#held.delete(oldest[0]);
    this.#count(oldest[1].counters, -1);
    this.#onLost(1);
  }

  #count(counters: readonly CounterRef[], change: number): void {
    for (const { id } of counters) {
      const live = this.live(id) + change;
      if (live > 0) this.#live.set(id, live);
      else this.#live.delete(id);
    }
  }
}

const NEVER = Number.NEGATIVE_INFINITY;

function isDue({ lifeMs, renewedMs }: Held, nowMs: number): boolean {
  return nowMs - renewedMs >= lifeMs / RENEWALS_PER_LIFE;
}

const NOTHING_DUE: readonly SlotNotice[] = [];
