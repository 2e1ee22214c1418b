/** When a middle owner has a word for its root, and how long an answer takes. Times are on its own logical clock. */

/** No word sooner after an answer than this: what was asked for just before it says little. */
const PAUSE_MS = 50;

/** How long a slice waits for what isolates bring before it says a word: the root is busy telling them. */
const OPENING_MS = 300;

/** How often a root that does not answer is asked. */
const RETRY_MS = 1_000;

/** Before the root has answered. */
const GUESSED_USUAL_MS = 150;

/** The weight of the latest answer in what is usual. */
const LATEST_WEIGHT = 0.2;

/** How many usual times ahead a shortage has to be seen. */
const AHEAD = 1.5;

export class MiddlePace {
  #dueMs = Number.POSITIVE_INFINITY;
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #heardAtMs = Number.NEGATIVE_INFINITY;
  #usualMs = GUESSED_USUAL_MS;

  get dueMs(): number {
    return this.#dueMs;
  }

  /** Not while an answer is awaited, and not just after one. */
  get soonestMs(): number {
    return this.#reportedAtMs > this.#heardAtMs ? Number.POSITIVE_INFINITY : this.#heardAtMs + PAUSE_MS;
  }

  /** For how long what is in hand has to last: until an answer has come. */
  get aheadMs(): number {
    return AHEAD * this.#usualMs + PAUSE_MS;
  }

  /** It has begun with what others have brought, and they bring more for a while. */
  opened(nowMs: number): void {
    this.#heardAtMs = nowMs + OPENING_MS - PAUSE_MS;
    this.by(nowMs + OPENING_MS);
  }

  /** Nothing is to be told until something happens. */
  rest(): void {
    this.#dueMs = Number.POSITIVE_INFINITY;
  }

  /** A word is due then; one that was due sooner stays so. */
  by(atMs: number): void {
    this.#dueMs = Math.min(this.#dueMs, atMs);
  }

  /** The next word is due so long after the answer that has just come. */
  after(ms: number): void {
    this.#dueMs = this.#heardAtMs + Math.max(PAUSE_MS, ms);
  }

  reported(nowMs: number): void {
    this.#reportedAtMs = nowMs;
    this.#dueMs = nowMs + RETRY_MS;
  }

  heard(sentMs: number, nowMs: number): void {
    this.#usualMs += LATEST_WEIGHT * (nowMs - sentMs - this.#usualMs);
    this.#heardAtMs = nowMs;
  }
}
