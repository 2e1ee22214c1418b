/**
 * The counters of one owner: bounded, each with the numbers it was last decided under and the state they left.
 *
 * A rule whose numbers change keeps its counter and the units used. An isolate that still holds an older ruleset cannot bring the old
 * numbers back. When the map is full, counters at rest go first (they say nothing; they are looked for once a second), then the one
 * that would be at rest soonest among a few of the oldest, which loses least.
 */
import {
  afterStepBack,
  atRestAtMs,
  type CounterState,
  carryOver,
  charge,
  nowMsFor,
} from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { capacity, type Decision, type Limit } from '../core/decision.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import { Demand } from './demand.ts';
import type { LeaseBook } from './lease-book.ts';
import { toldBy } from './lent-limit.ts';
import type { MiddleBook } from './middle-book.ts';
import type { Upstream } from './upstream.ts';

export interface Counter {
  readonly id: string;
  limit: Limit;
  state: CounterState | undefined;
  version: Version;
  readonly demand: Demand;
  /** What is lent of it, once something has been. */
  lent: LeaseBook | undefined;
  /** Where it is a middle owner's: how it stands with the root. The limit is then what that comes to, and not the rule's. */
  upstream: Upstream | undefined;
  /** Where it is a root's: its middle owners, once one has reported. */
  middles: MiddleBook | undefined;
}

/** A counter of which nothing is known yet. */
export function newCounter(named: Pick<Counter, 'id' | 'limit' | 'version'>, upstream?: Upstream): Counter {
  const limit = upstream?.limit() ?? named.limit;
  const fresh = { state: undefined, demand: new Demand(), lent: undefined, middles: undefined };
  return { ...named, ...fresh, limit, upstream };
}

/** The rule's own numbers. */
export function ruleLimitOf({ limit, upstream }: Counter): Limit {
  return upstream?.told.rule ?? limit;
}

/** A decision as it is told, which is by the rule's own numbers. */
export function told({ upstream }: Counter, decision: Decision, cost: number): Decision {
  return upstream === undefined ? decision : toldBy(upstream.told.rule, decision, cost);
}

/** Brings the counter's bucket forward to now: what was lent of it, and what it was lent, may have ended. */
export function settle(counter: Counter, clock: LogicalClock): void {
  counter.lent?.settle(counter, clock);
  counter.upstream?.settle(counter, clock);
}

/** Sets the counter back to full, but for what is lent of it: that stays lent. */
export function startAnew(counter: Counter, clock: LogicalClock): void {
  const { limit, lent } = counter;
  const lentUnits = Math.min(capacity(limit), lent?.lentToOthers('').capacity ?? 0);
  counter.state = charge(limit, undefined, lentUnits, nowMsFor(limit, clock));
}

/** A counter as a message names it; `startCredit` where it is a middle owner's. */
export interface Named {
  readonly id: string;
  readonly limit: Limit;
  readonly version: Version;
  readonly startCredit?: number | undefined;
}

export type UpstreamOf = (
  rule: Limit,
  startCredit: number | undefined,
  nowMs: number,
) => Upstream | undefined;

/** How many of the oldest counters are weighed when one must give way. */
const WEIGHED_MAX = 16;

/** A sweep looks at every counter, so however many newcomers a full owner has, they cause one in so long. */
const SWEEP_INTERVAL_MS = 1_000;

export class Counters {
  readonly #byId = new Map<string, Counter>();
  readonly #countersMax: number;
  readonly #upstreamOf: UpstreamOf | undefined;
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(countersMax: number, upstreamOf?: UpstreamOf) {
    this.#countersMax = countersMax;
    this.#upstreamOf = upstreamOf;
  }

  get size(): number {
    return this.#byId.size;
  }

  values(): IterableIterator<Counter> {
    return this.#byId.values();
  }

  get(id: string): Counter | undefined {
    return this.#byId.get(id);
  }

  restore(counter: Counter): void {
    this.#byId.set(counter.id, counter);
  }

  /**
   * The counter of this id under the newest numbers known for it. `displaced` is one that gave way, if one had to; none of those
   * `beside` it in its question does, or what the question charges them would be forgotten at once.
   */
  obtain(
    asked: Named,
    clock: LogicalClock,
    beside: readonly Counter[],
  ): { counter: Counter; displaced?: Counter } {
    const known = this.#byId.get(asked.id);
    if (known !== undefined) {
      settle(known, clock);
      if (!isNewer(known.version, asked.version)) adopt(known, asked, clock);
      return { counter: known };
    }
    const displaced = this.#byId.size >= this.#countersMax ? this.#makeRoom(clock, beside) : undefined;
    const { id, limit, version, startCredit } = asked;
    const counter = newCounter(
      { id, limit, version },
      this.#upstreamOf?.(limit, startCredit, clock.logicalMs),
    );
    this.#byId.set(asked.id, counter);
    return displaced === undefined ? { counter } : { counter, displaced };
  }

  /** The raw clock has stepped back: counts that now lie in the future are moved to the present. */
  stepBack(clock: LogicalClock): void {
    for (const counter of this.#byId.values()) {
      counter.state = afterStepBack(counter.limit, counter.state, nowMsFor(counter.limit, clock));
    }
  }

  /** Drops the counters that are at rest, but for `kept`, and answers them. */
  sweep(clock: LogicalClock, kept: readonly Counter[] = []): Counter[] {
    const rested = [...this.#byId.values()].filter(
      (counter) => restInMs(counter, clock) <= 0 && !kept.includes(counter),
    );
    for (const counter of rested) this.#byId.delete(counter.id);
    return rested;
  }

  /** How long until every counter is at rest; 0 when they all are. */
  restInMs(clock: LogicalClock): number {
    let latestMs = 0;
    for (const counter of this.#byId.values()) latestMs = Math.max(latestMs, restInMs(counter, clock));
    return latestMs;
  }

  #makeRoom(clock: LogicalClock, kept: readonly Counter[]): Counter | undefined {
    if (clock.logicalMs - this.#sweptAtMs >= SWEEP_INTERVAL_MS) {
      this.#sweptAtMs = clock.logicalMs;
      if (this.sweep(clock, kept).length > 0) return undefined;
    }
    let soonest: Counter | undefined;
    let weighed = 0;
    for (const counter of this.#byId.values()) {
      if (kept.includes(counter)) continue;
      if (soonest === undefined || restInMs(counter, clock) < restInMs(soonest, clock)) soonest = counter;
      weighed += 1;
      if (weighed === WEIGHED_MAX) break;
    }
    if (soonest === undefined) return undefined;
    this.#byId.delete(soonest.id);
    return restInMs(soonest, clock) > 0 ? soonest : undefined;
  }
}

/** How long until the counter says nothing: it is full, and nothing of it is lent. */
export function restInMs(counter: Counter, clock: LogicalClock): number {
  const { limit, state, lent, upstream } = counter;
  const fullInMs =
    upstream === undefined
      ? atRestAtMs(limit, state) - nowMsFor(limit, clock)
      : upstream.restInMs(counter, clock);
  return lent === undefined ? fullInMs : lent.restInMs(limit, { fullInMs, nowMs: clock.logicalMs });
}

function adopt(counter: Counter, asked: Named, clock: LogicalClock): void {
  counter.version = asked.version;
  if (counter.upstream !== undefined) {
    counter.upstream.adopt(counter, { rule: asked.limit, startCredit: asked.startCredit }, clock);
    return;
  }
  const { limit, state } = counter;
  const before = { limit, state, nowMs: nowMsFor(limit, clock) };
  counter.state = carryOver(before, { limit: asked.limit, nowMs: nowMsFor(asked.limit, clock) });
  counter.limit = asked.limit;
}
