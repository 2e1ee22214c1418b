/**
 * One counter as its owner keeps it: a state, the limit it was written under, and a logical clock that follows a raw one.
 *
 * Tables of cases are timelines of steps on it. Times are milliseconds since `EPOCH_MS`, at which both clocks are at the beginning of a
 * second, a minute, a day and a month of 30 days.
 */
import { expect } from 'vitest';
import {
  afterStepBack,
  atRestAtMs,
  available,
  type CounterState,
  carryOver,
  charge,
  decide,
  giveBack,
  nowMsFor,
  used,
} from '../../src/core/algorithms.ts';
import { advance, type LogicalClock, startClock } from '../../src/core/clock.ts';
import type { AlgorithmName, Decision, Limit } from '../../src/core/decision.ts';

export const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
export const MONTH_MS = 30 * DAY_MS;
export const YEAR_MS = 365 * DAY_MS;
export const EPOCH_MS = 667 * MONTH_MS;

export function limitOf(
  algorithm: AlgorithmName,
  quota: number,
  windowMs: number,
  more: { burst?: number; maxDelayMs?: number } = {},
): Limit {
  return { algorithm, quota, windowMs, burst: more.burst ?? quota, maxDelayMs: more.maxDelayMs ?? 0 };
}

export class Subject {
  limit: Limit;
  state: CounterState | undefined;
  clock: LogicalClock = startClock(EPOCH_MS);

  constructor(limit: Limit) {
    this.limit = limit;
  }

  get nowMs(): number {
    return nowMsFor(this.limit, this.clock);
  }

  at(sinceEpochMs: number): this {
    const rawMs = EPOCH_MS + sinceEpochMs;
    const isStepBack = rawMs < this.clock.rawMs;
    this.clock = advance(this.clock, rawMs);
    if (isStepBack) this.state = afterStepBack(this.limit, this.state, this.nowMs);
    return this;
  }

  ask(cost: number): Decision {
    const { decision, state } = decide(this.limit, this.state, cost, this.nowMs);
    this.state = state;
    return decision;
  }

  charge(cost: number): void {
    this.state = charge(this.limit, this.state, cost, this.nowMs);
  }

  giveBack(cost: number, chargedAtMs: number): void {
    const sinceMs = chargedAtMs + EPOCH_MS - this.clock.rawMs;
    this.state = giveBack(this.limit, this.state, { cost, chargedAtMs: this.nowMs + sinceMs }, this.nowMs);
  }

  reload(limit: Limit): void {
    const before = { limit: this.limit, state: this.state, nowMs: this.nowMs };
    this.limit = limit;
    this.state = carryOver(before, { limit, nowMs: this.nowMs });
  }

  get available(): number {
    return available(this.limit, this.state, this.nowMs);
  }

  get used(): number {
    return used(this.limit, this.state, this.nowMs);
  }

  get restsInMs(): number {
    return atRestAtMs(this.limit, this.state) - this.nowMs;
  }
}

/** What a request gets: allowed (at once, or after a delay), no chance at all, or the exact wait in milliseconds. */
type Gets = 'ok' | { readonly delayMs: number } | { readonly waitMs: number } | 'impossible';

export interface Step {
  readonly at: number;
  /** The cost of a request, asked `times` times. */
  readonly ask?: number;
  readonly times?: number;
  readonly gets?: Gets;
  readonly charge?: number;
  readonly giveBack?: { readonly cost: number; readonly chargedAtMs: number };
  readonly reload?: Limit;
  /** Whole units left after that. */
  readonly left?: number;
  /** Milliseconds from now until the state says nothing. */
  readonly restsInMs?: number;
}

export interface Case {
  readonly name: string;
  readonly limit: Limit;
  readonly steps: readonly Step[];
}

export function run({ limit, steps }: Case): void {
  const subject = new Subject(limit);
  for (const [number, step] of steps.entries()) {
    const place = `step ${number}: ${JSON.stringify(step)}`;
    subject.at(step.at);
    if (step.reload !== undefined) subject.reload(step.reload);
    if (step.charge !== undefined) subject.charge(step.charge);
    if (step.giveBack !== undefined) subject.giveBack(step.giveBack.cost, step.giveBack.chargedAtMs);
    if (step.ask !== undefined) {
      for (let i = 0; i < (step.times ?? 1); i += 1)
        expectDecision(subject.ask(step.ask), step.gets ?? 'ok', place);
    }
    if (step.left !== undefined) expect(Math.floor(subject.available), place).toBe(step.left);
    if (step.restsInMs !== undefined) expect(subject.restsInMs, place).toBeCloseTo(step.restsInMs, 3);
  }
}

function expectDecision(decision: Decision, gets: Gets, place: string): void {
  expect(decision, place).toEqual(expectedDecision(gets));
}

function expectedDecision(gets: Gets): unknown {
  if (gets === 'impossible') return { outcome: 'impossible' };
  if (gets === 'ok') return { outcome: 'allowed', delayMs: 0 };
  if ('delayMs' in gets) return { outcome: 'allowed', delayMs: expect.closeTo(gets.delayMs, 3) };
  return { outcome: 'denied', retryAfterMs: expect.closeTo(gets.waitMs, 3) };
}
