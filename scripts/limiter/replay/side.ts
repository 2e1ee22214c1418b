/**
 * One ruleset in force: the production gate of one isolate in front of the production owners, under the time of the log.
 *
 * Shadow rules have a gate to themselves, in which each decides alone about the requests that the enforced rules admitted: that is whom
 * they are charged for, and what they would have denied is then known of every request. (Beside enforced rules a gate may learn of it late,
 * with the next renewal of a lease, or only that there was something.)
 */
import { Gate } from '../../../src/engine/gate.ts';
import type { Ports, Timer } from '../../../src/engine/ports.ts';
import type { GateRequest, Verdict } from '../../../src/engine/verdict.ts';
import { type Match, Matcher } from '../../../src/policy/match.ts';
import type { Estimate, Ruleset, Version } from '../../../src/policy/ruleset.ts';
import type { LogRecord } from './log.ts';
import type { LogClock } from './log-clock.ts';
import { OwnerRoom } from './owner-room.ts';

/** As in production (`gateway/limiter`). */
const BUCKET_SLOTS = 262_144;

export interface SideObserver {
  readonly decided: (record: LogRecord, outcome: Outcome) => void;
  /** A shadow policy would have denied a request that was admitted. */
  readonly shadowDenied: (policy: string) => void;
}

export interface Outcome {
  readonly kind: Verdict['outcome'];
  readonly isUnmatched: boolean;
  readonly isDelayed: boolean;
  /** The policies that refused it. */
  readonly refusedBy: readonly string[];
}

export class Side {
  readonly owners: OwnerRoom;
  readonly #version: Version;
  readonly #deadlineMs: number;
  readonly #clock: LogClock;
  readonly #observer: SideObserver;
  readonly #matcher: Matcher;
  readonly #largestCost: number;
  readonly #gate: Gate;
  readonly #shadowGate: Gate;
  #hasBegun = false;
  #problem: unknown;

  constructor(ruleset: Ruleset, clock: LogClock, observer: SideObserver) {
    this.#version = { activation: 1, builtAtMs: ruleset.builtAtMs };
    this.#deadlineMs = ruleset.deadlineMs;
    this.#clock = clock;
    this.#observer = observer;
    this.#matcher = new Matcher(ruleset, { seed: 0 });
    this.#largestCost = Math.max(1, ...ruleset.costs.map(({ cost }) => cost));
    this.owners = new OwnerRoom(clock);
    this.#gate = new Gate(this.#ports(), { holder: 'isolate', bucketSlots: BUCKET_SLOTS });
    const bucketSlots = ruleset.rules.some(({ shadow }) => shadow) ? BUCKET_SLOTS : 1;
    this.#shadowGate = new Gate(this.#ports(), { holder: 'shadow', bucketSlots });
  }

  /** Whether something has been begun since this was last asked that ends only when time is let pass. */
  takeBegun(): boolean {
    const hasBegun = this.#hasBegun;
    this.#hasBegun = false;
    return hasBegun;
  }

  decide(record: LogRecord): void {
    const match = this.#matcher.match({ attributes: record.attributes });
    this.#ask(this.#gate, this.#requestOf(record, match, match.enforced), (verdict) => {
      this.#observer.decided(record, outcomeOf(verdict, match));
      if (verdict.outcome !== 'allowed') return;
      for (const winner of match.shadow) this.#decideShadow(record, match, winner);
    });
  }

  /** Throws when the engine failed: what was counted then means nothing. */
  expectSound(): void {
    if (this.#problem !== undefined) throw this.#problem;
  }

  #decideShadow(record: LogRecord, match: Match, winner: Match['shadow'][number]): void {
    this.#ask(this.#shadowGate, this.#requestOf(record, match, [winner]), ({ outcome }) => {
      if (outcome !== 'allowed') this.#observer.shadowDenied(winner.rule.policy);
    });
  }

  #requestOf({ cost }: LogRecord, match: Match, enforced: Match['enforced']): Asked {
    // A cost in the log is what the request did cost, and no estimate.
    const estimate = cost === undefined ? match.estimate : undefined;
    const request = {
      version: this.#version,
      enforced,
      shadow: NO_WINNERS,
      cost: cost ?? match.cost,
      largestCost: this.#largestCost,
      isEstimate: estimate !== undefined,
      deadlineMs: this.#deadlineMs,
    };
    return { request, estimate };
  }

  #ask(gate: Gate, asked: Asked, decided: (verdict: Verdict) => void): void {
    const conclude = (verdict: Verdict) => {
      endAtOnce(verdict, asked);
      decided(verdict);
    };
    const verdict = gate.decide(asked.request, (work) => {
      this.#hasBegun = true;
      work.catch((problem: unknown) => this.#fail(problem));
    });
    if (!(verdict instanceof Promise)) {
      conclude(verdict);
      return;
    }
    this.#hasBegun = true;
    verdict.then(conclude).catch((problem: unknown) => this.#fail(problem));
  }

  #fail(problem: unknown): void {
    this.#problem ??= problem ?? new Error('The engine failed and did not say why.');
  }

  #ports(): Ports {
    return {
      nowMs: () => this.#clock.nowMs,
      // Chance only spreads what many isolates do at once. Of one it would make two replays differ.
      random: () => 0.5,
      timer: (delayMs) => this.#timer(delayMs),
      callOwner: async ({ name }, call) => {
        try {
          return this.owners.handle(name, call);
        } catch (problem) {
          // The gate would go on without the owner.
          this.#fail(problem);
          throw problem;
        }
      },
      count: () => {},
      log: () => {},
    };
  }

  #timer(delayMs: number): Timer {
    const { promise: done, resolve } = Promise.withResolvers<void>();
    return { done, cancel: this.#clock.time.after(delayMs, resolve) };
  }
}

interface Asked {
  readonly request: GateRequest;
  /** Where the cost is an estimate. */
  readonly estimate: Estimate | undefined;
}

/** The log does not say how long a request took, nor what its response said of its cost. */
function endAtOnce({ stay }: Verdict, { estimate }: Asked): void {
  if (estimate !== undefined) stay?.settle(estimate.defaultCost);
  stay?.end();
}

function outcomeOf({ outcome: kind, delayMs, policies }: Verdict, { unmatched }: Match): Outcome {
  const isRefused = kind !== 'allowed';
  return {
    kind,
    isUnmatched: unmatched,
    isDelayed: delayMs > 0,
    refusedBy: isRefused
      ? policies.filter(({ outcome }) => outcome !== 'allowed').map(({ policy }) => policy)
      : NOBODY,
  };
}

const NO_WINNERS: Match['shadow'] = [];
const NOBODY: readonly string[] = [];
