/**
 * The engine with the platform behind it: the real clock, randomness and timers, and owners as Durable Objects. One per isolate and
 * namespace, made inside the first request, since the platform gives no randomness before that.
 */
import { Gate } from '../engine/gate.ts';
import type { OwnerCall, OwnerReply } from '../engine/messages.ts';
import type { Background, EngineEvent, Ports, Timer } from '../engine/ports.ts';
import type { Verdict } from '../engine/verdict.ts';
import type { OwnerRef } from '../policy/counter.ts';
import type { Facts, Match } from '../policy/match.ts';
import { logEvent } from '../telemetry/log.ts';
import { preflightMatch } from './preflight.ts';
import type { Snapshot } from './rules-source.ts';

/** 4 MiB of buckets: 175,000 callers at once before one has to give way. */
const BUCKET_SLOTS = 262_144;

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
}

export class Limiter {
  readonly #gate: Gate;

  constructor(owners: DurableObjectNamespace) {
    this.#gate = new Gate(workerPorts(owners), { holder: crypto.randomUUID(), bucketSlots: BUCKET_SLOTS });
  }

  /** At once where nobody has to be asked, else in a promise. */
  decide(
    facts: Facts,
    snapshot: Snapshot,
    options: DecideOptions,
    background: Background,
  ): Decided | Promise<Decided> {
    const found = snapshot.matcher.match(facts);
    const { isPreflight = false } = options;
    const match = isPreflight ? preflightMatch(found, facts, snapshot.preflights) : found;
    const cost = options.cost ?? match.cost;
    const { version, largestCost, ruleset } = snapshot;
    const { enforced, shadow } = match;
    const isEstimate = match.estimate !== undefined;
    const { deadlineMs } = ruleset;
    const request = { version, enforced, shadow, cost, largestCost, isEstimate, deadlineMs };
    const verdict = this.#gate.decide(request, background);
    return verdict instanceof Promise
      ? verdict.then((settled) => ({ verdict: settled, match, cost, isPreflight }))
      : { verdict, match, cost, isPreflight };
  }
}

function workerPorts(owners: DurableObjectNamespace): Ports {
  return {
    nowMs: () => Date.now(),
    random: () => Math.random(),
    timer: platformTimer,
    // A stub that has failed may be broken for good, so each call has its own.
    callOwner: (owner: OwnerRef, call: OwnerCall) =>
      (owners.getByName(owner.name) as unknown as OwnerStub).call(call),
    count: (event, amount = 1) => {
      if (LOGGED.has(event)) logEvent({ event, amount });
    },
    log: (line) => logEvent({ ...line }),
  };
}

export function platformTimer(delayMs: number): Timer {
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, Math.max(0, delayMs));
  return { done, cancel: () => clearTimeout(timer) };
}
