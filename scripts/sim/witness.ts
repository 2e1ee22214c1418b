/**
 * Remembers what each isolate has heard of its owners, so that a decision made without one can be explained afterwards.
 *
 * It goes by what the world saw (messages, and what the engine logged), never by the engine's own state: it cannot repeat its mistakes.
 */
import type { EngineLog } from '../../src/engine/ports.ts';
import type { Isolate } from './isolate.ts';
import type { Heard } from './traffic.ts';

/** Of one isolate. Scenarios that ask for it have one owner. */
interface Memory {
  lastReplyMs: number | undefined;
  unanswered: number;
  openSinceMs: number | undefined;
}

export class Witness {
  readonly #nowMs: () => number;
  readonly #memories = new Map<string, Memory>();

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  sent({ holder }: Isolate): void {
    this.#memoryOf(holder).unanswered += 1;
  }

  replied({ holder }: Isolate): void {
    const memory = this.#memoryOf(holder);
    memory.lastReplyMs = this.#nowMs();
    memory.unanswered = 0;
  }

  logged({ holder }: Isolate, { event }: EngineLog): void {
    if (event === 'breaker_opened') this.#memoryOf(holder).openSinceMs = this.#nowMs();
    if (event === 'breaker_closed') this.#memoryOf(holder).openSinceMs = undefined;
  }

  /** Why a request was decided as it was, in one sentence; said at the instant of the verdict. */
  why({ verdict, askedMs, holder }: Heard): string {
    const { outcome, source } = verdict;
    const decided = `at ${ms(this.#nowMs())} ${holder} decided "${outcome}"`;
    if (source !== 'fallback') return `${decided} by its ${source.replace('_', ' ')}.`;
    const how =
      outcome === 'unavailable' ? 'the rule is closed' : 'the rule is open, so its own bucket decided';
    return `${decided} without the owner, ${this.#because(holder, askedMs)}; ${how}.`;
  }

  #because(holder: string, askedMs: number): string {
    const { lastReplyMs, unanswered, openSinceMs } = this.#memoryOf(holder);
    const silence = `${unanswered} calls have had no answer since ${ms(lastReplyMs ?? 0)}`;
    const waitedMs = this.#nowMs() - askedMs;
    return openSinceMs === undefined
      ? `after waiting ${ms(waitedMs)}, because ${silence}`
      : `${waitedMs === 0 ? 'at once' : `after waiting ${ms(waitedMs)}`}, because its breaker has been open since ${ms(openSinceMs)}: ${silence}`;
  }

  #memoryOf(holder: string): Memory {
    const known = this.#memories.get(holder);
    if (known !== undefined) return known;
    const memory = { lastReplyMs: undefined, unanswered: 0, openSinceMs: undefined };
    this.#memories.set(holder, memory);
    return memory;
  }
}

function ms(value: number): string {
  return `${Math.round(value).toLocaleString('en')} ms`;
}
