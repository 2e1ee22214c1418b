/** Machines that die, forget, drown, and clocks that jump. */
import type { Happening, Scenario } from '../scenario.ts';
import { load, perSecond } from './kit.ts';

const HOUR_MS = 3_600_000;

const isolateDeath: Scenario = {
  name: 'isolate-death',
  about: 'three of ten isolates vanish with what they hold, at 0.8 of the limit',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [perSecond({ perSecond: 2_000 })];
        const phases = [{ forMs: 8_000, perSecond: 1_600 }];
        return {
          isolates: 10,
          streams: [load({ enforced }, { isolates: 10, phases })],
          happenings: [2_000, 2_700, 3_400].map((atMs, slot) => ({
            atMs,
            happen: ({ world }) => world.killIsolate(slot),
          })),
          heal: { atMs: 3_500, liveFromMs: 5_000 },
        };
      },
    },
  ],
};

const ownerEviction: Scenario = {
  name: 'owner-eviction',
  about: 'the owner forgets what it has not written, twice, under three times the limit',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [perSecond({ perSecond: 1_000, burst: 10_000 })];
        const phases = [
          { forMs: 10_000, perSecond: 3_000 },
          { forMs: 14_000, perSecond: 300 },
        ];
        return {
          isolates: 10,
          streams: [load({ enforced }, { isolates: 10, phases })],
          happenings: [6_500, 8_200].map((atMs) => ({
            atMs,
            happen: ({ world }) => world.owner('anne').evict(),
          })),
          heal: { atMs: 10_000, liveFromMs: 22_000 },
        };
      },
    },
  ],
};

/** It never leases, so the owner really is asked for each request. */
const ownerOverload: Scenario = {
  name: 'owner-overload',
  about: 'a strict rule of 5,000 a second at 3,000, of which its owner can answer 1,000',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [perSecond({ perSecond: 5_000, consistency: 'strict' })];
        const phases = [
          { forMs: 6_000, perSecond: 3_000 },
          { forMs: 8_000, perSecond: 300 },
        ];
        return {
          isolates: 20,
          isDegraded: true,
          inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
          streams: [load({ enforced }, { isolates: 20, phases })],
          faults: { queueMs: 500 },
          heal: { atMs: 6_000, liveFromMs: 12_000 },
        };
      },
    },
  ],
};

const stepClock: Scenario = {
  name: 'step-clock',
  about: 'clocks of the owner and of isolates jump an hour, both ways, under twice the limit',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [perSecond({ perSecond: 1_000 })];
        const phases = [
          { forMs: 6_000, perSecond: 2_000 },
          { forMs: 5_000, perSecond: 300 },
        ];
        const steps = [HOUR_MS, -HOUR_MS, -HOUR_MS, HOUR_MS];
        const happenings = steps.flatMap((ms, at): Happening[] => [
          { atMs: 1_500 + 1_000 * at, happen: ({ world }) => world.owner('anne').clock.step(ms) },
          { atMs: 2_000 + 1_000 * at, happen: ({ world }) => world.isolates[at]!.clock.step(ms) },
        ]);
        return {
          isolates: 10,
          streams: [load({ enforced }, { isolates: 10, phases })],
          happenings,
          heal: { atMs: 6_000, liveFromMs: 9_000 },
        };
      },
    },
  ],
};

export const ILLS: readonly Scenario[] = [isolateDeath, ownerEviction, ownerOverload, stepClock];
