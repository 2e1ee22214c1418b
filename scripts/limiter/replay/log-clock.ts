/** Time that passes as the log says: it begins with the first request. */
import { Time } from '../../sim/time.ts';

export class LogClock {
  readonly time = new Time();
  readonly #startMs: number;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** In whole milliseconds since the Unix epoch. */
  get nowMs(): number {
    return this.#startMs + Math.floor(this.time.elapsedMs);
  }

  /** Lets time pass until then, and everything happen that follows from what has been done so far. */
  reach(atMs: number): Promise<void> {
    return this.time.advance(Math.max(0, atMs - this.#startMs - this.time.elapsedMs));
  }
}
