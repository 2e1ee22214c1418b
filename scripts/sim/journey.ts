/**
 * A journey: one request after the other, hop by hop, through the real gate and the real owner in a simulated world.
 *
 * Each hop says when, who, what was decided or learned, and how long it took beside what it may take. The same seed makes the same
 * journey, and the invariants of every simulation hold on the way.
 */
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import type { EngineLog } from '../../src/engine/ports.ts';
import type { Source, Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { Version } from '../../src/policy/ruleset.ts';
import {
  ASKED_MS,
  AT_COLD_OWNER_MS,
  AT_OWNER_MS,
  DEADLINE_MS,
  IN_ISOLATE_MS,
  ONE_WAY_MS,
} from './budgets.ts';
import { HEALTHY } from './faults.ts';
import { Invariants } from './invariants.ts';
import type { Isolate, News } from './isolate.ts';
import type { OwnerHost } from './owner-host.ts';
import type { Interference, Plant } from './plant.ts';
import { describeCall, describeReply, describeVerdict } from './words.ts';
import { type Observer, World } from './world.ts';

export interface Journey {
  readonly name: string;
  readonly about: string;
  readonly isolates: number;
  readonly go: (walk: Walk) => Promise<void>;
}

export interface Hop {
  readonly atMs: number;
  readonly who: string;
  readonly what: string;
  /** What made the decision, where it is one. */
  readonly source?: Source | undefined;
  /** How long since the hop before it, or since what `what` says. */
  readonly took?: Took | undefined;
}

export interface Took {
  readonly ms: number;
  readonly budgetMs: number;
}

/** Hops under one heading. */
export interface Leg {
  readonly title: string;
  readonly hops: Hop[];
}

export interface Walked {
  readonly legs: readonly Leg[];
  readonly violation: string | undefined;
}

export interface Asking {
  /** The slot of the isolate. */
  readonly isolate: number;
  readonly enforced: readonly Winner[];
  /** For the whole of it; that of a warm owner unless said. */
  readonly budgetMs?: number;
  readonly version?: Version;
}

/** Whether a message is told of; where it belongs to no request that is, also how long it took to be sent. */
export type Tells = (from: Isolate, call: OwnerCall) => boolean | Took;

interface Request {
  lastMs: number;
}

/** A digit more than is shown: what sums of floats may be off by is no excess. */
const ROUNDING_MS = 0.01;

const FIRST_VERSION: Version = { activation: 1, builtAtMs: 0 };

export async function walk(
  journey: Journey,
  { seed, plant }: { seed: number; plant?: Plant | undefined },
): Promise<Walked> {
  const walking = new Walk(journey.isolates, seed, plant?.make() ?? {});
  await journey.go(walking);
  return { legs: walking.legs, violation: walking.violation };
}

export function isOver({ took }: Hop): boolean {
  return took !== undefined && took.ms > took.budgetMs + ROUNDING_MS;
}

export class Walk {
  readonly world: World;
  readonly legs: Leg[] = [];
  readonly #interference: Interference;
  readonly #invariants: Invariants;
  /** When each message that is told of was last heard of. */
  readonly #messages = new Map<OwnerCall, number>();
  /** The one request of each isolate that is told of. */
  readonly #requests = new Map<string, Request>();
  readonly #started = new Set<string>();
  #tells: Tells = () => true;
  #onHeard: (from: Isolate, word: News) => void = () => {};
  #onLogged: (from: Isolate, line: EngineLog) => void = () => {};

  constructor(isolates: number, seed: number, interference: Interference) {
    this.#interference = interference;
    this.#invariants = new Invariants({ time: () => this.world.time, deadlineMs: DEADLINE_MS });
    this.world = new World({ seed, isolates, faults: HEALTHY, observer: this.#observer(), interference });
  }

  get violation(): string | undefined {
    return this.#invariants.breached?.what;
  }

  get nowMs(): number {
    return this.world.time.elapsedMs;
  }

  leg(title: string): void {
    this.legs.push({ title, hops: [] });
  }

  hop(who: string, what: string, more: Pick<Hop, 'source' | 'took'> = {}): void {
    this.legs.at(-1)!.hops.push({ atMs: this.nowMs, who, what, ...more });
  }

  /** Which messages are told of from now on; all of them at first. */
  tellOf(tells: Tells): void {
    this.#tells = tells;
  }

  /** What happens when a reply tells an isolate of newer rules. */
  whenHeard(heard: (from: Isolate, word: News) => void): void {
    this.#onHeard = heard;
  }

  whenLogged(logged: (from: Isolate, line: EngineLog) => void): void {
    this.#onLogged = logged;
  }

  /** One request, told of hop by hop. Its last hop is the verdict, and how long all of it took. */
  async ask(asking: Asking): Promise<Verdict> {
    const { isolate, budgetMs = ASKED_MS } = asking;
    const { holder } = this.world.isolates[isolate]!;
    const askedMs = this.nowMs;
    const request = { lastMs: askedMs };
    this.#requests.set(holder, request);
    this.hop(holder, 'is asked for 1 unit');
    const verdict = await this.world.time.settle(this.askQuietly(asking));
    this.#requests.delete(holder);
    this.hop(holder, describeVerdict(verdict), {
      source: verdict.source,
      took: { ms: this.nowMs - askedMs, budgetMs },
    });
    return verdict;
  }

  askQuietly({ isolate, enforced, version = FIRST_VERSION }: Asking): Promise<Verdict> {
    const host = this.world.isolates[isolate]!;
    const request = { version, enforced, shadow: [], cost: 1, largestCost: 1, deadlineMs: DEADLINE_MS };
    const asked = this.#interference.beforeGate?.(request, host.holder) ?? request;
    return new Promise((resolve) => {
      host.decide(asked, (verdict) => {
        this.#invariants.decided(verdict, enforced, 1);
        resolve(verdict);
      });
    });
  }

  async pass(ms: number): Promise<void> {
    await this.world.time.advance(ms);
  }

  #observer(): Observer {
    const invariants = this.#invariants;
    return {
      sent: (from, call) => {
        invariants.sent(from, call);
        this.#sent(from, call);
      },
      beforeHandling: (host) => invariants.beforeHandling(host),
      handled: (host, call, reply, before) => {
        invariants.handled(host, call, reply, before);
        this.#handled(host, call, reply);
      },
      problem: (problem) => invariants.problem(problem),
      arrived: (owner, call) => this.#heardOf(call, { who: owner, what: 'is reached', budgetMs: ONE_WAY_MS }),
      replied: (from, call) => this.#replied(from, call),
      heard: (from, word) => this.#onHeard(from, word),
      logged: (from, line) => this.#onLogged(from, line),
    };
  }

  #sent(from: Isolate, call: OwnerCall): void {
    const told = this.#tells(from, call);
    if (told === false) return;
    this.#messages.set(call, this.nowMs);
    const request = isOwnQuestion(call) ? this.#requests.get(from.holder) : undefined;
    const own = request && { ms: this.nowMs - request.lastMs, budgetMs: IN_ISOLATE_MS };
    this.hop(from.holder, describeCall(call), { took: told === true ? own : told });
  }

  #handled(host: OwnerHost, call: OwnerCall, reply: OwnerReply): void {
    // Every other isolate may have a call before it in the line.
    const inLineMs = AT_OWNER_MS * (this.world.isolates.length - 1);
    const budgetMs = inLineMs + (this.#started.has(host.name) ? AT_OWNER_MS : AT_COLD_OWNER_MS);
    this.#started.add(host.name);
    this.#heardOf(call, { who: host.name, what: describeReply(call, reply), budgetMs });
  }

  #replied(from: Isolate, call: OwnerCall): void {
    this.#heardOf(call, { who: from.holder, what: 'has the reply', budgetMs: ONE_WAY_MS });
    this.#messages.delete(call);
    const request = this.#requests.get(from.holder);
    if (request !== undefined && isOwnQuestion(call)) request.lastMs = this.nowMs;
  }

  #heardOf(call: OwnerCall, { who, what, budgetMs }: { who: string; what: string; budgetMs: number }): void {
    const lastMs = this.#messages.get(call);
    if (lastMs === undefined) return;
    this.#messages.set(call, this.nowMs);
    this.hop(who, what, { took: { ms: this.nowMs - lastMs, budgetMs } });
  }
}

/** The question of a request, and not what its isolate asks or tells in the background. */
function isOwnQuestion({ question }: OwnerCall): boolean {
  return question !== undefined && question.cost > 0;
}
