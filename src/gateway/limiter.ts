/**
 * The engine with the platform behind it: the real clock, randomness and timers, and owners as Durable Objects. One per isolate and
 * namespace, made inside the first request, since the platform gives no randomness before that.
 */
import { Gate } from '../engine/gate.ts';
import type { OwnerCall, OwnerReply } from '../engine/messages.ts';
import type { Background, EngineEvent, EngineLog, Ports, Timer } from '../engine/ports.ts';
import { RETRY_SPREAD_SECONDS, spreadRetry } from '../engine/spread.ts';
import type { Verdict } from '../engine/verdict.ts';
import type { OwnerRef, Winner } from '../policy/counter.ts';
import type { Facts, Match } from '../policy/match.ts';
import { matchIn, servedRegion } from '../policy/place.ts';
import { REGION_UNKNOWN, type Region } from '../policy/region.ts';
import { logEvent } from '../telemetry/log.ts';
import { preflightMatch } from './preflight.ts';
import type { Snapshot } from './snapshot.ts';

/** 4 MiB of buckets: 175,000 callers at once before one has to give way. */
const BUCKET_SLOTS = 262_144;

/** Whoever wants to know what the limiter does: for counting, and to hear what owners say of the rules. */
export interface LimiterObserver {
  decided(decided: Decided, facts: Facts): void;
  count(event: EngineEvent, amount: number): void;
  shadowDenied(winner: Winner): void;
  answered(tookMs: number): void;
  heard(word: Pick<OwnerReply, 'version' | 'clamps'>): void;
  changed(line: EngineLog): void;
}

/** Losses are rare, and each is worth a line. */
const LOGGED: ReadonlySet<EngineEvent> = new Set([
  'give_back_lost',
  'debt_lost',
  'correction_lost',
  'slot_release_lost',
]);

/** The object's one method, as a stub offers it. */
interface OwnerStub {
  call(call: OwnerCall): Promise<OwnerReply>;
}

/** A stub that has failed may be broken for good, so each call has its own. The hint counts for the call that makes the object. */
export function stubOf<Stub>(
  objects: DurableObjectNamespace,
  { name, hint }: Omit<OwnerRef, 'shared'>,
): Stub {
  return objects.getByName(name, hint && { locationHint: hint }) as unknown as Stub;
}

export interface Decided {
  readonly verdict: Verdict;
  readonly match: Match;
  readonly cost: number;
  readonly isPreflight: boolean;
}

export interface DecideOptions {
  /** In place of the ruleset's cost: a whole number >= 0. */
  readonly cost?: number | undefined;
  /** A browser's preflight is nobody's request: only the flood tier counts it. */
  readonly isPreflight?: boolean;
  /** Where the request comes from; asked for only where a rule is counted by regions. */
  readonly region?: (() => Region) | undefined;
}

export interface LimiterOptions {
  readonly observer?: LimiterObserver | undefined;
  readonly bucketSlots?: number;
}

export class Limiter {
  readonly #gate: Gate;
  readonly #observer: LimiterObserver | undefined;

  constructor(owners: DurableObjectNamespace, { observer, bucketSlots = BUCKET_SLOTS }: LimiterOptions = {}) {
    this.#gate = new Gate(workerPorts(owners, observer), { holder: crypto.randomUUID(), bucketSlots });
    this.#observer = observer;
  }

  /** Owners that are not asked at present, since they did not answer. */
  get silentOwners(): number {
    return this.#gate.silentOwners;
  }

  get displacedBuckets(): number {
    return this.#gate.displacedBuckets;
  }

  /** Whatever was denied may be allowed now. */
  forgetDenied(): void {
    this.#gate.forgetDenied();
  }

  /** These counters were set back: what is remembered of them is void. */
  forget(counterIds: readonly string[]): void {
    this.#gate.forget(counterIds);
  }

  /** At once where nobody has to be asked, else in a promise. */
  decide(
    facts: Facts,
    snapshot: Snapshot,
    options: DecideOptions,
    background: Background,
  ): Decided | Promise<Decided> {
    const { clamps } = snapshot;
    const clampsNow = clamps.isEmpty ? undefined : { table: clamps, nowMs: Date.now() };
    const found = snapshot.matcher.match(facts, clampsNow);
    const { isPreflight = false } = options;
    const applied = isPreflight ? preflightMatch(found, facts, snapshot.preflights) : found;
    const match = snapshot.isRegional ? placed(applied, snapshot, options) : applied;
    const cost = options.cost ?? match.cost;
    const { version, largestCost, ruleset } = snapshot;
    const { enforced, shadow, clamped } = match;
    const isEstimate = match.estimate !== undefined;
    const { deadlineMs } = ruleset;
    const denyUntilMs = clamped?.clamp.action === 'deny' ? clamped.clamp.untilMs : undefined;
    const request = { version, enforced, shadow, cost, largestCost, isEstimate, deadlineMs, denyUntilMs };
    const verdict = this.#gate.decide(request, background);
    return verdict instanceof Promise
      ? verdict.then((settled) => this.#decided({ verdict: settled, match, cost, isPreflight }, facts))
      : this.#decided({ verdict, match, cost, isPreflight }, facts);
  }

  #decided(settled: Decided, facts: Facts): Decided {
    const decided = settled.verdict.outcome === 'denied' ? withRetrySpread(settled) : settled;
    this.#observer?.decided(decided, facts);
    return decided;
  }
}

function placed(match: Match, { ruleset }: Snapshot, { region }: DecideOptions): Match {
  return matchIn(match, servedRegion(ruleset, region?.() ?? REGION_UNKNOWN));
}

function withRetrySpread(decided: Decided): Decided {
  const seconds = Math.floor(Math.random() * (RETRY_SPREAD_SECONDS + 1));
  return { ...decided, verdict: spreadRetry(decided.verdict, decided.match.enforced, seconds) };
}

function workerPorts(owners: DurableObjectNamespace, observer: LimiterObserver | undefined): Ports {
  return {
    nowMs: () => Date.now(),
    random: () => Math.random(),
    timer: platformTimer,
    callOwner: (owner: OwnerRef, call: OwnerCall) => stubOf<OwnerStub>(owners, owner).call(call),
    count: (event, amount = 1) => {
      observer?.count(event, amount);
      if (LOGGED.has(event)) logEvent({ event, amount });
    },
    log: (line) => {
      observer?.changed(line);
      logEvent({ ...line });
    },
    shadowDenied: (winner) => observer?.shadowDenied(winner),
    answered: (tookMs) => observer?.answered(tookMs),
    heard: (word) => observer?.heard(word),
  };
}

export function platformTimer(delayMs: number): Timer {
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, Math.max(0, delayMs));
  return { done, cancel: () => clearTimeout(timer) };
}
