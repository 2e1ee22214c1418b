/**
 * An owner's object as the platform runs it: one call at a time, in the order of arrival, each taking its time; refusing calls when
 * too much work waits; losing its memory, and the calls in its queue, when it is evicted.
 */
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import type { OwnerFailure } from '../../src/engine/ports.ts';
import type { Clock } from './clock.ts';
import type { Faults } from './faults.ts';
import type { OwnerHost } from './owner-host.ts';
import type { Time } from './time.ts';

/** What the object does with a call; usually the host's `handle`. */
export type Handle = (call: OwnerCall) => OwnerReply;

export interface Caller {
  readonly answered: (reply: OwnerReply) => void;
  readonly failed: (failure: OwnerFailure) => void;
}

/** How often an owner has lost its memory, and its clock has been set forward. */
export interface Losses {
  readonly evictions: number;
  readonly steps: number;
}

export interface ServerOptions {
  readonly host: OwnerHost;
  readonly clock: Clock;
  readonly handle: Handle;
  readonly time: Time;
  readonly faults: () => Faults;
}

const OVERLOADED: OwnerFailure = { overloaded: true, retryable: false };
const EVICTED: OwnerFailure = { overloaded: false, retryable: true };

export class OwnerServer {
  readonly host: OwnerHost;
  readonly clock: Clock;
  readonly #handle: Handle;
  readonly #time: Time;
  readonly #faults: () => Faults;
  #isRunning = false;
  #evictions = 0;
  #busyUntilMs = 0;
  #stalledUntilMs = 0;

  constructor({ host, clock, handle, time, faults }: ServerOptions) {
    this.host = host;
    this.clock = clock;
    this.#handle = handle;
    this.#time = time;
    this.#faults = faults;
  }

  get losses(): Losses {
    return { evictions: this.#evictions, steps: this.clock.stepsForward };
  }

  receive(call: OwnerCall, { answered, failed }: Caller): void {
    const { serviceMs, queueMs, startMs } = this.#faults();
    if (!this.#isRunning) {
      this.#isRunning = true;
      this.#work(startMs);
    }
    const waitMs = Math.max(0, this.#busyUntilMs - this.#time.elapsedMs);
    if (waitMs > queueMs) {
      failed(OVERLOADED);
      return;
    }
    const life = this.#evictions;
    this.#work(serviceMs);
    this.#time.after(waitMs + serviceMs, () => {
      if (life === this.#evictions) answered(this.#handle(call));
      else failed(EVICTED);
    });
  }

  /** Does nothing for so long; a stall within another ends with the longer of both. */
  stall(ms: number): void {
    const nowMs = this.#time.elapsedMs;
    const beganMs = Math.max(nowMs, this.#stalledUntilMs);
    this.#stalledUntilMs = Math.max(beganMs, nowMs + ms);
    this.#work(this.#stalledUntilMs - beganMs);
  }

  #work(ms: number): void {
    this.#busyUntilMs = Math.max(this.#busyUntilMs, this.#time.elapsedMs) + ms;
  }

  evict(): void {
    this.#evictions += 1;
    this.#isRunning = false;
    this.#busyUntilMs = this.#time.elapsedMs;
    this.host.restart();
  }
}
