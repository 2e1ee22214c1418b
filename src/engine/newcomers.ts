/** Whether holders that ask for a lease for the first time are so many at once that the key is hot. */
import { Meter } from './meter.ts';

/** A key that each of its holders asks for more rarely than this is not lent (`engine/leases`). */
const CALLS_PER_SECOND_MIN = 8;

export class Newcomers {
  #meter: Meter | undefined;

  /** One more has come; true when they are a rush. */
  arrive(activeHolders: number, nowMs: number): boolean {
    this.#meter ??= new Meter(nowMs);
    this.#meter.arrive(1, nowMs);
    const isLone = this.#meter.isLone(nowMs);
    return !isLone && this.#meter.unitsPerSecond(nowMs) >= CALLS_PER_SECOND_MIN * activeHolders;
  }
}
