/**
 * Time in which nothing happens by itself: events wait in a heap until somebody lets it pass.
 *
 * One event happens at a time, the earliest first and of equal ones the one that was asked for first; before the next one, everything
 * that follows from it within the program has happened too. So a run depends on nothing but its own inputs.
 *
 * The second half is the runtime's promise that no microtask is left when the next `setImmediate` callback begins. Callbacks that
 * are set together are run in one turn of the event loop, which makes the promise an eighth as dear as a turn for each event.
 */
import { Heap, type Scheduled } from './heap.ts';

interface Event extends Scheduled {
  readonly act: () => void;
}

/** Nothing simulated takes an hour longer than it was told to wait, so by then something hangs. */
const PATIENCE_MS = 3_600_000;

/** How many events share a turn of the event loop: beyond this the turn is no part of the cost any more. */
const WAVE = 32;

export class Time {
  readonly #events = new Heap<Event>();
  #elapsedMs = 0;
  #asked = 0;

  get elapsedMs(): number {
    return this.#elapsedMs;
  }

  /** How many events are still to come. */
  get pending(): number {
    return this.#events.size;
  }

  /** Has `act` happen after `delayMs`, unless the answer is called before. */
  after(delayMs: number, act: () => void): () => void {
    this.#asked += 1;
    const event = { atMs: this.#elapsedMs + Math.max(0, delayMs), number: this.#asked, place: -1, act };
    this.#events.add(event);
    return () => this.#events.remove(event);
  }

  /** Lets time pass until the promise has settled. Throws when nothing is left that could settle it. */
  async settle<Value>(promise: Promise<Value>): Promise<Value> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    const untilMs = this.#elapsedMs + PATIENCE_MS;
    await this.#pass(() => {
      if (isSettled) return false;
      if (this.pending === 0) throw new Error('Nothing is left to happen, and the promise has not settled.');
      if (this.#elapsedMs > untilMs) throw new Error('An hour has passed, and the promise has not settled.');
      return true;
    });
    return promise;
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.#elapsedMs + ms;
    await this.#pass(() => this.#events.first !== undefined && this.#events.first.atMs <= untilMs);
    this.#elapsedMs = untilMs;
  }

  /** Until nothing is left to happen. */
  async runOut(): Promise<void> {
    const untilMs = this.#elapsedMs + PATIENCE_MS;
    await this.#pass(() => {
      if (this.#elapsedMs > untilMs) throw new Error('An hour has passed, and things go on happening.');
      return this.pending > 0;
    });
  }

  /** Lets one event after the other happen while `goesOn`, which is asked once all that follows from the last one has happened. */
  #pass(goesOn: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = 0;
      let isOver = false;
      const step = () => {
        left -= 1;
        if (isOver) return;
        try {
          if (goesOn()) this.#happen();
          else isOver = true;
          if (isOver) resolve();
          else if (left === 0) begin();
        } catch (error) {
          isOver = true;
          reject(error);
        }
      };
      const begin = () => {
        left = WAVE;
        for (let count = 0; count < WAVE; count += 1) setImmediate(step);
      };
      begin();
    });
  }

  #happen(): void {
    const event = this.#events.takeFirst();
    if (event === undefined) return;
    this.#elapsedMs = Math.max(this.#elapsedMs, event.atMs);
    event.act();
  }
}
