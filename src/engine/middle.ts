/**
 * A middle owner's business with its root: which of its counters have something to tell, and what came back.
 *
 * One message at a time is on its way; one that is not answered in time is followed by another. Nothing waits for an answer, and a root that
 * never answers costs a message a second for as long as somebody asks.
 */
import type { LogicalClock } from '../core/clock.ts';
import type { Decision, Limit } from '../core/decision.ts';
import type { Version } from '../policy/ruleset.ts';
import { type Counter, settle } from './counters.ts';
import type { Asked } from './deciding.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';
import {
  isReadable,
  MESSAGE_FORMAT,
  type MiddleGrant,
  type MiddleReport,
  type OwnerCall,
  type OwnerReply,
  type Question,
} from './messages.ts';
import { numberOf, wholeOf } from './slices.ts';
import type { StoredUpstream } from './stored-upstream.ts';
import { Upstream } from './upstream.ts';

/** A shared middle owner has many counters; what is beyond goes with the next message. */
const REPORTS_MAX = 256;

/** Longer than a round trip between any two regions. */
const PATIENCE_MS = 1_000;

export interface MiddleOptions {
  /** What the middle owner is called; the root knows it by that. */
  readonly name: string;
  /** What the root calls the counter. */
  readonly rootIdOf: (counterId: string) => string;
  /** What part of a limit it admits on credit, where no question says. */
  readonly startCredit: number;
  /** Larger than in any earlier life: the time will do. */
  readonly epoch: number;
}

/** A message for the root, and when it goes. */
export interface RootCall {
  readonly call: OwnerCall;
  readonly sentMs: number;
  /** Counters whose lease it gives up: that is to be stored, since no answer changes it. */
  readonly left: readonly Counter[];
}

export class Middle {
  readonly #options: MiddleOptions;
  /** Counters that may have something to tell. */
  readonly #active = new Map<string, Counter>();
  #sentMs: number | undefined;
  /** Nothing is to be told before. */
  #nextAtMs = Number.POSITIVE_INFINITY;

  constructor(options: MiddleOptions) {
    this.#options = options;
  }

  /** How a new counter of this rule begins; `undefined` where it cannot be lent, and counts by itself. */
  upstreamOf(rule: Limit, startCredit: number | undefined, nowMs: number): Upstream | undefined {
    if (rule.algorithm !== 'token_bucket') return undefined;
    const { epoch, startCredit: usual } = this.#options;
    return new Upstream({ rule, startCredit: startCredit ?? usual, epoch, nowMs });
  }

  restored(stored: StoredUpstream, nowMs: number): Upstream {
    return new Upstream({ ...stored, epoch: this.#options.epoch, nowMs }, stored);
  }

  /** Something has happened to the counter. */
  touched(counter: Counter, clock: LogicalClock): void {
    if (counter.upstream === undefined) return;
    this.#active.set(counter.id, counter);
    this.#expect(counter, clock);
  }

  /** Of these counters something was asked. */
  noted(asked: readonly Asked[], { cost, borrowed, decisions, lease }: Noted, clock: LogicalClock): void {
    const { logicalMs: nowMs } = clock;
    for (const [at, { counter, shadow }] of asked.entries()) {
      const { upstream } = counter;
      if (borrowed !== undefined && !borrowed.isFinal) upstream?.wanted(nowMs);
      upstream?.asked(cost, cost, nowMs);
      upstream?.asked(shadow ? 0 : (borrowed?.spent ?? 0), borrowed?.largestCost ?? 0, nowMs);
      if (decisions[at]?.outcome === 'denied' || lease?.isScarce) upstream?.denied(nowMs);
      this.touched(counter, clock);
    }
  }

  /** What a slice begins with, as whoever asks has been told. */
  open({ opening = [] }: Question, asked: readonly Asked[], clock: LogicalClock): void {
    const { name } = this.#options;
    for (const { counter } of asked) {
      const grant = opening.find((each) => each?.counterId === counter.id);
      if (grant !== undefined && !isHeard(grant, name)) counter.upstream?.open(grant, counter, clock);
    }
  }

  /** Whether this is a slice, and has denied only because its root has not answered its first word yet. */
  isUnready(asked: readonly Asked[], decisions: readonly Decision[], { logicalMs }: LogicalClock): boolean {
    if (wholeOf(this.#options.name) === undefined) return false;
    const denied = asked.filter(({ shadow }, at) => !shadow && decisions[at]?.outcome !== 'allowed');
    return denied.every(({ counter }) => counter.upstream?.isNew(logicalMs));
  }

  /** How long until there may be something to tell; `undefined` while there is nothing. */
  dueInMs({ logicalMs: nowMs }: LogicalClock): number | undefined {
    if (this.#nextAtMs === Number.POSITIVE_INFINITY) return undefined;
    const awaitedUntilMs = this.#sentMs === undefined ? nowMs : this.#sentMs + PATIENCE_MS;
    return Math.max(0, this.#nextAtMs - nowMs, awaitedUntilMs - nowMs);
  }

  /** What to tell the root now, if anything. */
  call(version: Version, clock: LogicalClock): RootCall | undefined {
    if (this.dueInMs(clock) !== 0) return undefined;
    const { name, rootIdOf } = this.#options;
    const reports: MiddleReport[] = [];
    const left: Counter[] = [];
    this.#nextAtMs = Number.POSITIVE_INFINITY;
    for (const counter of this.#active.values()) {
      settle(counter, clock);
      const isDue = counter.upstream?.dueInMs(counter, clock) === 0 && reports.length < REPORTS_MAX;
      const report = isDue ? counter.upstream?.report(counter, rootIdOf(counter.id), clock) : undefined;
      if (report !== undefined) reports.push(report);
      if (report?.isFinal) left.push(counter);
      this.#expect(counter, clock);
    }
    if (reports.length === 0) return undefined;
    this.#sentMs = clock.logicalMs;
    return {
      call: { format: MESSAGE_FORMAT, holder: name, version, middle: reports },
      sentMs: this.#sentMs,
      left,
    };
  }

  /** What came of a call, `undefined` when nothing did; answers the counters that it changed. */
  heard({ call, sentMs }: RootCall, reply: OwnerReply | undefined, clock: LogicalClock): readonly Counter[] {
    if (this.#sentMs === sentMs) this.#sentMs = undefined;
    if (!isReadable(reply?.format, MESSAGE_FORMAT) || !Array.isArray(reply?.middle)) return [];
    const changed: Counter[] = [];
    const asked = new Set(call.middle?.map(({ counterId }) => counterId));
    const grants = new Map(reply.middle.map((grant) => [grant?.counterId, grant]));
    for (const counter of this.#active.values()) {
      const grant = grants.get(this.#options.rootIdOf(counter.id));
      if (grant === undefined || !asked.has(grant.counterId)) continue;
      settle(counter, clock);
      counter.upstream?.hear(grant, counter, sentMs, clock);
      changed.push(counter);
    }
    return changed;
  }

  #expect(counter: Counter, clock: LogicalClock): void {
    const dueInMs = counter.upstream?.dueInMs(counter, clock);
    if (dueInMs === undefined) this.#active.delete(counter.id);
    else this.#nextAtMs = Math.min(this.#nextAtMs, clock.logicalMs + dueInMs);
  }
}

/** Whether the root has heard of the slice: then it is lent to by what it is answered, and by nothing else. */
function isHeard({ notFor }: MiddleGrant, name: string): boolean {
  return Array.isArray(notFor) && notFor.includes(numberOf(name));
}

/** What a question and its answer say of the demand for counters. */
interface Noted {
  readonly cost: number;
  /** What the holder said of its lease. */
  readonly borrowed: LeaseReport | undefined;
  readonly decisions: readonly Decision[];
  readonly lease: LeaseGrant | undefined;
}
