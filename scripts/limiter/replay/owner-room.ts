/**
 * The owners of one ruleset's counters: the production ones, in memory, answering at once.
 *
 * One is made when it is first called, as an object is. One that has not been called for a while leaves memory as an object does: what is
 * stored of it takes about a kilobyte, and is dropped once all of it is at rest.
 */
import type { OwnerCall, OwnerReply } from '../../../src/engine/messages.ts';
import { Owner } from '../../../src/engine/owner.ts';
import { restore, type StoredOwner, WriteBehind } from '../../../src/engine/write-behind.ts';
import { isSharedName } from '../../../src/policy/counter.ts';
import type { LogClock } from './log-clock.ts';

/** What an object keeps in production; see `objects/limiter-owner`. */
const COUNTERS_MAX = 1_024;
const SHARED_COUNTERS_MAX = 16_384;

/** An owner may be told to take back what it charged lately, and knows it for so long (`engine/owner`). */
const IDLE_MS = 15_000;

interface Resident {
  readonly owner: Owner;
  calledMs: number;
}

export class OwnerRoom {
  readonly #clock: LogClock;
  readonly #residents = new Map<string, Resident>();
  readonly #asleep = new Map<string, StoredOwner>();
  #lives = 0;
  #displaced = 0;

  constructor(clock: LogClock) {
    this.#clock = clock;
  }

  /** How many owners there are, in memory or stored. */
  get size(): number {
    return this.#residents.size + this.#asleep.size;
  }

  /** Counters that said something and had to give way. */
  get displaced(): number {
    return this.#displaced;
  }

  handle(name: string, call: OwnerCall): OwnerReply {
    const { nowMs } = this.#clock;
    const resident = this.#residents.get(name) ?? this.#awaken(name, nowMs);
    resident.calledMs = nowMs;
    return resident.owner.handle(call, nowMs);
  }

  #awaken(name: string, nowMs: number): Resident {
    this.#lives += 1;
    const options = {
      incarnation: String(this.#lives),
      countersMax: isSharedName(name) ? SHARED_COUNTERS_MAX : COUNTERS_MAX,
      onChanged: () => {},
      onDisplaced: () => {
        this.#displaced += 1;
      },
    };
    const resident = { owner: new Owner(options, nowMs, this.#asleep.get(name)), calledMs: nowMs };
    this.#asleep.delete(name);
    this.#residents.set(name, resident);
    this.#lookAfter(IDLE_MS, name, resident);
    return resident;
  }

  #lookAfter(ms: number, name: string, resident: Resident): void {
    this.#clock.time.after(ms, () => {
      const { nowMs } = this.#clock;
      const idleLeftMs = resident.calledMs + IDLE_MS - nowMs;
      if (idleLeftMs <= 0) this.#putToSleep(name, resident.owner, nowMs);
      else {
        // A shared owner is called all the time, and what its callers have left behind is at rest sooner or later.
        resident.owner.sweep(nowMs);
        this.#lookAfter(idleLeftMs, name, resident);
      }
    });
  }

  #putToSleep(name: string, owner: Owner, nowMs: number): void {
    this.#residents.delete(name);
    owner.sweep(nowMs);
    const restInMs = Math.ceil(owner.restInMs(nowMs));
    const stored = restInMs > 0 ? storedOf(owner, nowMs) : undefined;
    if (stored === undefined) return;
    this.#asleep.set(name, stored);
    this.#clock.time.after(restInMs, () => {
      if (this.#asleep.get(name) === stored) this.#asleep.delete(name);
    });
  }
}

/** What storage would hold of it. */
function storedOf(owner: Owner, nowMs: number): StoredOwner | undefined {
  const writeBehind = new WriteBehind(1);
  for (const counter of owner.counters()) writeBehind.changed(counter, 0);
  return restore(writeBehind.take(owner, nowMs));
}
