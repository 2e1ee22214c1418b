/**
 * An owner as the root of middle owners: it lends to those that report, and splits what has become too hot for one object.
 */
import { available, nowMsFor } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import { type Decision, denied } from '../core/decision.ts';
import type { Counter, Named } from './counters.ts';
import type { Asked } from './deciding.ts';
import type { MiddleGrant, MiddleReport, OwnerCall, Question, Split } from './messages.ts';
import { Meter } from './meter.ts';
import { MiddleBook } from './middle-book.ts';
import { believableReport } from './middle-report.ts';
import { countOf, SPLIT_CALLS_PER_SECOND, SPLIT_HOLDERS, slicesFor } from './slices.ts';

/** Said in place of a decision where a slice decides. */
export const MOVED: Decision = denied(1);

export interface RootOptions {
  /** Whether one of this name may hold leases of this owner as its middle owner. */
  readonly isMiddle: (name: string) => boolean;
  /** The names of the slices that it may be split into; absent when it never is. */
  readonly slices?: (count: number) => readonly string[];
}

export interface RootPorts {
  readonly obtain: (named: Named, clock: LogicalClock) => Counter;
  readonly onChanged: (counter: Counter, clock: LogicalClock) => void;
  readonly counters: () => Iterable<Counter>;
  /** What the next grant is called. */
  readonly nextNumber: () => number;
}

export class Root {
  readonly #options: RootOptions;
  readonly #ports: RootPorts;
  /** Questions that may be about a hot key. */
  readonly #calls = new Meter(0);
  /** The same for all its counters, since an isolate has one slice of it. */
  #sliceCount: number | undefined;

  constructor(options: RootOptions, ports: RootPorts) {
    this.#options = options;
    this.#ports = ports;
  }

  /** A report that cannot be read, or that nobody who may hold leases has sent, is left out. */
  lend(
    reports: readonly MiddleReport[],
    { holder, version }: Pick<OwnerCall, 'holder' | 'version'>,
    clock: LogicalClock,
  ): readonly MiddleGrant[] {
    if (!Array.isArray(reports) || !this.#options.isMiddle(holder)) return [];
    const { obtain, onChanged, nextNumber } = this.#ports;
    return reports.flatMap((told: MiddleReport) => {
      const report = believableReport(told);
      if (report === undefined) return [];
      const counter = obtain({ id: report.counterId, limit: report.limit, version }, clock);
      counter.middles ??= new MiddleBook();
      const grant = counter.middles.hear(counter, { holder, report, number: nextNumber() }, clock);
      onChanged(counter, clock);
      return grant ?? [];
    });
  }

  /**
   * Where one object is asked too often: how many slices it has, and what each of them begins with; `undefined` where it is not split. It is so
   * until its counters are next at rest.
   */
  split({ isMovable }: Question, asked: readonly Asked[], clock: LogicalClock): Split | undefined {
    const { slices } = this.#options;
    if (slices === undefined) return undefined;
    this.#calls.arrive(1, clock.logicalMs);
    // What cannot be asked of a slice is not lent to any either.
    if (!isMovable) return undefined;
    const counters = asked.filter(({ shadow }) => !shadow).map(({ counter }) => counter);
    const isSplit = counters.some(({ middles }) => middles !== undefined);
    if (!isSplit && !this.#isHot(counters, clock.logicalMs)) return undefined;
    const lendable = counters.filter(({ limit }) => limit.algorithm === 'token_bucket');
    this.#sliceCount ??= this.#countBefore() ?? slicesFor(lendable.map(({ limit }) => limit));
    const count = this.#sliceCount;
    const opening = lendable.flatMap((counter) => {
      counter.middles ??= new MiddleBook();
      const named = { number: this.#ports.nextNumber(), epoch: clock.rawMs };
      const grant = counter.middles.open(counter, slices(count), named, clock);
      if (grant === undefined) return [];
      this.#ports.onChanged(counter, clock);
      return grant;
    });
    return { slices: count, opening };
  }

  /**
   * The root has decided this itself. What another counter denied was not really wanted of this one, nor is more wanted than the narrowest of
   * the others lets through; and what can never be had is not waited for.
   */
  decided(
    { cost }: Question,
    asked: readonly Asked[],
    decisions: readonly Decision[],
    clock: LogicalClock,
  ): void {
    if (!asked.some(({ counter }) => counter.middles !== undefined)) return;
    const enforced = asked.map((each, at) => ({ ...each, outcome: decisions[at]?.outcome }));
    for (const { counter, shadow, outcome } of enforced) {
      if (shadow || outcome === 'impossible' || counter.middles === undefined) continue;
      const others = enforced.filter((each) => !each.shadow && each.counter !== counter);
      if (others.some((each) => each.outcome !== 'allowed')) continue;
      const most = others.map((each) => unitsInASecond(each.counter, clock));
      counter.middles.askedHere(cost, Math.min(...most), clock);
    }
  }

  /** Into how many it was split in an earlier life. */
  #countBefore(): number | undefined {
    for (const { middles } of this.#ports.counters()) {
      const [holder] = middles?.holders ?? [];
      if (holder !== undefined) return countOf(holder);
    }
    return undefined;
  }

  #isHot(counters: readonly Counter[], nowMs: number): boolean {
    const isAskedByMany = counters.some(({ demand }) => demand.activeHolders > SPLIT_HOLDERS);
    return isAskedByMany && this.#calls.unitsPerSecond(nowMs) > SPLIT_CALLS_PER_SECOND;
  }
}

/** What a counter has now, and what comes in. */
function unitsInASecond({ limit, state }: Counter, clock: LogicalClock): number {
  const rate = (limit.quota * 1_000) / limit.windowMs;
  return Math.max(0, available(limit, state, nowMsFor(limit, clock))) + rate;
}
