/**
 * One limit for callers all over the world: each region decides by what the root has lent it, a long way off.
 *
 * Runs last half a minute where more is asked for than there is, since what a cold start loses it loses once.
 */
import type { Winner } from '../../../src/policy/counter.ts';
import { REGIONS, type Region } from '../../../src/policy/region.ts';
import type { Case, Plan, Scenario, Stage } from '../scenario.ts';
import type { Heard, Phase, Stream } from '../traffic.ts';
import { type PerSecond, perSecond } from './kit.ts';
import { rootAt } from './region-kit.ts';

const ISOLATES_PER_REGION = 4;
const LIMIT = 1_000;
const LONG_MS = 30_000;

export function regional(rule: Partial<PerSecond> = {}): Winner {
  return perSecond({ perSecond: LIMIT, ...rule, scope: 'regional' });
}

interface RegionLoad {
  readonly enforced: readonly Winner[];
  readonly phases: readonly Phase[];
  readonly group?: string;
  readonly heard?: (heard: Heard, stage: Stage) => void;
}

/** What is asked for in one region, over its isolates alike. */
export function regionLoad(region: Region, { enforced, phases, group = 'all', heard }: RegionLoad): Stream {
  const first = REGIONS.indexOf(region) * ISOLATES_PER_REGION;
  return {
    phases,
    request: (random) => ({
      group,
      region,
      isolate: first + random.below(ISOLATES_PER_REGION),
      enforced,
      ...(heard && { heard }),
    }),
  };
}

export function worldwide(streams: readonly Stream[], options: Partial<Plan> = {}): Plan {
  const isolates = REGIONS.length * ISOLATES_PER_REGION;
  return {
    isolates,
    regions: REGIONS.length,
    streams,
    inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
    ...options,
  };
}

/** All regions ask alike. */
export const EVEN = REGIONS.map(() => 1);

/** The k-th region asks for 1/k of what the first asks for. */
const ZIPF = REGIONS.map((_, at) => 1 / (at + 1));

export function everywhere(
  enforced: readonly Winner[],
  phasesFor: (part: number, region: Region) => readonly Phase[],
  weights: readonly number[] = ZIPF,
): readonly Stream[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return REGIONS.map((region, at) =>
    regionLoad(region, { enforced, phases: phasesFor(weights[at]! / sum, region) }),
  );
}

const oneRegion: Scenario = {
  name: 'one-region',
  about: 'a caller in one region, the root in the same or on the other side of the world',
  cases: [
    ...[0.5, 0.9].map((times) => loneCase({ label: `${times}x`, times })),
    loneCase({ label: 'far 0.9x', times: 0.9, root: 'oc' }),
    loneCase({ label: 'far 2x', times: 2, root: 'oc' }),
  ],
};

interface Lone {
  readonly label: string;
  readonly times: number;
  readonly root?: Region;
}

function loneCase({ label, times, root = 'weur' }: Lone): Case {
  const phases = [{ forMs: LONG_MS, perSecond: LIMIT * times }];
  return {
    label,
    plan: () =>
      worldwide([regionLoad('weur', { enforced: [regional()], phases })], { happenings: [rootAt(root)] }),
  };
}

const nineRegions: Scenario = {
  name: 'nine-regions',
  about: 'a limit of 1,000 a second asked for in nine regions, in the k-th 1/k of what the first asks for',
  cases: [0.9, 2, 5].map((times) => ({
    label: `${times}x`,
    plan: () =>
      worldwide(everywhere([regional()], (part) => [{ forMs: LONG_MS, perSecond: LIMIT * times * part }])),
  })),
};

/** One region after the other wakes, and sleeps again when the next but one is awake. */
const followTheSun: Scenario = {
  name: 'follow-the-sun',
  about: 'the demand goes around the world, in three minutes and not in a day',
  cases: [0.9, 2].map((times) => ({
    label: `${times}x`,
    plan: () =>
      worldwide(
        everywhere([regional({ perSecond: SUN_LIMIT })], (_, region) => daylight(region, SUN_LIMIT * times)),
      ),
  })),
};

const SUN_LIMIT = 300;
const HOUR_OF_SUN_MS = 2_000;
const DAY_OF_SUN = 90;

/** Above the horizon for four ninths of the day, and highest in the middle of it. */
function daylight(region: Region, mean: number): readonly Phase[] {
  const dawn = (REGIONS.indexOf(region) * DAY_OF_SUN) / REGIONS.length;
  const heights = (hour: number) => Math.max(0, Math.cos(((hour - dawn) / DAY_OF_SUN) * 2 * Math.PI) - 0.17);
  return Array.from({ length: DAY_OF_SUN }, (_, hour) => {
    const total = REGIONS.reduce(
      (sum, _region, at) => sum + heights(hour - (at * DAY_OF_SUN) / REGIONS.length + dawn),
      0,
    );
    return { forMs: HOUR_OF_SUN_MS, perSecond: (mean * heights(hour)) / total };
  });
}

const SPIKE_MS = 15_000;
const SPIKES: readonly Region[] = ['weur', 'enam', 'apac', 'sam'];

/** By when a region that has just begun must be refused nothing. */
const FULL_USE_MS = 2_000;

const spikeMoves: Scenario = {
  name: 'spike-moves',
  about: 'all the demand, 0.9 of the limit, is in another region from one moment to the next, every 15 s',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [regional()];
        const spike = (region: Region, at: number) =>
          regionLoad(region, {
            enforced,
            phases: [
              { forMs: SPIKE_MS * at, perSecond: 0 },
              { forMs: SPIKE_MS, perSecond: LIMIT * 0.9 },
            ],
            heard: ({ verdict, askedMs }, stage) => {
              const sinceMs = askedMs - SPIKE_MS * at;
              if (verdict.outcome === 'denied' && sinceMs > FULL_USE_MS)
                stage.breach(
                  `${region} was refused ${Math.round(sinceMs)} ms after the demand had come there`,
                );
            },
          });
        return worldwide(SPIKES.map(spike));
      },
    },
  ],
};

export const REGIONAL: readonly Scenario[] = [oneRegion, nineRegions, followTheSun, spikeMoves];
