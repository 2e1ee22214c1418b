/**
 * Time in which nothing happens by itself: events wait in a queue until a test lets it pass.
 *
 * One event happens at a time, the earliest first and of equal ones the one that was asked for first; before the next one, everything
 * that follows from it within the program has happened too. So a run depends on nothing but its own inputs.
 */
import { setImmediate as macrotask } from 'node:timers/promises';

interface Event {
  readonly atMs: number;
  readonly number: number;
  readonly act: () => void;
}

/** No test is about anything that takes an hour longer than it was told to wait, so by then something hangs. */
const PATIENCE_MS = 3_600_000;

export class Time {
  /** In the order in which they will happen. */
  readonly #events: Event[] = [];
  #elapsedMs = 0;
  #asked = 0;

  get elapsedMs(): number {
    return this.#elapsedMs;
  }

  /** How many events are still to come. */
  get pending(): number {
    return this.#events.length;
  }

  /** Has `act` happen after `delayMs`, unless the answer is called before. */
  after(delayMs: number, act: () => void): () => void {
    this.#asked += 1;
    const event = { atMs: this.#elapsedMs + Math.max(0, delayMs), number: this.#asked, act };
    const at = this.#events.findIndex((other) => other.atMs > event.atMs);
    this.#events.splice(at === -1 ? this.#events.length : at, 0, event);
    return () => {
      const place = this.#events.indexOf(event);
      if (place !== -1) this.#events.splice(place, 1);
    };
  }

  /** Lets time pass until the promise has settled. Throws when nothing is left that could settle it. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    const untilMs = this.#elapsedMs + PATIENCE_MS;
    await flush();
    while (!isSettled) {
      if (this.#events.length === 0)
        throw new Error('Nothing is left to happen, and the promise has not settled.');
      if (this.#elapsedMs > untilMs) throw new Error('An hour has passed, and the promise has not settled.');
      await this.#step();
    }
    return promise;
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await flush();
    while (this.#events[0] !== undefined && this.#events[0].atMs <= untilMs) await this.#step();
    this.#elapsedMs = untilMs;
  }

  /** Until nothing is left to happen. */
  async runOut(): Promise<void> {
    const untilMs = this.#elapsedMs + PATIENCE_MS;
    await flush();
    while (this.#events.length > 0) {
      if (this.#elapsedMs > untilMs) throw new Error('An hour has passed, and things go on happening.');
      await this.#step();
    }
  }

  async #step(): Promise<void> {
    const event = this.#events.shift();
    if (event === undefined) return;
    this.#elapsedMs = Math.max(this.#elapsedMs, event.atMs);
    event.act();
    await flush();
  }
}

/** The next macrotask begins once no microtask is left: all promises that could go on have gone on. */
function flush(): Promise<void> {
  return macrotask();
}
