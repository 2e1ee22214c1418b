/**
 * What an owner is by its name: the middle owner of a region, or one that may be the root of such.
 */
import { placeOf } from '../policy/place.ts';
import type { OwnerOptions } from './owner.ts';

/** `epoch` is larger than in any earlier life of the owner: the time will do. */
export function roleOf(name: string, epoch: number): Pick<OwnerOptions, 'middle' | 'isMiddle'> {
  const place = placeOf(name);
  if (place !== undefined) return { middle: { name, epoch, rootIdOf: (id) => placeOf(id)?.rest ?? id } };
  return { isMiddle: (other) => placeOf(other)?.rest === name };
}

/** The root of a middle owner; `undefined` for an owner that has none. */
export function rootNameOf(name: string): string | undefined {
  return placeOf(name)?.rest;
}
