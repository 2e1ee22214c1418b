/** A world in which a key is so hot that its owner has been split. */
import { expect } from 'vitest';
import { wholeOf } from '../../src/engine/slices.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { Sent } from './network.ts';
import { SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { type Isolate, World, type WorldOptions } from './world.ts';

/** Low enough that an isolate asks the owner first, and high enough that it knocks when that is late. */
export const hot = (options: Partial<WinnerOptions> = {}) =>
  winner({ quota: 3_200, windowMs: SECOND_MS, owner: 'own/hot', consistency: 'auto', ...options });

export const rule = hot();

/** One object is never enough for it, so isolates knock before they ask. */
export const huge = hot({ quota: 6_400 });

export async function askALot(world: World, asked: Winner, rounds = 5) {
  const isolates = Array.from({ length: 200 }, () => world.isolate());
  for (let round = 0; round < rounds; round += 1) {
    for (const isolate of isolates) void isolate.send([asked]);
    await world.time.advance(200);
  }
  expect(world.calls.some(({ owner }) => wholeOf(owner) === 'own/hot')).toBe(true);
}

/** 200 isolates ask so often that the owner is split. */
export async function splitWorld(asked = rule, options: WorldOptions = {}) {
  const world = new World(options);
  await askALot(world, asked);
  return { world, callsOf: callsIn(world) };
}

/** What an isolate has asked, of whom. */
export function callsIn(world: World) {
  return ({ holder }: Isolate) => world.calls.filter(({ call }) => call.holder === holder);
}

/** `owner`, `slice` or `knock`. */
export const words = (calls: readonly Sent[]) =>
  calls.map(({ owner, call }) => (call.knock !== undefined ? 'knock' : wholeOf(owner) ? 'slice' : 'owner'));
