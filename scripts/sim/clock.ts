/**
 * A clock as machines have them: whole milliseconds since the Unix epoch, a little fast or slow, and now and then set anew.
 */
import type { Time } from './time.ts';

/** The beginning of a second, a minute, a day and a month of 30 days. */
export const START_MS = 667 * 30 * 86_400_000;

export class Clock {
  readonly #time: Time;
  readonly #rate: number;
  #stepsMs = 0;
  #stepsForward = 0;

  constructor(time: Time, driftPpm: number) {
    this.#time = time;
    this.#rate = 1 + driftPpm / 1e6;
  }

  get nowMs(): number {
    return Math.floor(START_MS + this.#time.elapsedMs * this.#rate + this.#stepsMs);
  }

  /** How often it was set forward. */
  get stepsForward(): number {
    return this.#stepsForward;
  }

  step(ms: number): void {
    this.#stepsMs += ms;
    if (ms > 0) this.#stepsForward += 1;
  }
}
