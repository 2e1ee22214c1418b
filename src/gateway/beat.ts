/**
 * What an isolate does beside its requests, at intervals: hear of new rules, hand on what was counted.
 *
 * The platform has no timers outside of requests, so a request that comes when nothing is under way takes a beat along in its
 * `waitUntil`: a refresh at once if the last is older than the interval, then a pause of an interval, then what was counted since goes
 * out. So nothing waits, an idle isolate costs nothing, and the last counts of a busy one leave within an interval.
 */
import type { Background } from '../engine/ports.ts';

/** A beat that the platform cut short is taken for over after this long; `waitUntil` keeps one alive for thirty seconds. */
const LOST_MS = 5_000;

/** Owners' news is fetched at once, but no more often than this: a source that does not have it is not asked by each request. */
const NEWS_INTERVAL_MS = 1_000;

export interface BeatOptions {
  readonly intervalMs: number;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Neither rejects. */
  readonly refresh: () => Promise<void>;
  readonly flush: () => Promise<void>;
  /** Whether there is something that a refresh would bring. */
  readonly isNews: () => boolean;
}

export class Beat {
  readonly #options: BeatOptions;
  #refreshedAtMs = Number.NEGATIVE_INFINITY;
  #endsAtMs = Number.NEGATIVE_INFINITY;

  constructor(options: BeatOptions) {
    this.#options = options;
  }

  /** Called for each request. */
  attend(background: Background): void {
    const { nowMs, intervalMs, isNews } = this.#options;
    const now = nowMs();
    if (isNews() && now - this.#refreshedAtMs >= NEWS_INTERVAL_MS) background(this.#refresh(now));
    if (now < this.#endsAtMs) return;
    this.#endsAtMs = now + intervalMs + LOST_MS;
    background(this.#run(now));
  }

  async #run(now: number): Promise<void> {
    const { intervalMs, nowMs, sleep, flush } = this.#options;
    // Beside the pause, not before it: a source that hangs must not keep the counts from leaving in time.
    const refreshed = now - this.#refreshedAtMs >= intervalMs ? this.#refresh(now) : undefined;
    await sleep(intervalMs);
    // The next request begins the next beat, also while these are on their way.
    this.#endsAtMs = Number.NEGATIVE_INFINITY;
    await Promise.all([flush(), this.#refresh(nowMs()), refreshed]);
  }

  #refresh(now: number): Promise<void> {
    this.#refreshedAtMs = now;
    return this.#options.refresh();
  }
}
