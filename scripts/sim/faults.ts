/**
 * Everything that can go wrong in a simulated world, and how slow it is when nothing does: the one place where that is said.
 *
 * A world reads these at the moment something happens, so healing it is giving it `HEALTHY`.
 */
import type { Random } from './random.ts';

export interface Faults {
  /** One way between an isolate and an owner, in milliseconds: uniform from `delayMs` to `delayMs + jitterMs`. So messages overtake. */
  readonly delayMs: number;
  readonly jitterMs: number;
  /** The part (0 to 1) of messages, there or back, that take `stragglerMs` longer: late answers, and reordering beyond the jitter. */
  readonly stragglers: number;
  readonly stragglerMs: number;
  /** The part of calls that never arrive, and of replies that are never heard. The caller waits for ever. */
  readonly callsLost: number;
  readonly repliesLost: number;
  /** The part of calls that an owner gets twice; the caller hears the reply to the second. */
  readonly callsRepeated: number;
  /** The part of calls whose connection breaks; of these, half have reached the owner. */
  readonly connectionsLost: number;
  /** How long an owner works on one call. It does one at a time, in the order of arrival. */
  readonly serviceMs: number;
  /** A call that would wait longer than this is refused as `overloaded`. */
  readonly queueMs: number;
  /** How long an owner that is not in memory takes to start. */
  readonly startMs: number;
  /** How often an owner does nothing for `stallMs`; its calls wait. */
  readonly stallsPerSecond: number;
  readonly stallMs: number;
  /** How often an owner loses its memory, and whatever it has not written. Calls in its queue fail as lost connections. */
  readonly evictionsPerSecond: number;
  /** How often an isolate vanishes, with its requests and whatever it held; a new one takes its place. */
  readonly deathsPerSecond: number;
  /** How far each clock runs fast or slow: up to this many parts in a million, either way. */
  readonly driftPpm: number;
  /** How often some clock, an isolate's or an owner's, jumps: up to `stepMs`, either way. */
  readonly stepsPerSecond: number;
  readonly stepMs: number;
  /** How much longer a message is on its way to another region than within one. */
  readonly regionMs: number;
}

/**
 * What is usual: 10 ms one way to a Durable Object of the same continent, a call a millisecond, quartz clocks. An object refuses calls
 * when what is queued would take it seconds.
 */
export const HEALTHY: Faults = {
  delayMs: 8,
  jitterMs: 4,
  stragglers: 0,
  stragglerMs: 0,
  callsLost: 0,
  repliesLost: 0,
  callsRepeated: 0,
  connectionsLost: 0,
  serviceMs: 1,
  queueMs: 2_000,
  startMs: 20,
  stallsPerSecond: 0,
  stallMs: 0,
  evictionsPerSecond: 0,
  deathsPerSecond: 0,
  driftPpm: 50,
  stepsPerSecond: 0,
  stepMs: 0,
  regionMs: 65,
};

/** A whole round trip when nothing goes wrong: the time for which one ideal counter cannot be told from a distributed one. */
export function roundTripMs({ delayMs, jitterMs, serviceMs }: Faults): number {
  return 2 * delayMs + jitterMs + serviceMs;
}

/** Some kinds of fault, each as bad as it pleases: what a soak run lives through. */
export function randomFaults(random: Random): Faults {
  const some = (value: () => number) => (random.chance(0.4) ? value() : 0);
  const part = () => some(() => random.between(0, 0.2));
  return {
    ...randomFaultsWithinReach(random),
    delayMs: random.between(0, 40),
    jitterMs: random.between(0, 40),
    stragglers: part(),
    stragglerMs: random.between(50, 2_500),
    callsLost: part(),
    repliesLost: part(),
    connectionsLost: part(),
    serviceMs: random.between(0.2, 2),
    queueMs: random.between(50, 2_000),
    stallsPerSecond: some(() => random.between(0, 0.5)),
    stallMs: random.between(100, 3_000),
    regionMs: random.between(0, 400),
    evictionsPerSecond: some(() => random.between(0, 0.5)),
  };
}

/** Only such faults as leave every call answered in time, so that limits must hold to the unit. */
export function randomFaultsWithinReach(random: Random): Faults {
  const some = (value: () => number) => (random.chance(0.4) ? value() : 0);
  return {
    ...HEALTHY,
    delayMs: random.between(0, 15),
    jitterMs: random.between(0, 15),
    callsRepeated: some(() => random.between(0, 0.2)),
    startMs: random.between(0, 200),
    deathsPerSecond: some(() => random.between(0, 1)),
    driftPpm: some(() => random.between(0, 500)),
    stepsPerSecond: some(() => random.between(0, 0.3)),
    stepMs: random.oneOf([50, 1_000, 30_000, 3_600_000]),
  };
}
