/**
 * Conservation: of each counter, what was admitted against what its rule allows, at every admission.
 *
 * While all is well that is the limit itself, but for one round trip; seconds are the owner's seconds, and windows have their edges
 * where its clock has them. When owners are out of reach it is what `engine/bound` says of it. On
 * top comes what machines lose: a crash of an owner may forget what is not written, and a clock that steps forward refills once what is
 * measured by it.
 */
import { capacity, countsSlots, type Limit } from '../../src/core/decision.ts';
import { type Bound, boundOf, type Topology } from '../../src/engine/bound.ts';
import type { RegionBound } from '../../src/engine/bound-regions.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { inRegion } from '../../src/policy/place.ts';
import { REGIONS } from '../../src/policy/region.ts';
import type { Losses } from './owner-server.ts';
import { type Envelope, Excess, envelopeOf, SlotsExcess, WindowExcess } from './reference.ts';

/** After a lower limit comes into force, leases and answers under the old one may still be on their way for so long. */
const OLD_RULE_MS = 1_000;

/** A request decided by an owner's answer is admitted up to this much later: the longest deadline. */
const LATE_ANSWER_MS = 1_000;

export interface WatchOptions {
  readonly roundTripMs: number;
  readonly isDegraded: boolean;
  readonly topology: Topology;
  readonly losses: (owner: string) => Losses;
  /** Some regions are cut off from others at times. */
  readonly isPartitioned: boolean;
  /** How often the clock of some isolate has been set forward: what it holds of a counter then refills once, as an owner's bucket does. */
  readonly holderSteps: () => number;
  /** How fast an owner's clock may run. */
  readonly driftPpm: number;
  readonly ownerNowMs: (owner: string) => number;
}

export interface Breach {
  readonly counterId: string;
  readonly excess: number;
  readonly allowed: number;
}

export class Watch {
  readonly #options: WatchOptions;
  readonly #counters = new Map<string, WatchedCounter>();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Units above the bare limit in the worst interval of the worst counter. */
  get overAdmission(): number {
    let worst = 0;
    for (const { overLimit } of this.#counters.values()) worst = Math.max(worst, overLimit);
    return worst;
  }

  /** A request was admitted; answers what is now above all that is allowed. */
  admitted(winners: readonly Winner[], cost: number, atMs: number): Breach | undefined {
    let breach: Breach | undefined;
    const owners = new Set(winners.map(({ owner }) => owner.name)).size;
    for (const winner of winners) {
      const found = this.#counter(winner).admitted(winner.rule.limit!, { cost, atMs, owners });
      breach ??= found;
    }
    return breach;
  }

  /** A request that was admitted is not in progress any more. */
  ended(winners: readonly Winner[]): void {
    for (const winner of winners) this.#counter(winner).ended();
  }

  #counter(winner: Winner): WatchedCounter {
    const known = this.#counters.get(winner.counterId);
    if (known !== undefined) return known;
    const counter = new WatchedCounter(winner, this.#options);
    this.#counters.set(winner.counterId, counter);
    return counter;
  }
}

/** What counts in place of the bare limit, where owners or the root are out of reach at times. */
function boundUnder(
  { flapping, regional }: Bound,
  { isDegraded, isPartitioned }: WatchOptions,
): Excess | undefined {
  if (isPartitioned && regional !== undefined) return new Excess(regional.partition, LATE_ANSWER_MS);
  return isDegraded ? new Excess(flapping, LATE_ANSWER_MS) : undefined;
}

interface Admitted {
  readonly cost: number;
  readonly atMs: number;
  /** How many owners decided it. */
  readonly owners: number;
}

class WatchedCounter {
  readonly #winner: Winner;
  readonly #options: WatchOptions;
  readonly #bare: Excess | WindowExcess | SlotsExcess;
  readonly #rateFactor: number;
  readonly #bound: Excess | undefined;
  readonly #crashUnits: number;
  readonly #regional: RegionBound | undefined;
  #limit: Limit;
  #changesAtMs: number | undefined;

  constructor(winner: Winner, options: WatchOptions) {
    const limit = winner.rule.limit!;
    const bound = boundOf(winner.rule, options.topology)!;
    this.#winner = winner;
    this.#options = options;
    this.#limit = limit;
    this.#rateFactor = 1 + options.driftPpm / 1e6;
    this.#bare = this.#bareOf(limit);
    this.#bound = boundUnder(bound, options);
    this.#crashUnits = bound.crashUnits;
    this.#regional = bound.regional;
  }

  get overLimit(): number {
    return this.#bare.worst;
  }

  ended(): void {
    if (this.#bare instanceof SlotsExcess) this.#bare.ended();
  }

  admitted(limit: Limit, { cost, atMs, owners }: Admitted): Breach | undefined {
    if (limit !== this.#limit) this.#adopt(limit, atMs);
    if (this.#bare instanceof WindowExcess)
      this.#bare.admitted(cost, this.#options.ownerNowMs(this.#winner.owner.name), owners);
    else this.#bare.admitted(cost, atMs);
    this.#bound?.admitted(cost, atMs);
    const { worst: excess } = this.#bound ?? this.#bare;
    if (excess === 0) return undefined;
    const allowed = this.#allowed();
    return excess > allowed ? { counterId: this.#winner.counterId, excess, allowed } : undefined;
  }

  /** What may be admitted beside all that: what machines have lost, and the credit of regions. */
  #allowed(): number {
    const { owner, rule } = this.#winner;
    const { losses, holderSteps } = this.#options;
    const { evictions, steps } = losses(owner.name);
    let refills = steps + (rule.consistency === 'strict' ? 0 : holderSteps());
    if (this.#regional === undefined) return evictions * this.#crashUnits + refills * capacity(this.#limit);
    const { coldStartUnits, rootCrashUnits, regionCrashUnits } = this.#regional;
    let allowed = coldStartUnits + evictions * rootCrashUnits;
    for (const region of REGIONS) {
      const lost = losses(inRegion(this.#winner, region).owner.name);
      allowed += lost.evictions * regionCrashUnits;
      refills += lost.steps;
    }
    return allowed + refills * capacity(this.#limit);
  }

  /** A higher limit counts at once, a lower one when the old one can have no effect any more. */
  #adopt(limit: Limit, atMs: number): void {
    const isLower = envelopeOf(limit).unitsPerSecond < envelopeOf(this.#limit).unitsPerSecond;
    this.#changesAtMs ??= atMs + (isLower ? OLD_RULE_MS : 0);
    if (atMs < this.#changesAtMs) return;
    this.#changesAtMs = undefined;
    this.#limit = limit;
    if (this.#bare instanceof Excess) this.#bare.adopt(this.#envelopeOf(limit), atMs);
  }

  #bareOf(limit: Limit): Excess | WindowExcess | SlotsExcess {
    const { roundTripMs } = this.#options;
    if (countsSlots(limit)) return new SlotsExcess(limit);
    if (limit.algorithm === 'fixed_window') return new WindowExcess(limit, roundTripMs);
    return new Excess(this.#envelopeOf(limit), roundTripMs);
  }

  #envelopeOf(limit: Limit): Envelope {
    const { burstUnits, unitsPerSecond } = envelopeOf(limit);
    return { burstUnits, unitsPerSecond: unitsPerSecond * this.#rateFactor };
  }
}
