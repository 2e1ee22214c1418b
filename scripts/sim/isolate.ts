/**
 * One isolate: a real gate over simulated ports. It may die, and then nothing of it is ever heard of again: its timers do not fire,
 * answers find nobody, and requests that were waiting in it are gone.
 */
import { Gate } from '../../src/engine/gate.ts';
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import type { EngineEvent, EngineLog, Ports } from '../../src/engine/ports.ts';
import type { GateRequest, Verdict } from '../../src/engine/verdict.ts';
import type { Clock } from './clock.ts';
import type { Random } from './random.ts';
import type { Time } from './time.ts';

/** What a reply says beside its answer. */
export type News = Pick<OwnerReply, 'version' | 'clamps'>;

export interface IsolateOptions {
  readonly holder: string;
  readonly time: Time;
  readonly clock: Clock;
  readonly random: Random;
  readonly bucketSlots: number;
  readonly call: (owner: string, call: OwnerCall, from: Isolate) => Promise<OwnerReply>;
  /** A fault of the engine that no caller would see. */
  readonly onProblem: (problem: unknown) => void;
  readonly count: (event: EngineEvent, amount: number) => void;
  readonly log: (line: EngineLog, from: Isolate) => void;
  /** A reply told it of newer rules, or of an operator's word. */
  readonly heard: (word: News, from: Isolate) => void;
  /** Changes what the gate hears of the world; for planted faults. */
  readonly aroundPorts: (ports: Ports, holder: string) => Ports;
}

export class Isolate {
  readonly holder: string;
  readonly clock: Clock;
  readonly #options: IsolateOptions;
  readonly #gate: Gate;
  #isDead = false;
  #unfinished = 0;

  constructor(options: IsolateOptions) {
    this.#options = options;
    this.holder = options.holder;
    this.clock = options.clock;
    const { holder, bucketSlots } = options;
    this.#gate = new Gate(options.aroundPorts(this.#ports(), holder), { holder, bucketSlots });
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  /** Background work of the gate that has not settled. */
  get unfinished(): number {
    return this.#unfinished;
  }

  die(): void {
    this.#isDead = true;
  }

  /** `decided` is called with the verdict, at the instant it falls; never after the isolate has died. */
  decide(request: GateRequest, decided: (verdict: Verdict) => void): void {
    const verdict = this.#gate.decide(request, (work) => this.#keep(work));
    if (verdict instanceof Promise) {
      verdict.then((found) => {
        if (!this.#isDead) decided(found);
      }, this.#options.onProblem);
    } else decided(verdict);
  }

  #keep(work: Promise<unknown>): void {
    this.#unfinished += 1;
    const settled = () => {
      this.#unfinished -= 1;
    };
    work.then(settled, (problem: unknown) => {
      settled();
      this.#options.onProblem(problem);
    });
  }

  #ports(): Ports {
    const { time, clock, random, call, count, log, heard } = this.#options;
    return {
      nowMs: () => clock.nowMs,
      random: () => random.next(),
      timer: (delayMs) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const fire = () => {
          if (!this.#isDead) resolve();
        };
        return { done: promise, cancel: time.after(delayMs, fire) };
      },
      callOwner: ({ name }, message) => call(name, message, this),
      count: (event, amount = 1) => count(event, amount),
      log: (line) => log(line, this),
      heard: (word) => heard(word, this),
    };
  }
}
