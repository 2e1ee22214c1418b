/**
 * What operators have decided about the callers of one owner, and what that does to a question.
 *
 * A clamp holds from the moment it arrives, for isolates that have not heard of it too: a question about a clamped caller is refused,
 * admitted without a charge, or also charged to the clamp's own counter. Nothing is lent meanwhile to an isolate that does not ask
 * about that counter; its next request will, since the reply tells of the clamp. One that was lifted is remembered until it would have
 * ended by itself, so that a late word does not bring it back.
 */
import { ALLOWED, type Decision, denied } from '../core/decision.ts';
import { type Clamp, clampCounterId, isLimit } from '../policy/clamp.ts';
import { encodePairs, pairsOfId } from '../policy/counter.ts';
import { withoutPlace } from '../policy/place.ts';
import type { Question } from './messages.ts';

/** A shared owner holds a 256th of all addresses; of those an operator clamps a handful. */
const CLAMPS_PER_OWNER_MAX = 1_024;

/** What an operator has decided about a question. */
export interface Override {
  /** All that was found, in force or lifted: what the reply tells. */
  readonly told: readonly Clamp[];
  /** Refuse it until then, on the raw clock. */
  readonly denyUntilMs?: number;
  readonly isUnlimited: boolean;
  /** Counters to charge beside those asked about. */
  readonly added: readonly (Clamp & { readonly id: string })[];
  /** Whether what is in force lets the asking isolate spend by itself. */
  readonly mayLend: boolean;
}

const NO_OVERRIDE: Override = { told: [], isUnlimited: false, added: [], mayLend: true };

export class Oversight {
  readonly #byCaller = new Map<string, Clamp>();

  constructor(stored: readonly Clamp[]) {
    for (const clamp of stored) this.#byCaller.set(encodePairs(clamp.pairs), clamp);
  }

  clamps(): IterableIterator<Clamp> {
    return this.#byCaller.values();
  }

  /** Takes those that are news; answers them, since they have to be stored. */
  take(clamps: readonly Clamp[]): readonly Clamp[] {
    return clamps.filter((clamp) => {
      const caller = encodePairs(clamp.pairs);
      const known = this.#byCaller.get(caller);
      if (known !== undefined && known.revision >= clamp.revision) return false;
      if (known === undefined && this.#byCaller.size >= CLAMPS_PER_OWNER_MAX) return false;
      this.#byCaller.set(caller, clamp);
      return true;
    });
  }

  of({ counters }: Question, rawMs: number): Override {
    if (this.#byCaller.size === 0) return NO_OVERRIDE;
    const enforced = counters.filter(({ shadow }) => !shadow);
    const callers = new Set(enforced.map(({ id }) => pairsOfId(id)));
    const told: Clamp[] = [];
    for (const caller of callers) {
      const clamp = caller === undefined ? undefined : this.#byCaller.get(caller);
      if (clamp !== undefined && rawMs < clamp.untilMs) told.push(clamp);
    }
    const denying = told.filter(({ action }) => action === 'deny');
    const limits = told.filter(isLimit);
    // Where a counter is kept in places, the owner of the whole counts the clamp, and is asked for it beside this one.
    const isPlaced = enforced.some(({ id }) => withoutPlace(id) !== id);
    const added = limits
      .map((clamp) => ({ ...clamp, id: clampCounterId(clamp) }))
      .filter(({ id }) => !isPlaced && !enforced.some((asked) => asked.id === id));
    return {
      told,
      ...(denying.length > 0 && { denyUntilMs: Math.max(...denying.map(({ untilMs }) => untilMs)) }),
      isUnlimited: denying.length === 0 && limits.length === 0 && told.some(isUnlimited),
      added,
      mayLend: denying.length === 0 && added.length === 0 && !told.some(isUnlimited),
    };
  }

  /** Drops what has ended; answers it, since its stored form goes too. */
  sweep(rawMs: number): readonly Clamp[] {
    const ended = [...this.#byCaller.values()].filter(({ untilMs }) => untilMs <= rawMs);
    for (const { pairs } of ended) this.#byCaller.delete(encodePairs(pairs));
    return ended;
  }

  /** How long until the last of them has ended; 0 when there is none. */
  restInMs(rawMs: number): number {
    let latestMs = 0;
    for (const { untilMs } of this.#byCaller.values()) latestMs = Math.max(latestMs, untilMs - rawMs);
    return latestMs;
  }
}

function isUnlimited({ action }: Clamp): boolean {
  return action === 'unlimited';
}

/** What an operator has decided in place of the counters; `undefined` where they are to be asked. */
export function settledBy({ denyUntilMs, isUnlimited }: Override, rawMs: number): Decision | undefined {
  if (denyUntilMs !== undefined) return denied(Math.max(1, denyUntilMs - rawMs));
  return isUnlimited ? ALLOWED : undefined;
}

/**
 * What is said of the first `asked` counters, which are those of the question: where a clamp's counter behind them denied, they are said
 * to have, since the isolate knows no other.
 */
export function saidOfAsked(decisions: readonly Decision[], asked: number): readonly Decision[] {
  const byClamp = decisions.slice(asked).find(({ outcome }) => outcome !== 'allowed');
  const own = decisions.slice(0, asked);
  return byClamp === undefined ? own : own.map((each) => (each.outcome === 'allowed' ? byClamp : each));
}
