/**
 * What a run came to, in figures.
 *
 * Units admitted are compared with what one ideal counter would have admitted of the same arrivals: as a total, and for each holder
 * as its part of what it was offered. Single requests are not compared, since a few milliseconds of jitter swap who gets the last token.
 */
import { quantile } from '../bench/statistics.ts';

export interface Figures {
  /** Units that arrived, that were admitted, and that one ideal counter would have admitted. */
  readonly offered: number;
  readonly admitted: number;
  readonly ideal: number;
  /** admitted / ideal. */
  readonly ofIdeal: number;
  /** Units above burst + rate x (t + one round trip) in the worst interval t of the worst counter. */
  readonly overAdmission: number;
  /** Units that callers inside their quota were refused: ideal - admitted over the groups whom the ideal refuses nothing. */
  readonly inQuotaRefusals: number;
  readonly ownerCalls: number;
  /** Messages of middle owners to their roots. */
  readonly rootCallsPerSecond: number;
  readonly callsPerThousand: number;
  readonly callsFirstSecond: number;
  /** The most in any later second. */
  readonly callsPerSecondMax: number;
  /** The most calls that any one owner took in a second, the first two left out. */
  readonly hottestOwner: number;
  /** Milliseconds that admitted requests waited for their verdict. */
  readonly waitP50: number;
  readonly waitP99: number;
  /** The longest that any request waited, whatever its verdict. */
  readonly answerMax: number;
  /** Requests that were decided without an owner that did not answer. */
  readonly fallbackDecisions: number;
  /** The most units admitted in any second. */
  readonly admittedPerSecondMax: number;
  /** Units that were denied to callers who had been denied before, and came back when they were told to. */
  readonly deniedAgain: number;
  /** Milliseconds from the first attempt to the admission, of those who had to come back. */
  readonly untilAdmittedP50: number;
  readonly untilAdmittedP99: number;
  /** The part of what it was offered that the least-served isolate got, of the same part over all isolates. */
  readonly leastServed: number;
  /** Units of requests that vanished with their isolate, undecided. */
  readonly lost: number;
}

/** A cold start is not what an object has to carry. */
const SETTLED_AFTER_S = 2;

export interface Arrival {
  readonly group: string;
  readonly isolate: number;
  readonly cost: number;
  readonly atMs: number;
  readonly isIdeal: boolean;
  /** Of a caller that has come back: when it first asked. */
  readonly firstAskedMs?: number | undefined;
}

export interface Outcome {
  readonly isAdmitted: boolean;
  readonly isFallback?: boolean;
  readonly atMs: number;
}

interface Tally {
  offered: number;
  admitted: number;
  ideal: number;
  lost: number;
}

/** Fewer units than this say nothing about how well a holder was served: chance alone would make some of them the least. */
const SERVED_UNITS_MIN = 50;

export class Measures {
  readonly #startMs: number;
  readonly #groups = new Map<string, Tally>();
  readonly #isolates = new Map<number, Tally>();
  readonly #waitsMs: number[] = [];
  readonly #returnsMs: number[] = [];
  readonly #callsBySecond: number[] = [];
  readonly #admittedBySecond: number[] = [];
  #requests = 0;
  #answerMax = 0;
  #fallbackDecisions = 0;
  #rootCalls = 0;
  readonly #handled = new Map<string, number>();
  #hottest = 0;
  #deniedAgain = 0;

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  arrived(arrival: Arrival): void {
    const { cost, isIdeal } = arrival;
    this.#requests += 1;
    for (const tally of this.#talliesOf(arrival)) {
      tally.offered += cost;
      // Counted as lost until it is decided.
      tally.lost += cost;
      if (isIdeal) tally.ideal += cost;
    }
  }

  decided(arrival: Arrival, { isAdmitted, isFallback = false, atMs }: Outcome): void {
    const { firstAskedMs, cost } = arrival;
    this.#answerMax = Math.max(this.#answerMax, atMs - arrival.atMs);
    if (isFallback) this.#fallbackDecisions += 1;
    if (isAdmitted) this.#addInSecond(this.#admittedBySecond, cost, atMs);
    else if (firstAskedMs !== undefined) this.#deniedAgain += cost;
    if (isAdmitted && firstAskedMs !== undefined) this.#returnsMs.push(atMs - firstAskedMs);
    for (const tally of this.#talliesOf(arrival)) {
      tally.lost -= cost;
      if (isAdmitted) tally.admitted += cost;
    }
    if (isAdmitted) this.#waitsMs.push(atMs - arrival.atMs);
  }

  /** A middle owner has sent a message to its root. */
  toldRoot(): void {
    this.#rootCalls += 1;
  }

  /** An owner has taken a call, of whomever. */
  handled(owner: string, atMs: number): void {
    const second = Math.floor((atMs - this.#startMs) / 1_000);
    if (second < SETTLED_AFTER_S) return;
    const key = `${second} ${owner}`;
    const calls = (this.#handled.get(key) ?? 0) + 1;
    this.#handled.set(key, calls);
    this.#hottest = Math.max(this.#hottest, calls);
  }

  called(atMs: number): void {
    this.#addInSecond(this.#callsBySecond, 1, atMs);
  }

  figures(overAdmission: number): Figures {
    const all = sumOf([...this.#groups.values()]);
    const calls = this.#callsBySecond.reduce((sum, each) => sum + each, 0);
    return {
      offered: all.offered,
      admitted: all.admitted,
      ideal: all.ideal,
      ofIdeal: all.ideal === 0 ? 1 : all.admitted / all.ideal,
      overAdmission,
      inQuotaRefusals: this.#inQuotaRefusals(),
      ownerCalls: calls,
      rootCallsPerSecond: this.#rootCalls / Math.max(1, this.#admittedBySecond.length),
      callsPerThousand: this.#requests === 0 ? 0 : (calls * 1_000) / this.#requests,
      callsFirstSecond: this.#callsBySecond[0] ?? 0,
      hottestOwner: this.#hottest,
      callsPerSecondMax: Math.max(0, ...this.#callsBySecond.slice(1)),
      waitP50: quantileOf(this.#waitsMs, 0.5),
      waitP99: quantileOf(this.#waitsMs, 0.99),
      answerMax: this.#answerMax,
      fallbackDecisions: this.#fallbackDecisions,
      admittedPerSecondMax: Math.max(0, ...this.#admittedBySecond),
      deniedAgain: this.#deniedAgain,
      untilAdmittedP50: quantileOf(this.#returnsMs, 0.5),
      untilAdmittedP99: quantileOf(this.#returnsMs, 0.99),
      leastServed: this.#leastServed(),
      lost: all.lost,
    };
  }

  /** What a group was refused that the ideal refused nothing; what was lost with an isolate was not refused. */
  #inQuotaRefusals(): number {
    let refused = 0;
    for (const { offered, ideal, admitted, lost } of this.#groups.values()) {
      if (ideal === offered) refused += Math.max(0, ideal - admitted - lost);
    }
    return refused;
  }

  #leastServed(): number {
    const isolates = [...this.#isolates.values()];
    const { offered, ideal, admitted } = sumOf(isolates);
    if (admitted === 0) return 1;
    const weighty = isolates.filter((isolate) => (isolate.offered * ideal) / offered >= SERVED_UNITS_MIN);
    const served = weighty.map((isolate) => isolate.admitted / isolate.offered / (admitted / offered));
    return Math.min(1, ...served);
  }

  #addInSecond(seconds: number[], amount: number, atMs: number): void {
    const second = Math.floor((atMs - this.#startMs) / 1_000);
    while (seconds.length <= second) seconds.push(0);
    seconds[second]! += amount;
  }

  #talliesOf({ group, isolate }: Arrival): readonly [Tally, Tally] {
    return [tallyIn(this.#groups, group), tallyIn(this.#isolates, isolate)];
  }
}

function quantileOf(values: readonly number[], at: number): number {
  return values.length === 0 ? 0 : quantile(values, at);
}

function tallyIn<Key>(tallies: Map<Key, Tally>, key: Key): Tally {
  const known = tallies.get(key);
  if (known !== undefined) return known;
  const tally = { offered: 0, admitted: 0, ideal: 0, lost: 0 };
  tallies.set(key, tally);
  return tally;
}

function sumOf(tallies: readonly Tally[]): Tally {
  const sum = { offered: 0, admitted: 0, ideal: 0, lost: 0 };
  for (const { offered, admitted, ideal, lost } of tallies) {
    sum.offered += offered;
    sum.admitted += admitted;
    sum.ideal += ideal;
    sum.lost += lost;
  }
  return sum;
}
