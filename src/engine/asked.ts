/**
 * Owners that have been asked for one request: each answers in its own time, and a single denial settles them all.
 */
import type { Group } from './groups.ts';
import type { Asked, GroupResult } from './owners.ts';

/** `result` is there once `done` has settled. */
export function startAsking(group: Group, done: Promise<GroupResult>): Asked {
  const asked: Asked = { group, done, result: undefined };
  asked.done = done.then((result) => {
    asked.result = result;
    return result;
  });
  return asked;
}

/** Settles when every owner has answered or run out of time, or as soon as one denies. */
export function denialOrAll(asked: readonly Asked[]): Promise<void> {
  return new Promise((resolve) => {
    let left = asked.length;
    if (left === 0) resolve();
    for (const { done } of asked) {
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
