/**
 * The worst cases of a rule, in numbers and in sentences: what it can admit above its limit, when, and how much.
 *
 * An envelope is "in any t seconds at most burst + rate x t units". The healthy one is the limit itself; every other is what a fault makes of
 * it, for isolates of one region. Shares are taken as told in steady demand, when they add up to one. Tests measure each against the
 * engine; `limiter explain` prints them.
 */
import { capacity, countsSlots, type Limit } from '../core/decision.ts';
import type { Rule } from '../policy/ruleset.ts';
import { carriedSentence, OWNER_REQUESTS_PER_SECOND } from './bound-objects.ts';
import { type RegionBound, regionBoundOf } from './bound-regions.ts';
import { slotBoundOf } from './bound-slots.ts';
import { FALLBACK_MARGIN } from './fallback.ts';
import { REST_UNWRITTEN_MS, WRITE_INTERVAL_MS } from './write-behind.ts';

export interface Topology {
  /** Isolates that an owner has told their shares; in `scope: local`, isolates that serve the caller. At least 1. */
  readonly isolates: number;
  /** Isolates that have never heard from the owner when it falls silent. */
  readonly blindIsolates: number;
  readonly largestCost: number;
  /** Where a limit that regions share is asked for; 1 unless said. */
  readonly regions?: number;
  /** The owner counts for many callers, and has others beside it that do. */
  readonly isShared?: boolean | undefined;
}

/** In any t seconds at most `burstUnits + unitsPerSecond * t` units. */
export interface Envelope {
  readonly burstUnits: number;
  readonly unitsPerSecond: number;
}

export interface Bound {
  readonly limit: Envelope;
  /** Everything is well. */
  readonly steady: Envelope;
  /** From the moment on at which the owner falls silent, its return included. `rateFactor` is how many times the limit's rate that is. */
  readonly fallback: Envelope & { readonly rateFactor: number };
  /** The owner answers now and then: it and the fallback refill side by side. */
  readonly flapping: Envelope & { readonly rateFactor: number };
  /** What an owner that loses its memory forgets, and so may admit again. */
  readonly crashUnits: number;
  /** Where regions share the limit; the numbers above are then of all of them together, while each reaches the root. */
  readonly regional?: RegionBound | undefined;
  readonly sentences: readonly string[];
}

/**
 * The bound of a rule that counts; an `unlimited` one has none. Of a limit that is split by regions it is that of one part, and the rule's
 * limit is the part.
 */
export function boundOf(rule: Rule, topology: Topology): Bound | undefined {
  const { limit } = rule;
  if (limit === undefined) return undefined;
  const bound = countsSlots(limit) ? slotBoundOf(rule, limit, topology) : rateBoundOf(rule, limit, topology);
  const carried = carriedSentence(rule, limit, topology);
  return { ...bound, sentences: [...bound.sentences, ...(carried === undefined ? [] : [carried])] };
}

function rateBoundOf(rule: Rule, limit: Limit, topology: Topology): Bound {
  const numbers =
    rule.scope === 'local' ? localNumbers(limit, topology) : ownedNumbers(rule, limit, topology);
  const sentences =
    rule.scope === 'local' ? localSentences(numbers, topology) : ownedSentences(rule, numbers, topology);
  const { regions = 1, largestCost } = topology;
  const regional = regionBoundOf(rule, limit, { regions, largestCost, crashUnits: numbers.crashUnits });
  if (regional !== undefined)
    return { ...numbers, regional, sentences: [...sentences, ...regionSentences(regional)] };
  const isSplit = rule.regional?.weights !== undefined;
  return { ...numbers, sentences: isSplit ? [...sentences, PART_SENTENCE] : sentences };
}

const PART_SENTENCE =
  'each region has its own part, and nothing is shared: these are the numbers of one part';

type Numbers = Omit<Bound, 'sentences' | 'regional'>;

function ownedNumbers(rule: Rule, limit: Limit, topology: Topology): Numbers {
  const own = envelopeOf(limit);
  const fallback = fallbackOf(rule, limit, topology);
  return {
    limit: own,
    steady: own,
    fallback,
    flapping: {
      burstUnits: own.burstUnits + fallback.burstUnits,
      unitsPerSecond: own.unitsPerSecond + fallback.unitsPerSecond,
      rateFactor: 1 + fallback.rateFactor,
    },
    crashUnits: crashUnitsOf(limit, topology.largestCost),
  };
}

/** Every isolate counts by itself and asks nobody, so nothing can be out of reach, and nothing is stored that a crash could lose. */
function localNumbers(limit: Limit, { isolates }: Topology): Numbers {
  const own = envelopeOf(limit);
  const all = {
    burstUnits: isolates * own.burstUnits,
    unitsPerSecond: isolates * own.unitsPerSecond,
    rateFactor: isolates,
  };
  return { limit: own, steady: all, fallback: all, flapping: all, crashUnits: 0 };
}

function envelopeOf(limit: Limit): Envelope {
  const edges = limit.algorithm === 'fixed_window' ? 2 : 1;
  return {
    burstUnits: edges * capacity(limit),
    unitsPerSecond: (limit.quota * 1_000) / limit.windowMs,
  };
}

/**
 * The shares of the isolates that were told add up to one. Each has room for one largest cost at least, which counts most when one of
 * them has the whole share and the others next to none. One that was never told brings its blind share on top.
 */
function fallbackOf(
  { failureMode, blindShare }: Rule,
  limit: Limit,
  { isolates, blindIsolates, largestCost }: Topology,
): Bound['fallback'] {
  if (failureMode === 'closed') return { burstUnits: 0, unitsPerSecond: 0, rateFactor: 0 };
  const burst = capacity(limit);
  const smallest = Math.min(burst, largestCost);
  const blindBurst = Math.max(blindShare * burst, smallest);
  const rateFactor = FALLBACK_MARGIN * (1 + blindIsolates * blindShare);
  return {
    burstUnits: burst + (isolates - 1) * smallest + blindIsolates * blindBurst,
    unitsPerSecond: (rateFactor * limit.quota * 1_000) / limit.windowMs,
    rateFactor,
  };
}

/** A second of charges, and what was left unwritten because it would soon have come back; together never more than a full counter. */
function crashUnitsOf(limit: Limit, largestCost: number): number {
  const chargedUnits = (OWNER_REQUESTS_PER_SECOND * largestCost * WRITE_INTERVAL_MS) / 1_000;
  return Math.min(capacity(limit), chargedUnits + unwrittenUnitsOf(limit));
}

/** What comes back within five seconds: of a bucket, so much of its rate; of a window that ends within them, all of it. */
function unwrittenUnitsOf({ algorithm, quota, windowMs }: Limit): number {
  switch (algorithm) {
    case 'token_bucket':
    case 'leaky_bucket':
      return (quota * REST_UNWRITTEN_MS) / windowMs;
    case 'fixed_window':
      return quota;
    case 'sliding_window':
    case 'sliding_log':
    case 'concurrency':
      return windowMs <= REST_UNWRITTEN_MS ? quota : 0;
  }
}

function ownedSentences({ failureMode }: Rule, numbers: Numbers, topology: Topology): readonly string[] {
  const { fallback, flapping, crashUnits } = numbers;
  const isolates = counted(topology.isolates, 'isolate');
  const blind =
    topology.blindIsolates === 0
      ? ''
      : ` and ${counted(topology.blindIsolates, 'isolate')} that it never told`;
  const silent =
    failureMode === 'closed'
      ? ['owner silent: nothing is admitted (closed)']
      : [
          `owner silent, with ${isolates} that it told their shares${blind}: ${told(fallback)}, ${times(fallback)} the rate`,
          `owner answering now and then: ${told(flapping)}, ${times(flapping)} the rate`,
        ];
  return [
    `healthy: ${told(numbers.steady)}, nothing above the limit`,
    ...silent,
    `owner crashes: ${units(crashUnits)} may be admitted again (1 s of charges and 5 s of refill)`,
  ];
}

function regionSentences({
  regions,
  coldStartUnits,
  partition,
  rootCrashUnits,
  regionCrashUnits,
}: RegionBound): readonly string[] {
  return [
    `${counted(regions, 'region')} at a cold start: ${units(coldStartUnits)} above the limit, which are paid back`,
    `regions cut off: ${told(partition)}, ${times(partition)} the rate, all sides together`,
    `a region's owner crashes: ${units(regionCrashUnits)} may be admitted again; the root: ${units(rootCrashUnits)}`,
  ];
}

function localSentences({ steady }: Numbers, { isolates }: Topology): readonly string[] {
  return [
    `each isolate counts by itself: ${counted(isolates, 'isolate')} admit ${told(steady)}, ${isolates} times the limit`,
  ];
}

function told({ burstUnits, unitsPerSecond }: Envelope): string {
  return `at most ${units(burstUnits)} at once and ${rounded(unitsPerSecond)} a second after that`;
}

function times({ rateFactor }: { rateFactor: number }): string {
  return `${rounded(rateFactor)} times`;
}

function units(amount: number): string {
  return counted(rounded(amount), 'unit');
}

function counted(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

/** Three digits say enough of a worst case; whole numbers stay whole. */
function rounded(amount: number): number {
  return Number.isInteger(amount) ? amount : Number(amount.toPrecision(3));
}
