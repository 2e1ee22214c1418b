/**
 * A logical clock: it only goes forward, by as much as the raw clock went forward.
 *
 * Raw clocks step. A step forward is taken as time that passed (it refills once); a step back is taken as no time at all, so it
 * neither refills nor freezes a counter. The clock is kept with the counters it dates, and therefore survives an eviction.
 */

export interface LogicalClock {
  /** The raw clock's reading at the last advance, in milliseconds since the Unix epoch. */
  readonly rawMs: number;
  /** Milliseconds since this clock was made. Small numbers keep microsecond states exact at a million units a second. */
  readonly logicalMs: number;
}

export function startClock(rawMs: number): LogicalClock {
  return { rawMs, logicalMs: 0 };
}

export function advance(clock: LogicalClock, rawMs: number): LogicalClock {
  if (rawMs === clock.rawMs) return clock;
  return { rawMs, logicalMs: clock.logicalMs + Math.max(0, rawMs - clock.rawMs) };
}
