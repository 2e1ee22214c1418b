/**
 * The counters of a request, by the owner that decides them together.
 */
import type { OwnerRef, Winner } from '../policy/counter.ts';
import { isLendable } from './lease-terms.ts';
import type { MiddleGrant } from './messages.ts';

export interface Group {
  readonly owner: OwnerRef;
  readonly enforced: readonly Winner[];
  readonly shadow: readonly Winner[];
  /** What the owner begins with, where it is a slice of another that may just have been split. */
  readonly opening?: readonly MiddleGrant[];
}

export interface Groups {
  /** Owners with an enforced counter: they decide. Shadow counters of the same owner ride along. */
  readonly deciding: readonly Group[];
  /** Owners with shadow counters only: they are asked once the response is on its way. */
  readonly shadowOnly: readonly Group[];
}

export function groupByOwner(enforced: readonly Winner[], shadow: readonly Winner[]): Groups {
  const [only] = enforced;
  if (only !== undefined && enforced.length === 1 && shadow.length === 0)
    return { deciding: [{ owner: only.owner, enforced, shadow }], shadowOnly: [] };
  const groups = new Map<string, { owner: OwnerRef; enforced: Winner[]; shadow: Winner[] }>();
  const groupOf = (owner: OwnerRef) => {
    const known = groups.get(owner.name);
    if (known !== undefined) return known;
    const group = { owner, enforced: [], shadow: [] };
    groups.set(owner.name, group);
    return group;
  };
  for (const winner of enforced) groupOf(winner.owner).enforced.push(winner);
  for (const winner of shadow) groupOf(winner.owner).shadow.push(winner);
  const all = [...groups.values()];
  return {
    deciding: all.filter((group) => group.enforced.length > 0),
    shadowOnly: all.filter((group) => group.enforced.length === 0),
  };
}

/**
 * In which order to ask: all at once, unless one of them is known to be empty. That one is asked first, so that a denied caller does not
 * keep draining, and being given back to, the counters it shares with others.
 */
export function phasesOf(
  groups: readonly Group[],
  isEmpty: (winner: Winner) => boolean,
): readonly (readonly Group[])[] {
  if (groups.length < 2) return [groups];
  const empty = groups.filter((group) => group.enforced.some(isEmpty));
  const others = groups.filter((group) => !empty.includes(group));
  return empty.length === 0 || others.length === 0 ? [groups] : [empty, others];
}

/** Whether all that is enforced can be lent to a slice of the owner, and on. A strict rule has one object, whatever that can carry, and so has a tiny burst. */
export function isSliceable({ enforced }: Group): boolean {
  return enforced.every(
    ({ rule: { consistency, limit } }) =>
      consistency !== 'strict' && limit?.algorithm === 'token_bucket' && isLendable(limit),
  );
}
