/**
 * Recorded traffic through two rulesets at once: each request is decided under both before time goes on to the next.
 */
import { countsSlots } from '../../../src/core/decision.ts';
import type { Ruleset } from '../../../src/policy/ruleset.ts';
import type { LogRecord } from './log.ts';
import { LogClock } from './log-clock.ts';
import { type Outcome, Side } from './side.ts';
import { type NamedRuleset, type ReplayReport, Tally } from './tally.ts';

export interface ReplayOptions {
  /** How many callers are named of those that gain, and of those that lose. */
  readonly top: number;
  /** Told now and then how much has been replayed. */
  readonly onProgress: (done: { readonly requests: number; readonly bytes: number }) => void;
}

/** No request waits longer than this for anything (`engine/owner-link`). */
const WAIT_MS_MAX = 1_000;

/** How many requests are replayed before progress is told: a fraction of a second. */
const PROGRESS_EVERY = 1_000;

const NO_TIME =
  'concurrency limits and estimates were replayed as if requests took no time: a slot is free again at once, and an estimate costs its default';

/** `records` in the order of time. */
export async function replay(
  records: AsyncIterable<readonly LogRecord[]>,
  rulesets: readonly [NamedRuleset, NamedRuleset],
  { top, onProgress }: ReplayOptions,
): Promise<ReplayReport> {
  const tally = new Tally(rulesets);
  let run: Run | undefined;
  let requests = 0;
  let bytes = 0;
  for await (const batch of records) {
    for (const record of batch) {
      run ??= new Run(record.atMs, rulesets, tally);
      await run.decide(record);
      requests += 1;
      bytes += record.bytes;
      if (requests % PROGRESS_EVERY === 0) onProgress({ requests, bytes });
    }
  }
  await run?.end();
  if (tally.requests !== requests)
    throw new Error(`Of ${requests} requests ${requests - tally.requests} were never decided.`);
  const displaced = run?.displaced ?? 0;
  return tally.report(top, [
    ...(rulesets.some(({ ruleset }) => takesTime(ruleset)) ? [NO_TIME] : []),
    ...(displaced > 0
      ? [`${displaced} counters had to give way to others, as they would in production`]
      : []),
  ]);
}

function takesTime({ rules, costs }: Ruleset): boolean {
  const hasSlots = rules.some(({ limit }) => limit !== undefined && countsSlots(limit));
  return hasSlots || costs.some(({ estimate }) => estimate !== undefined);
}

class Run {
  readonly #clock: LogClock;
  readonly #sides: readonly [Side, Side];
  readonly #tally: Tally;
  /** Requests that one side has decided and the other has not. */
  readonly #halves = new Map<LogRecord, Half>();
  #atMs: number;

  constructor(startMs: number, [one, two]: readonly [NamedRuleset, NamedRuleset], tally: Tally) {
    this.#clock = new LogClock(startMs);
    this.#atMs = startMs;
    this.#tally = tally;
    this.#sides = [this.#newSide(one, 0), this.#newSide(two, 1)];
  }

  get displaced(): number {
    return this.#sides.reduce((sum, { owners }) => sum + owners.displaced, 0);
  }

  async decide(record: LogRecord): Promise<void> {
    const hasBegun = this.#sides.map((side) => side.takeBegun()).includes(true);
    // Where nothing is under way and no time passes, nothing can happen in between.
    if (hasBegun || record.atMs > this.#atMs) await this.#clock.reach(record.atMs);
    this.#atMs = record.atMs;
    for (const side of this.#sides) {
      side.expectSound();
      side.decide(record);
    }
  }

  async end(): Promise<void> {
    await this.#clock.reach(this.#atMs + WAIT_MS_MAX);
    for (const side of this.#sides) side.expectSound();
  }

  #newSide({ ruleset }: NamedRuleset, at: 0 | 1): Side {
    return new Side(ruleset, this.#clock, {
      decided: (record, outcome) => this.#decided(record, outcome, at),
      shadowDenied: (policy) => this.#tally.shadowDenied(policy, at),
    });
  }

  #decided(record: LogRecord, outcome: Outcome, at: 0 | 1): void {
    const half = this.#halves.get(record);
    if (half === undefined) {
      this.#halves.set(record, { outcome, at });
      return;
    }
    this.#halves.delete(record);
    this.#tally.decided(record, half.at === 0 ? [half.outcome, outcome] : [outcome, half.outcome]);
  }
}

interface Half {
  readonly outcome: Outcome;
  readonly at: 0 | 1;
}
