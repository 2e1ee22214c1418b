/**
 * What a request asks of the owners of its counters, and what each of them comes to: each answers in its own time, and a single denial settles
 * them all.
 */

import type { Winner } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';
import { type Group, isSliceable } from './groups.ts';
import type { LeaseReport } from './lease.ts';
import type { Answer, OwnerReply, Question } from './messages.ts';

export interface Ask {
  readonly id: string;
  readonly version: Version;
  readonly cost: number;
  readonly largestCost: number;
  /** The cost will be corrected once it is known. */
  readonly isEstimate?: boolean;
  /** When the request began to wait: owners that are asked one after the other share its deadline. */
  readonly startedMs: number;
  readonly deadlineMs: number;
}

/** A denial that the isolate remembers of one of the counters asked about. */
export interface Remembered {
  readonly winner: Winner;
  readonly retryAfterMs: number;
}

/** One owner's part in a request; `result` is there once it has answered, or been decided without. */
export interface Asked {
  /** As it was asked for last: an owner that has been split sends requests on. */
  group: Group;
  result: GroupResult | undefined;
  /** Absent where nobody had to be asked. */
  readonly done?: Promise<GroupResult>;
}

/** What an owner answered; nobody may have waited for it any more. */
export interface Answered extends Pick<OwnerReply, 'incarnation'> {
  readonly answer: Answer;
  readonly questionId: string;
}

export type GroupResult =
  | ({ readonly kind: 'answered' } & Answered)
  /** Denials of other requests settled it while it waited for a place. */
  | { readonly kind: 'remembered'; readonly denials: readonly Remembered[] }
  /** Spent from a lease in hand. */
  | { readonly kind: 'leased'; readonly takenMs: number }
  /** The lease in hand is empty, and there is nothing to ask for. */
  | { readonly kind: 'dry'; readonly retryAfterMs: number }
  | { readonly kind: 'unanswered'; readonly late?: Promise<Answered | undefined> };

/** The question about a group's counters; `unitsPerSecond` is how fast each is asked for here. */
export function questionOf(
  group: Group,
  { id, cost, isEstimate }: Pick<Ask, 'id' | 'cost' | 'isEstimate'>,
  {
    lease,
    unitsPerSecond,
  }: { lease: LeaseReport | undefined; unitsPerSecond: (counterId: string) => number },
): Question {
  const { owner, enforced, shadow, opening } = group;
  const asked = (winners: readonly Winner[], isShadow: boolean) =>
    winners.map(({ counterId, rule }) => ({
      id: counterId,
      limit: rule.limit!,
      shadow: isShadow,
      unitsPerSecond: unitsPerSecond(counterId),
      ...(rule.regional && { startCredit: rule.regional.startCredit }),
    }));
  const counters = [...asked(enforced, false), ...asked(shadow, true)];
  const isMovable = !owner.shared && isSliceable(group);
  const riders = {
    ...(isEstimate && { isEstimate }),
    ...(isMovable && { isMovable }),
    ...(lease && { lease }),
    ...(opening && { opening }),
  };
  return { id, cost, counters, ...riders };
}

/** `result` is there once `done` has settled. */
export interface Pending extends Asked {
  readonly done: Promise<GroupResult>;
}

export interface Asker {
  readonly ask: (group: Group) => Promise<GroupResult>;
  /** The group as it is to be asked for again, where that result is not the last word. */
  readonly sentOn: (group: Group, result: GroupResult) => Group | undefined;
  /** The group as it is to be asked for instead, where that is known (`engine/detour`): before its owner is asked, and when that is late. */
  readonly ahead: (group: Group) => Promise<Group | undefined> | undefined;
  readonly around: (group: Group, first: Promise<unknown>) => Promise<Group | undefined> | undefined;
  /** The request is decided without this. */
  readonly leave: (group: Group, first: Promise<GroupResult>) => void;
}

export function startAsking(group: Group, { ask, sentOn, ahead, around, leave }: Asker): Pending {
  const asked: Asked = { group, result: undefined };
  const finish = async () => {
    // Nothing is waited for where there is nothing to wait for: a question goes at once.
    const known = ahead(group);
    if (known !== undefined) asked.group = (await known) ?? group;
    const first = ask(asked.group);
    const way = around(asked.group, first);
    const detour = way && (await way);
    if (detour !== undefined) leave(asked.group, first);
    const next = detour ?? sentOn(asked.group, await first);
    if (next !== undefined) asked.group = next;
    const result = await (next === undefined ? first : ask(next));
    asked.result = result;
    return result;
  };
  return Object.assign(asked, { done: finish() });
}

/** Settles when every owner has answered or run out of time, or as soon as one denies. */
export function denialOrAll(pending: readonly Pending[]): Promise<unknown> {
  const [only] = pending;
  if (only !== undefined && pending.length === 1) return only.done;
  return new Promise<void>((resolve) => {
    let left = pending.length;
    if (left === 0) resolve();
    for (const { done } of pending) {
      void done.then((result) => {
        left -= 1;
        if (left === 0 || isDenial(result)) resolve();
      });
    }
  });
}

export function isDenial(result: GroupResult | undefined): boolean {
  if (result?.kind === 'remembered' || result?.kind === 'dry') return true;
  return result?.kind === 'answered' && result.answer.outcome !== 'allowed';
}
