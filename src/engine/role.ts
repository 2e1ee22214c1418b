/**
 * What an owner is by its name: the middle owner of a region, a slice of a hot key's owner, or one that may be the root of such.
 */
import { placeOf } from '../policy/place.ts';
import type { OwnerOptions } from './owner.ts';
import { isSplittable, slicesOf, wholeOf } from './slices.ts';

/** `epoch` is larger than in any earlier life of the owner: the time will do. */
export function roleOf(name: string, epoch: number): Pick<OwnerOptions, 'middle' | 'root'> {
  if (wholeOf(name) !== undefined) return { middle: { name, epoch, rootIdOf: (id) => id, startCredit: 0 } };
  if (placeOf(name) === undefined)
    return {
      root: {
        isMiddle: (other) => rootNameOf(other) === name,
        ...(isSplittable(name) && { slices: (count: number) => slicesOf(name, count) }),
      },
    };
  return { middle: { name, epoch, rootIdOf: (id) => placeOf(id)?.rest ?? id, startCredit: START_CREDIT } };
}

/** What a region admits on credit, where its rule does not say. */
const START_CREDIT = 0.25;

/** The root of a middle owner; `undefined` for an owner that has none. */
export function rootNameOf(name: string): string | undefined {
  return wholeOf(name) ?? placeOf(name)?.rest;
}
