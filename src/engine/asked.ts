/**
 * Owners that have been asked for one request: each answers in its own time, and a single denial settles them all.
 */
import type { Group } from './groups.ts';
import type { Asked, GroupResult } from './owners.ts';

/** `result` is there once `done` has settled. */
export interface Pending extends Asked {
  readonly done: Promise<GroupResult>;
}

export function startAsking(group: Group, answer: Promise<GroupResult>): Pending {
  const done = answer.then((result) => {
    pending.result = result;
    return result;
  });
  const pending: Pending = { group, done, result: undefined };
  return pending;
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
