/**
 * What an isolate remembers of one owner: whether to ask it, how long to wait for it, and what it has not been told yet.
 */
import { Breaker } from './breaker.ts';
import { Corrections } from './corrections.ts';
import { Debts } from './debts.ts';
import { InFlight } from './in-flight.ts';
import { HeldSlots } from './slots.ts';
import { Voids } from './voids.ts';

/** A new object takes time to start, and its first caller is not to be punished for that. */
const FIRST_DEADLINE_MS = 1_000;

/** No request waits longer than this for an owner, however slow the owner usually is. */
const DEADLINE_MAX_MS = 1_000;

/** Slower than three times its usual time is an exception, not the owner's pace. */
const USUAL_TIMES = 3;

/** A round trip within a region. */
const GUESSED_USUAL_MS = 20;

/** The weight of the latest answer: ten answers make a new pace usual. */
const LATEST_WEIGHT = 0.2;

/** What was known of an owner's splits is over by then (`engine/slices`). */
const FORGOTTEN_AFTER_MS = 60_000;

/** Whoever takes along what there is to tell the owner in the background (`engine/errands`). */
export interface Messenger {
  /** When it goes or, if it is away, by when it is back. */
  untilMs: number;
  /** On its way, or waiting for a silent owner: nobody else goes meanwhile. */
  isAway: boolean;
}

export class OwnerLink {
  readonly breaker = new Breaker();
  readonly debts: Debts;
  readonly voids: Voids;
  readonly corrections: Corrections;
  readonly slots: HeldSlots;
  readonly inFlight = new InFlight();
  readonly messenger: Messenger = { untilMs: Number.NEGATIVE_INFINITY, isAway: false };
  #usualMs: number | undefined;
  #silentSinceMs: number | undefined;
  #unreadyUntilMs: number | undefined;
  #askedAtMs = Number.NEGATIVE_INFINITY;
  /** When the question went that the first answer since the last is awaited for. */
  #awaitedSinceMs: number | undefined;

  constructor(lost: {
    readonly onDebtLost: (count: number) => void;
    readonly onGiveBackLost: (count: number) => void;
    readonly onCorrectionLost: (count: number) => void;
    readonly onReleaseLost: (count: number) => void;
  }) {
    this.debts = new Debts(lost.onDebtLost);
    this.voids = new Voids(lost.onGiveBackLost);
    this.corrections = new Corrections(lost.onCorrectionLost);
    this.slots = new HeldSlots(lost.onReleaseLost);
  }

  /** Whether there is a word for this owner that no message has carried since `sinceMs`. */
  hasUnsent(sinceMs: number, nowMs: number): boolean {
    return this.corrections.hasUnsent(sinceMs) || this.slots.hasUnsent(sinceMs, nowMs);
  }

  /** How long a request waits for this owner, the rule file's deadline being `deadlineMs`. */
  deadlineMs(deadlineMs: number): number {
    if (this.#usualMs === undefined)
      return this.#silentSinceMs === undefined ? FIRST_DEADLINE_MS : deadlineMs;
    return Math.min(DEADLINE_MAX_MS, Math.max(deadlineMs, USUAL_TIMES * this.#usualMs));
  }

  /** It has neither answered nor failed yet, or was last asked so long ago that it may be another story. */
  isUnknown(nowMs: number): boolean {
    const isNew = this.#usualMs === undefined && this.#silentSinceMs === undefined;
    return isNew || nowMs - this.#askedAtMs >= FORGOTTEN_AFTER_MS;
  }

  /** It has answered, and its last answer was in time. */
  get isAnswering(): boolean {
    return this.#usualMs !== undefined && this.#silentSinceMs === undefined;
  }

  /** Its last answer was that it will know in a moment what it has (`engine/unready`). */
  get isUnready(): boolean {
    return this.#unreadyUntilMs !== undefined;
  }

  /** When it may be asked again, by one at a time; `undefined` once it is ready. */
  unreadyUntil(untilMs: number | undefined): void {
    this.#unreadyUntilMs = untilMs;
  }

  /**
   * Whether there is room for one more question beside those on their way, at most `placesMax` of them. An owner that has never answered,
   * and is slow to, may have a long queue: one question waits in it, and the others for its answer.
   */
  hasPlace(inFlight: InFlight, placesMax: number, nowMs: number): boolean {
    if (this.#unreadyUntilMs !== undefined)
      return nowMs >= this.#unreadyUntilMs && inFlight.count(nowMs) === 0;
    const isLate = this.#usualMs === undefined && inFlight.isOlderThan(USUAL_TIMES * this.usualMs, nowMs);
    return inFlight.count(nowMs) < (isLate ? 1 : placesMax);
  }

  /** How long the owner usually takes to answer; a guess before its first answer. */
  get usualMs(): number {
    return this.#usualMs ?? GUESSED_USUAL_MS;
  }

  /** When the present run of failures began; `undefined` while the owner answers. */
  get silentSinceMs(): number | undefined {
    return this.#silentSinceMs;
  }

  /**
   * An answer came, in time or late: either tells the owner's pace. What took longer than any request waits is no pace but an
   * outage, and must not stretch the next deadlines.
   */
  tookMs(tookMs: number): void {
    if (tookMs > DEADLINE_MAX_MS) return;
    this.#usualMs =
      this.#usualMs === undefined ? tookMs : this.#usualMs + LATEST_WEIGHT * (tookMs - this.#usualMs);
  }

  /** Whatever it was, and however late. */
  answered(): void {
    this.#awaitedSinceMs = undefined;
  }

  /** A question has gone. */
  awaited(nowMs: number): void {
    this.#askedAtMs = nowMs;
    this.#awaitedSinceMs ??= nowMs;
  }

  /** For how long no answer has come, to whatever was asked meanwhile. */
  awaitedMs(nowMs: number): number {
    return this.#awaitedSinceMs === undefined ? 0 : nowMs - this.#awaitedSinceMs;
  }

  answeredInTime(): void {
    this.#silentSinceMs = undefined;
  }

  failed(nowMs: number): void {
    this.#silentSinceMs ??= nowMs;
  }
}
