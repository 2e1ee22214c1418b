/** Callers that were denied and all come back when they were told to. */
import { wholeSeconds } from '../../../src/engine/level.ts';
import { spreadRetry } from '../../../src/engine/spread.ts';
import type { Winner } from '../../../src/policy/counter.ts';
import type { Random } from '../random.ts';
import { medianOf, type Row } from '../report.ts';
import { winner } from '../rules.ts';
import type { Case, Scenario, Stage } from '../scenario.ts';
import type { Asked, Heard, Stream } from '../traffic.ts';
import { ANSWERED_WITHIN_MS } from './kit.ts';

const NAME = 'retry-storm';
const ISOLATES = 10;

/** So much in ten seconds, shared by all. */
const QUOTA = 2_000;
const WINDOW_MS = 10_000;

/** Three callers for each unit of a window, each of whom wants one; they come during the first eight seconds of it. */
const CALLERS_PER_SECOND = 750;
const COMING_MS = 8_000;

/** A caller's way to its isolate, and how late its timer is, take up to so long together. */
const TRAVEL_MS = 50;

const SPREADS = [0, 1, 2, 5] as const;

const KINDS = [
  { label: 'window', algorithm: 'fixed_window' },
  { label: 'bucket', algorithm: 'token_bucket' },
] as const;

/** Comes back, until it is admitted, when it was told to: a whole number of seconds later, and up to `spread` more. */
class Returning {
  readonly #enforced: readonly Winner[];
  readonly #random: Random;
  readonly #spread: number;

  constructor(enforced: readonly Winner[], random: Random, spread: number) {
    this.#enforced = enforced;
    this.#random = random;
    this.#spread = spread;
  }

  first(random: Random): Asked {
    return {
      group: 'all',
      isolate: random.below(ISOLATES),
      enforced: this.#enforced,
      heard: (heard, stage) => this.#heard(heard, stage, heard.askedMs),
    };
  }

  #heard({ verdict }: Heard, stage: Stage, firstAskedMs: number): void {
    if (verdict.outcome === 'allowed') return;
    const { retryAfterMs } = spreadRetry(verdict, this.#enforced, this.#random.below(this.#spread + 1));
    const toldMs = 1_000 * wholeSeconds(retryAfterMs, 1);
    stage.world.time.after(toldMs + this.#random.between(0, TRAVEL_MS), () =>
      stage.send({
        ...this.first(this.#random),
        firstAskedMs,
        heard: (again) => this.#heard(again, stage, firstAskedMs),
      }),
    );
  }
}

function stormCase({ label, algorithm }: (typeof KINDS)[number], spread: number): Case {
  return {
    label: rowLabel(label, spread),
    plan: (random) => {
      const limit = { quota: QUOTA, windowMs: WINDOW_MS, algorithm, consistency: 'auto' } as const;
      const enforced = [{ ...winner(limit), pairs: [['org', 'acme']] as const }];
      const returning = new Returning(enforced, random.fork('returns'), spread);
      const request: Stream['request'] = (chance) => returning.first(chance);
      return {
        isolates: ISOLATES,
        // All at once may be more than an owner answers in time, and some are then decided without it.
        isDegraded: true,
        inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
        answeredWithinMs: ANSWERED_WITHIN_MS,
        streams: [{ phases: [{ forMs: COMING_MS, perSecond: CALLERS_PER_SECOND }], request }],
      };
    },
  };
}

function rowLabel(kind: string, spread: number): string {
  return `${kind} +${spread}s`;
}

interface Spreading {
  readonly spread: number;
  readonly callsPeak: number;
  readonly admittedPeak: number;
  readonly deniedAgain: number;
  readonly fallbackDecisions: number;
  readonly untilP50: number;
  readonly untilP99: number;
}

/** What is told in whole seconds may cost nobody more than one of them. */
const LONGER_MS_MAX = 1_000;

function findingOf(rows: readonly Row[]): readonly string[] {
  const kinds = KINDS.map(({ label }) => ({ label, all: spreadingsOf(label, rows) }));
  if (kinds.some(({ all }) => all.length < SPREADS.length)) return [];
  const good = kinds.map(({ all }) => goodSpreads(all));
  const best = SPREADS.findLast((spread) => good.every((spreads) => spreads.includes(spread)));
  const each = kinds.map(({ label }, at) => `${label}: ${good[at]!.join(', ') || 'none'}`).join('; ');
  return [
    ...kinds.flatMap(({ label, all }) => all.map((spreading) => `${label} ${sentenceOf(spreading)}`)),
    `Finding: ${best === undefined ? 'no spread suits both' : `spread Retry-After of shared counters upward by ${best} s`}. Good are those under ` +
      `which the owner answers everybody in time and nobody (p99) waits a second longer than under the least of them (${each}).`,
  ];
}

function goodSpreads(all: readonly Spreading[]): readonly number[] {
  const answered = all.filter(({ fallbackDecisions }) => fallbackDecisions === 0);
  const longestMs = (answered[0]?.untilP99 ?? 0) + LONGER_MS_MAX;
  return answered.filter(({ untilP99 }) => untilP99 <= longestMs).map(({ spread }) => spread);
}

function spreadingsOf(kind: string, rows: readonly Row[]): readonly Spreading[] {
  return SPREADS.flatMap((spread) => {
    const runs = rows.find(({ name }) => name === `${NAME} ${rowLabel(kind, spread)}`)?.runs;
    if (runs === undefined) return [];
    return {
      spread,
      callsPeak: medianOf(runs, 'callsPerSecondMax'),
      admittedPeak: medianOf(runs, 'admittedPerSecondMax'),
      deniedAgain: medianOf(runs, 'deniedAgain'),
      fallbackDecisions: medianOf(runs, 'fallbackDecisions'),
      untilP50: medianOf(runs, 'untilAdmittedP50'),
      untilP99: medianOf(runs, 'untilAdmittedP99'),
    };
  });
}

/** Medians of an even number of seeds may have a half. */
function whole(units: number): string {
  return String(Math.round(units));
}

function sentenceOf(each: Spreading): string {
  const until = `${(each.untilP50 / 1_000).toFixed(1)} s (p99 ${(each.untilP99 / 1_000).toFixed(1)} s)`;
  return (
    `+${each.spread} s: peaks of ${whole(each.callsPeak)} calls and ${whole(each.admittedPeak)} admitted a second, ` +
    `${whole(each.deniedAgain)} denied again, ${whole(each.fallbackDecisions)} decided without the owner, ${until} until admitted`
  );
}

const retryStorm: Scenario = {
  name: NAME,
  about: 'all who were denied of a shared limit come back at their Retry-After, spread upward by 0 to 5 s',
  cases: KINDS.flatMap((kind) => SPREADS.map((spread) => stormCase(kind, spread))),
  finding: findingOf,
};

export const STORM: readonly Scenario[] = [retryStorm];
