/**
 * A whole world in one process: isolates that run the production gate, owners that run the production owner with storage, and what
 * lies between them, under one seed and one set of faults.
 *
 * It only replaces what `engine/ports` asks for. What it does to messages and machines it tells its observer, and judges nothing.
 */
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import type { EngineEvent, EngineLog, OwnerFailure } from '../../src/engine/ports.ts';
import { placeOf } from '../../src/policy/place.ts';
import type { Region } from '../../src/policy/region.ts';
import { Clock } from './clock.ts';
import { drawFate, type Fate } from './fate.ts';
import type { Faults } from './faults.ts';
import { Isolate, type News } from './isolate.ts';
import { OwnerHost } from './owner-host.ts';
import { type Handle, OwnerServer } from './owner-server.ts';
import type { Interference } from './plant.ts';
import { Random } from './random.ts';
import { Time } from './time.ts';

/** What an object keeps in production; see `objects/limiter-owner`. */
const COUNTERS_MAX = 1_024;
const BLOCKS = 1;

/** A few thousand callers in fallback at once: more than any scenario has. */
const BUCKET_SLOTS = 4_096;

/** Told of what happens, as it happens. */
export interface Observer {
  readonly sent: (from: Isolate, call: OwnerCall) => void;
  readonly beforeHandling: (host: OwnerHost, call: OwnerCall) => unknown;
  /** `host` is as the call left it; `before` is what `beforeHandling` answered. */
  readonly handled: (host: OwnerHost, call: OwnerCall, reply: OwnerReply, before: unknown) => void;
  readonly problem: (problem: unknown) => void;
  /** A copy of a call has come to its owner, and waits for its turn. */
  readonly arrived?: (owner: string, call: OwnerCall) => void;
  /** The reply has come to the isolate that made the call. */
  readonly replied?: (from: Isolate, call: OwnerCall, reply: OwnerReply) => void;
  readonly logged?: (from: Isolate, line: EngineLog) => void;
  readonly heard?: (from: Isolate, word: News) => void;
  /** The isolate that made the call has heard that nothing came of it. */
  readonly failed?: (from: Isolate, call: OwnerCall) => void;
  /** A middle owner has sent something to its root. */
  readonly toldRoot?: (call: OwnerCall) => void;
}

export interface WorldOptions {
  readonly seed: number;
  readonly isolates: number;
  readonly faults: Faults;
  readonly observer: Observer;
  readonly interference: Interference;
}

/** What may befall a world now and then. */
type Ill = 'deathsPerSecond' | 'evictionsPerSecond' | 'stallsPerSecond' | 'stepsPerSecond';

export class World {
  readonly time = new Time();
  faults: Faults;
  readonly #options: WorldOptions;
  readonly #fates: Random;
  readonly #ills: Random;
  readonly #engine: Random;
  readonly #isolates: Isolate[] = [];
  readonly #holderClocks: Clock[] = [];
  readonly #owners = new Map<string, OwnerServer>();
  readonly #counts = new Map<EngineEvent, number>();
  readonly #homes = new Map<string, Region | undefined>();
  readonly #cut = new Set<Region | undefined>();
  #born = 0;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.faults = options.faults;
    const random = new Random(options.seed);
    this.#fates = random.fork('fates');
    this.#ills = random.fork('ills');
    this.#engine = random.fork('engine');
    for (let slot = 0; slot < options.isolates; slot += 1) this.#isolates.push(this.#newIsolate());
    this.#befall('deathsPerSecond', () => this.killIsolate(this.#ills.below(this.#isolates.length)));
    this.#befall('evictionsPerSecond', () => this.#someOwner()?.evict());
    this.#befall('stallsPerSecond', () => this.#someOwner()?.stall(this.faults.stallMs));
    this.#befall('stepsPerSecond', () => this.#stepSomeClock());
  }

  get isolates(): readonly Isolate[] {
    return this.#isolates;
  }

  /** How often the clocks of isolates have been set forward, those that have died since included. */
  get holderSteps(): number {
    return this.#holderClocks.reduce((sum, { stepsForward }) => sum + stepsForward, 0);
  }

  /** Isolates that have lived, dead ones included. */
  get born(): number {
    return this.#born;
  }

  get owners(): ReadonlyMap<string, OwnerServer> {
    return this.#owners;
  }

  counted(event: EngineEvent): number {
    return this.#counts.get(event) ?? 0;
  }

  owner(name: string): OwnerServer {
    const known = this.#owners.get(name);
    if (known !== undefined) return known;
    const { time } = this;
    const clock = this.#newClock(name);
    const host = new OwnerHost({
      name,
      time,
      rawMs: () => clock.nowMs,
      countersMax: COUNTERS_MAX,
      blocks: BLOCKS,
      // Both sides only read messages; the engine's own tests, which copy them, would fail if one did not.
      copiesMessages: false,
      callRoot: (root, call) => this.#callRoot(root, call),
    });
    const server = new OwnerServer({
      host,
      clock,
      handle: this.#handle(host),
      time,
      faults: () => this.faults,
    });
    this.#owners.set(name, server);
    return server;
  }

  /** What the isolate had in hand is gone, and another takes its place. */
  killIsolate(slot: number): void {
    this.#isolates[slot]!.die();
    this.#isolates[slot] = this.#newIsolate();
  }

  #newIsolate(): Isolate {
    this.#born += 1;
    const holder = `isolate-${this.#born}`;
    const clock = this.#newClock(holder);
    this.#holderClocks.push(clock);
    return new Isolate({
      holder,
      time: this.time,
      clock,
      random: this.#engine.fork(holder),
      bucketSlots: BUCKET_SLOTS,
      call: (owner, call, from) => this.#call(owner, call, from),
      onProblem: this.#options.observer.problem,
      count: (event, amount) => this.#counts.set(event, this.counted(event) + amount),
      log: (line, from) => this.#options.observer.logged?.(from, line),
      heard: (word, from) => this.#options.observer.heard?.(from, word),
      aroundPorts: this.#options.interference.aroundPorts ?? ((ports) => ports),
    });
  }

  #newClock(name: string): Clock {
    const { driftPpm } = this.faults;
    return new Clock(this.time, this.#ills.fork(name).between(-driftPpm, driftPpm));
  }

  #handle(host: OwnerHost): Handle {
    const { observer, interference } = this.#options;
    const handle = interference.aroundOwner?.(host) ?? ((call) => host.handle(call));
    return (call) => {
      const before = observer.beforeHandling(host, call);
      const reply = handle(call);
      observer.handled(host, call, reply, before);
      return reply;
    };
  }

  #call(owner: string, call: OwnerCall, from: Isolate): Promise<OwnerReply> {
    const { observer } = this.#options;
    observer.sent(from, call);
    return this.#carry(owner, call, {
      fate: drawFate(this.faults, this.#fates),
      isDead: () => from.isDead,
      replied: (reply) => observer.replied?.(from, call, reply),
      failed: () => observer.failed?.(from, call),
    });
  }

  /** A middle owner's call to its root: over a longer way, unless the root is in its region. */
  #callRoot(root: string, call: OwnerCall): Promise<OwnerReply> {
    this.#options.observer.toldRoot?.(call);
    const region = placeOf(call.holder)?.region;
    const home = this.#homes.get(root) ?? region;
    this.#homes.set(root, home);
    const fate = drawFate(this.faults, this.#fates);
    const isFar = region !== home;
    const isCut = () => isFar && (this.#cut.has(region) || this.#cut.has(home));
    if (isCut()) return new Promise(() => {});
    return this.#carry(root, call, {
      fate: isFar ? longer(fate, this.faults.regionMs) : fate,
      isDead: isCut,
    });
  }

  /** Puts a root where it is asked for from this region; else it is where it was first asked for. */
  placeRoot(root: string, home: Region): void {
    this.#homes.set(root, home);
  }

  /** Nothing goes between this region and others any more, until it is mended. */
  cut(region: Region): void {
    this.#cut.add(region);
  }

  mend(region: Region): void {
    this.#cut.delete(region);
  }

  /** Brings a call to its owner and what comes of it back, as its fate says. */
  #carry(owner: string, call: OwnerCall, { fate, isDead, replied, failed }: Journey): Promise<OwnerReply> {
    const { arrivesAfterMs, heard } = fate;
    const { promise, resolve, reject } = Promise.withResolvers<OwnerReply>();
    const soon = (afterMs: number, hear: () => void) =>
      this.time.after(afterMs, () => {
        if (!isDead()) hear();
      });
    const fail = (failure: OwnerFailure) => {
      failed?.();
      reject(Object.assign(new Error('The call failed.'), failure));
    };
    for (const [copy, afterMs] of arrivesAfterMs.entries()) {
      const isHeard = heard !== 'nothing' && 'copy' in heard && heard.copy === copy;
      const backMs = isHeard ? heard.afterMs : 0;
      const back = (reply: OwnerReply) => {
        replied?.(reply);
        resolve(reply);
      };
      this.time.after(afterMs, () => {
        this.#options.observer.arrived?.(owner, call);
        this.owner(owner).receive(call, {
          answered: (reply) => isHeard && soon(backMs, () => back(reply)),
          failed: (failure) => isHeard && soon(backMs, () => fail(failure)),
        });
      });
    }
    if (heard !== 'nothing' && 'failure' in heard) soon(heard.afterMs, () => fail(heard.failure));
    return promise;
  }

  /** Lets something befall the world at random, as often as its faults say at the time. */
  #befall(rate: Ill, happen: () => void): void {
    if (this.faults[rate] === 0) return;
    this.time.after(this.#ills.exponential(1_000 / this.faults[rate]), () => {
      // A world that has healed stays well.
      if (this.faults[rate] === 0) return;
      happen();
      this.#befall(rate, happen);
    });
  }

  #someOwner(): OwnerServer | undefined {
    return this.#owners.size === 0 ? undefined : this.#ills.oneOf([...this.#owners.values()]);
  }

  #stepSomeClock(): void {
    const { stepMs } = this.faults;
    const machines = [...this.#isolates, ...this.#owners.values()];
    this.#ills.oneOf(machines).clock.step(this.#ills.between(-stepMs, stepMs));
  }
}

interface Journey {
  readonly fate: Fate;
  /** Whether nothing can be heard any more. */
  readonly isDead: () => boolean;
  readonly replied?: (reply: OwnerReply) => void;
  readonly failed?: () => void;
}

/** The same, over a way that takes so much longer in each direction. */
function longer({ arrivesAfterMs, heard }: Fate, ms: number): Fate {
  return {
    arrivesAfterMs: arrivesAfterMs.map((afterMs) => afterMs + ms),
    heard: heard === 'nothing' ? heard : { ...heard, afterMs: heard.afterMs + ms },
  };
}
