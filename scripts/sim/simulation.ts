/**
 * Carries out one plan under one seed: safety while its faults last, then, if the plan heals, liveness.
 *
 * Safety: no invariant breaks and no counter admits more than its bound, at any step. Liveness: some time after the faults have ended the
 * limiter is exact again, and nobody inside a quota is refused. The same plan and seed make the same run, event for event.
 */
import type { GateRequest, Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { placedIn } from '../../src/policy/place.ts';
import type { Version } from '../../src/policy/ruleset.ts';
import { type Faults, HEALTHY, roundTripMs } from './faults.ts';
import { Invariants } from './invariants.ts';
import type { Isolate } from './isolate.ts';
import { type Arrival, type Figures, Measures } from './measures.ts';
import type { Losses } from './owner-server.ts';
import type { Interference, Plant } from './plant.ts';
import { Random } from './random.ts';
import { Ideal } from './reference.ts';
import type { Case, Plan, Stage } from './scenario.ts';
import { type Asked, startStream } from './traffic.ts';
import { Watch } from './watch.ts';
import { Witness } from './witness.ts';
import { type Observer, World } from './world.ts';

export interface RunOptions {
  readonly seed: number;
  readonly plant?: Plant | undefined;
}

export interface Result {
  readonly figures: Figures;
  /** What broke first; `undefined` when nothing did. */
  readonly violation: string | undefined;
  /** What the scenario has to say of this run. */
  readonly remarks: readonly string[];
}

const FIRST_VERSION: Version = { activation: 1, builtAtMs: 0 };
const DEADLINE_MS = 150;

/** How often a run looks whether something has broken. */
const LOOK_MS = 100;

export function simulate({ plan }: Pick<Case, 'plan'>, options: RunOptions): Promise<Result> {
  return new Simulation(plan(new Random(options.seed).fork('plan')), options).run();
}

/** What is measured together: the safety phase, or the liveness phase. */
interface Chapter {
  readonly ideal: Ideal;
  readonly measures: Measures;
  readonly watch: Watch;
}

interface Decided {
  readonly request: GateRequest;
  /** As the rules say it, wherever it is counted. */
  readonly enforced: readonly Winner[];
  readonly verdict: Verdict;
}

class Simulation implements Stage {
  readonly world: World;
  readonly witness = new Witness(() => this.world.time.elapsedMs);
  readonly #plan: Plan;
  readonly #seed: number;
  readonly #interference: Interference;
  readonly #faults: Faults;
  readonly #invariants: Invariants;
  readonly #safety: Chapter;
  #chapter: Chapter;
  readonly #remarks: string[] = [];
  #version = FIRST_VERSION;

  constructor(plan: Plan, { seed, plant }: RunOptions) {
    const { isolates, deadlineMs = DEADLINE_MS } = plan;
    this.#plan = plan;
    this.#seed = seed;
    this.#interference = plant?.make() ?? {};
    this.#faults = { ...HEALTHY, ...plan.faults };
    const isWithinReach = !plan.isDegraded && !plan.isPartitioned;
    this.#invariants = new Invariants({
      time: () => this.world.time,
      deadlineMs: isWithinReach ? deadlineMs : undefined,
    });
    this.world = new World({
      seed,
      isolates,
      faults: this.#faults,
      observer: this.#observer(),
      interference: this.#interference,
    });
    this.#safety = this.#newChapter(this.#faults, plan);
    this.#chapter = this.#safety;
  }

  async run(): Promise<Result> {
    const { heal, happenings = [], streams } = this.#plan;
    const { time } = this.world;
    const chance = new Random(this.#seed).fork('traffic');
    for (const [at, stream] of streams.entries()) {
      startStream(stream, { time, random: chance.fork(`stream ${at}`), send: (asked) => this.send(asked) });
    }
    for (const { atMs, happen } of happenings) time.after(atMs, () => happen(this));
    if (heal !== undefined) {
      time.after(heal.atMs, () => {
        this.world.faults = HEALTHY;
      });
      time.after(heal.liveFromMs, () => {
        this.#chapter = this.#newChapter(HEALTHY, { isDegraded: false });
      });
    }
    try {
      while (time.pending > 0 && this.#invariants.breached === undefined) await time.advance(LOOK_MS);
    } catch (error) {
      this.#invariants.breach(`something threw: ${error instanceof Error ? error.stack : String(error)}`);
    }
    if (this.#invariants.breached === undefined) this.#expectAtTheEnd();
    return { figures: figuresOf(this.#safety), violation: this.#violation(), remarks: this.#remarks };
  }

  send({
    group,
    isolate,
    enforced,
    shadow = [],
    region,
    cost = 1,
    lastsMs = 0,
    firstAskedMs,
    heard,
  }: Asked): void {
    const chapter = this.#chapter;
    const atMs = this.world.time.elapsedMs;
    const isIdeal = chapter.ideal.admits(enforced, { cost, atMs, lastsMs });
    const arrival: Arrival = { group, isolate, cost, atMs, isIdeal, firstAskedMs };
    chapter.measures.arrived(arrival);
    const { largestCost = 1, deadlineMs = DEADLINE_MS } = this.#plan;
    const placed = (winners: readonly Winner[]) =>
      region === undefined ? winners : winners.map((each) => placedIn(each, region));
    const counted = { enforced: placed(enforced), shadow: placed(shadow) };
    const request = { version: this.#version, ...counted, cost, largestCost, deadlineMs };
    const host = this.world.isolates[isolate]!;
    const asked = this.#interference.beforeGate?.(request, host.holder) ?? request;
    host.decide(asked, (verdict) => {
      this.#decided(chapter, arrival, { request, enforced, verdict });
      heard?.({ verdict, askedMs: atMs, holder: host.holder }, this);
      if (verdict.stay !== undefined)
        this.world.time.after(lastsMs, () => this.#end(chapter, host, { request, enforced, verdict }));
    });
  }

  /** What dies with its isolate is over too, and nobody says so. */
  #end({ watch }: Chapter, host: Isolate, { enforced, verdict }: Decided): void {
    watch.ended(enforced);
    if (!host.isDead) verdict.stay?.end();
  }

  adopt(version: Version): void {
    this.#version = version;
  }

  remark(sentence: string): void {
    this.#remarks.push(sentence);
  }

  breach(what: string): void {
    this.#invariants.breach(what);
  }

  #decided({ measures, watch }: Chapter, arrival: Arrival, { request, enforced, verdict }: Decided): void {
    const atMs = this.world.time.elapsedMs;
    const { cost } = request;
    const isAdmitted = verdict.outcome === 'allowed';
    const isFallback = verdict.policies.some(({ source }) => source === 'fallback');
    measures.decided(arrival, { isAdmitted, isFallback, atMs });
    this.#expectSoon(atMs - arrival.atMs);
    this.#invariants.decided(verdict, request.enforced, cost);
    if (!isAdmitted) return;
    const breach = watch.admitted(enforced, cost, atMs);
    if (breach === undefined) return;
    const { counterId, excess, allowed } = breach;
    this.#invariants.breach(
      `${counterId}: ${rounded(excess)} units above its bound, where ${rounded(allowed)} may be`,
    );
  }

  #observer(): Observer {
    const invariants = this.#invariants;
    return {
      sent: (from, call) => {
        this.#chapter.measures.called(this.world.time.elapsedMs);
        invariants.sent(from, call);
        this.witness.sent(from);
      },
      beforeHandling: (host) => invariants.beforeHandling(host),
      handled: (host, call, reply, before) => {
        this.#chapter.measures.handled(host.name, this.world.time.elapsedMs);
        invariants.handled(host, call, reply, before);
      },
      problem: (problem) => invariants.problem(problem),
      failed: (from, call) => invariants.failed(from, call),
      toldRoot: () => this.#chapter.measures.toldRoot(),
      replied: (from) => this.witness.replied(from),
      logged: (from, line) => this.witness.logged(from, line),
    };
  }

  #newChapter(
    faults: Faults,
    { isDegraded = false, isPartitioned = false }: Pick<Plan, 'isDegraded' | 'isPartitioned'>,
  ): Chapter {
    const { isolates, largestCost = 1, regions = 1 } = this.#plan;
    const topology = { isolates, blindIsolates: isDegraded ? isolates : 0, largestCost, regions };
    const watch = new Watch({
      roundTripMs: roundTripMs(faults),
      isDegraded,
      isPartitioned,
      topology,
      losses: this.#lossesFromNow(),
      holderSteps: this.#holderStepsFromNow(),
      driftPpm: this.#faults.driftPpm,
      ownerNowMs: (owner) => this.world.owner(owner).clock.nowMs,
    });
    return { ideal: new Ideal(), measures: new Measures(this.world.time.elapsedMs), watch };
  }

  /** What befalls each owner from now on. */
  #lossesFromNow(): (owner: string) => Losses {
    const { world } = this;
    const before = new Map([...world.owners].map(([name, { losses }]) => [name, losses]));
    return (owner) => {
      const { evictions, steps } = world.owners.get(owner)?.losses ?? { evictions: 0, steps: 0 };
      const past = before.get(owner) ?? { evictions: 0, steps: 0 };
      return { evictions: evictions - past.evictions, steps: steps - past.steps };
    };
  }

  /** How often the clock of some isolate is set forward from now on. */
  #holderStepsFromNow(): () => number {
    const { world } = this;
    const before = world.holderSteps;
    return () => world.holderSteps - before;
  }

  #expectSoon(waitedMs: number): void {
    const { answeredWithinMs = Number.POSITIVE_INFINITY } = this.#plan;
    if (waitedMs > answeredWithinMs)
      this.#invariants.breach(
        `a request waited ${rounded(waitedMs)} ms, where ${answeredWithinMs} are promised`,
      );
  }

  /** What can only be said once everything has come to rest. */
  #expectAtTheEnd(): void {
    const { heal, answeredWithinMs, inQuotaRefusalsMax = 0 } = this.#plan;
    if (answeredWithinMs !== undefined) this.#expectAllAnswered();
    this.#expectFewRefused(figuresOf(this.#safety), inQuotaRefusalsMax);
    if (heal !== undefined) {
      const live = figuresOf(this.#chapter);
      if (live.offered === 0) this.#invariants.breach('nothing was sent after the world had healed');
      this.#expectFewRefused(live, 0);
    } else if (this.#isCalm()) {
      this.#expectNothingLeft();
    }
  }

  /** In a world in which no isolate dies, nobody is left without an answer. */
  #expectAllAnswered(): void {
    const lost =
      figuresOf(this.#safety).lost + (this.#chapter === this.#safety ? 0 : figuresOf(this.#chapter).lost);
    if (lost > 0) this.#invariants.breach(`${lost} units were asked for and never answered`);
  }

  #expectFewRefused({ inQuotaRefusals }: Figures, refusalsMax: number): void {
    if (inQuotaRefusals <= refusalsMax) return;
    this.#invariants.breach(
      `${inQuotaRefusals} units inside their quota were refused, where ${refusalsMax} may be`,
    );
  }

  /** Whether everything that was sent has been answered, and every machine has lived through. */
  #isCalm(): boolean {
    const { world } = this;
    const isEvicted = [...world.owners.values()].some(({ losses }) => losses.evictions > 0);
    const { callsLost, repliesLost } = this.#faults;
    const hasLosses = callsLost + repliesLost > 0 || world.born > world.isolates.length || isEvicted;
    return !hasLosses && world.counted('fallback_decision') === 0;
  }

  #expectNothingLeft(): void {
    const unfinished = this.world.isolates.reduce((sum, isolate) => sum + isolate.unfinished, 0);
    if (unfinished > 0) this.#invariants.breach(`${unfinished} pieces of background work never settled`);
    this.#invariants.expectNoLostCharges();
    for (const { host } of this.world.owners.values()) this.#invariants.expectNoSlots(host);
  }

  #violation(): string | undefined {
    const { breached } = this.#invariants;
    return breached && `at ${rounded(breached.atMs)} ms: ${breached.what}`;
  }
}

function figuresOf({ measures, watch }: Chapter): Figures {
  return measures.figures(watch.overAdmission);
}

function rounded(value: number): number {
  return Number(value.toPrecision(6));
}
