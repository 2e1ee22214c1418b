/**
 * A small deterministic world: isolates that run the real gate, owners that are real `Owner` machines with storage, and a network
 * between them that does to each call what its script says. One seed and one script make one run.
 *
 * It only replaces what `engine/ports` asks for. What goes wrong without anybody seeing it is kept: `problems` holds every background
 * promise that rejected.
 */
import { OwnerHost } from '../../scripts/sim/owner-host.ts';
import { Random } from '../../scripts/sim/random.ts';
import { Time } from '../../scripts/sim/time.ts';
import { Gate } from '../../src/engine/gate.ts';
import { MESSAGE_FORMAT, type OwnerCall, type OwnerReply } from '../../src/engine/messages.ts';
import type { EngineEvent, EngineLog, Ports, Timer } from '../../src/engine/ports.ts';
import type { GateRequest, Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { Version } from '../../src/policy/ruleset.ts';
import { healthy, type Network, type Sent } from './network.ts';
import { HOUR_MS } from './rules.ts';

/** The beginning of a second, a minute, a day and a month of 30 days. */
export const START_MS = 667 * 30 * 86_400_000;

export const FIRST_VERSION: Version = { activation: 1, builtAtMs: 0 };

const DEADLINE_MS = 150;

export interface WorldOptions {
  readonly seed?: number;
  readonly network?: Network;
  readonly countersMax?: number;
  readonly blocks?: number;
  /** Middle owners have words with their roots; without, they know what isolates tell them. */
  readonly tellsRoots?: true;
}

export class World {
  readonly time = new Time();
  readonly problems: unknown[] = [];
  readonly logs: EngineLog[] = [];
  readonly calls: (Sent & { readonly atMs: number })[] = [];
  network: Network;
  readonly #options: WorldOptions;
  readonly #random: Random;
  readonly #owners = new Map<string, OwnerHost>();
  readonly #counts = new Map<EngineEvent, number>();
  readonly #callsTo = new Map<string, number>();
  #isolates = 0;
  #isolateStepMs = 0;
  #ownerStepMs = 0;

  constructor(options: WorldOptions = {}) {
    this.#options = options;
    this.network = options.network ?? healthy;
    this.#random = new Random(options.seed ?? 1);
  }

  isolate(): Isolate {
    this.#isolates += 1;
    return new Isolate(this, `isolate-${this.#isolates}`);
  }

  owner(name = 'anne'): OwnerHost {
    const known = this.#owners.get(name);
    if (known !== undefined) return known;
    const { countersMax = 1_024, blocks = 1 } = this.#options;
    const rawMs = () => START_MS + this.time.elapsedMs + this.#ownerStepMs;
    const callRoot = (root: string, call: OwnerCall) => this.#call(root, call);
    const host = new OwnerHost({
      name,
      time: this.time,
      rawMs,
      countersMax,
      blocks,
      copiesMessages: true,
      ...(this.#options.tellsRoots && { callRoot }),
    });
    this.#owners.set(name, host);
    return host;
  }

  counted(event: EngineEvent): number {
    return this.#counts.get(event) ?? 0;
  }

  /** Units in use on a winner's counter, as its owner has it. */
  used({ counterId, owner }: Winner): number {
    return this.owner(owner.name).used(counterId);
  }

  callsTo(owner: string): readonly Sent[] {
    return this.calls.filter((sent) => sent.owner === owner);
  }

  stepIsolateClock(ms: number): void {
    this.#isolateStepMs += ms;
  }

  stepOwnerClock(ms: number): void {
    this.#ownerStepMs += ms;
  }

  get ports(): Ports {
    return {
      nowMs: () => START_MS + this.time.elapsedMs + this.#isolateStepMs,
      random: () => this.#random.next(),
      timer: (delayMs) => this.#timer(delayMs),
      callOwner: ({ name }, call) => this.#call(name, call),
      count: (event, amount = 1) => {
        this.#counts.set(event, this.counted(event) + amount);
      },
      log: (line) => {
        this.logs.push(line);
      },
    };
  }

  #timer(delayMs: number): Timer {
    const { promise, resolve } = Promise.withResolvers<void>();
    return { done: promise, cancel: this.time.after(delayMs, resolve) };
  }

  #call(owner: string, call: OwnerCall): Promise<OwnerReply> {
    const number = this.#callsTo.get(owner) ?? 0;
    this.#callsTo.set(owner, number + 1);
    const sent = { owner, call, number };
    this.calls.push({ ...sent, atMs: this.time.elapsedMs });
    const { arrivesAfterMs, heard } = this.network(sent);
    const { promise, resolve, reject } = Promise.withResolvers<OwnerReply>();
    for (const [copy, afterMs] of arrivesAfterMs.entries()) {
      this.time.after(afterMs, () => {
        const reply = this.owner(owner).handle(call);
        if (heard === 'nothing' || 'failure' in heard || heard.copy !== copy) return;
        this.time.after(heard.afterMs, () => resolve(reply));
      });
    }
    if (heard !== 'nothing' && 'failure' in heard) {
      const { failure, afterMs } = heard;
      this.time.after(afterMs, () => reject(Object.assign(new Error('The call failed.'), failure)));
    }
    return promise;
  }
}

export interface RequestOptions extends Partial<Omit<GateRequest, 'enforced' | 'shadow'>> {
  readonly shadow?: readonly Winner[];
}

export interface TimedVerdict extends Verdict {
  readonly tookMs: number;
}

export class Isolate {
  readonly holder: string;
  readonly #world: World;
  readonly #gate: Gate;
  readonly #background = new Set<Promise<unknown>>();

  constructor(world: World, holder: string) {
    this.#world = world;
    this.holder = holder;
    this.#gate = new Gate(world.ports, { holder, bucketSlots: 1_024 });
  }

  /** Background work that has not settled. */
  get unfinished(): number {
    return this.#background.size;
  }

  /** As the gateway asks: what nobody has to be asked for is there at once. */
  decide(enforced: readonly Winner[], options: RequestOptions = {}): Verdict | Promise<Verdict> {
    const { shadow = [], cost = 1, version = FIRST_VERSION, deadlineMs = DEADLINE_MS } = options;
    const { largestCost = 1, isEstimate = false } = options;
    const request = { version, enforced, shadow, cost, largestCost, isEstimate, deadlineMs };
    return this.#gate.decide(request, (work) => this.#keep(work));
  }

  /** Sends a request, and leaves it to the test when time passes. */
  send(enforced: readonly Winner[], options: RequestOptions = {}): Promise<TimedVerdict> {
    const { time } = this.#world;
    const sentMs = time.elapsedMs;
    const verdict = Promise.resolve(this.decide(enforced, options));
    return verdict.then((found) => ({ ...found, tookMs: time.elapsedMs - sentMs }));
  }

  /** Sends a request and lets time pass until it is decided. */
  ask(enforced: readonly Winner[], options: RequestOptions = {}): Promise<TimedVerdict> {
    return this.#world.time.settle(this.send(enforced, options));
  }

  #keep(work: Promise<unknown>): void {
    this.#background.add(work);
    const settled = () => this.#background.delete(work);
    work.then(settled, (problem: unknown) => {
      settled();
      this.#world.problems.push(problem);
    });
  }
}

/** A message to an owner, for tests that talk to one directly. */
export function callOf(parts: Partial<OwnerCall>): OwnerCall {
  return { format: MESSAGE_FORMAT, holder: 'isolate-0', version: FIRST_VERSION, ...parts };
}

/** The clocks that may jump, and how far and back they do. */
export const CLOCKS = [
  ['the isolate', (world: World, ms: number) => world.stepIsolateClock(ms)],
  ['the owner', (world: World, ms: number) => world.stepOwnerClock(ms)],
] as const;

export const HOUR_JUMPS = [
  ['forth', [HOUR_MS]],
  ['back', [-HOUR_MS]],
  ['forth and back', [HOUR_MS, -HOUR_MS]],
  ['back and forth', [-HOUR_MS, HOUR_MS]],
] as const;
