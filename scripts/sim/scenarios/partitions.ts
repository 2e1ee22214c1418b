/** Regions that start all at once, that are cut off from their root, or hear of it late. */
import { boundOf } from '../../../src/engine/bound.ts';
import { REGIONS } from '../../../src/policy/region.ts';
import { HOUR_MS } from '../rules.ts';
import type { Case, Scenario } from '../scenario.ts';
import type { Heard } from '../traffic.ts';
import { ALONE, ANSWERED_WITHIN_MS, cut, mend, remarkOn, rootAt } from './region-kit.ts';
import { EVEN, everywhere, regional, regionLoad, worldwide } from './regions.ts';
import { ROOT_DEATH } from './root-death.ts';

const LIMIT = 1_000;

/** Two words between regions and root: one that says what was owed, and one that is granted as if nothing had been. */
const RECONCILED_MS = 2 * (1_000 + 150);

const allStartAtOnce: Scenario = {
  name: 'all-start-at-once',
  about:
    'nine regions that begin in the same moment, at five times the limit; and eight when one has used it up',
  cases: [
    {
      label: '5x',
      plan: () =>
        worldwide(everywhere([regional()], (part) => [{ forMs: 10_000, perSecond: 5_000 * part }], EVEN)),
    },
    usedUpCase(),
  ],
};

/** An hour's quota, of which next to nothing comes back meanwhile: what is admitted beyond it is credit and nothing else. */
function usedUpCase(): Case {
  return {
    label: 'used up',
    plan: () => {
      const rule = regional({ perSecond: LIMIT, windowMs: HOUR_MS });
      const { coldStartUnits } = boundOf(rule.rule, { ...ALONE, regions: REGIONS.length })!.regional!;
      const tally = { admitted: 0 };
      const heard = ({ verdict }: Heard) => {
        if (verdict.outcome === 'allowed') tally.admitted += 1;
      };
      const [first, ...others] = REGIONS.map((region, at) =>
        regionLoad(region, {
          enforced: [rule],
          heard,
          phases: [
            { forMs: at === 0 ? 0 : 10_000, perSecond: 0 },
            { forMs: 10_000, perSecond: 500 },
          ],
        }),
      );
      return worldwide([first!, ...others], {
        happenings: [
          {
            atMs: 20_000,
            happen: (stage) => remarkOn(stage, 'credit', tally.admitted - LIMIT, coldStartUnits),
          },
        ],
      });
    },
  };
}

const CUT = { fromMs: 6_000, toMs: 26_000 };

const partitionMinority: Scenario = {
  name: 'partition-minority',
  about:
    'regions that are cut off for 20 s go on with what they have, and then by the share that they were told',
  cases: [
    {
      label: 'one of nine',
      plan: () =>
        worldwide(
          everywhere([regional()], (part) => [{ forMs: 30_000, perSecond: 2 * LIMIT * part }], EVEN),
          {
            isPartitioned: true,
            happenings: [rootAt('weur'), cut(CUT.fromMs, 'afr'), mend(CUT.toMs, 'afr')],
            answeredWithinMs: ANSWERED_WITHIN_MS,
          },
        ),
    },
    worstCase(),
  ],
};

/** The region with all the demand is cut off, and then everybody else begins: one of them with the root, all others without. */
function worstCase(): Case {
  return {
    label: 'at worst',
    plan: () => {
      const rule = regional();
      const { partition } = boundOf(rule.rule, { ...ALONE, regions: REGIONS.length })!.regional!;
      const tally = { admitted: 0 };
      const beganMs = 10_000;
      const endMs = 70_000;
      const heard = ({ verdict, askedMs }: Heard) => {
        if (verdict.outcome === 'allowed' && askedMs >= beganMs) tally.admitted += 1;
      };
      const streams = REGIONS.map((region, at) =>
        regionLoad(region, {
          enforced: [rule],
          heard,
          phases:
            at === 0
              ? [
                  { forMs: 4_000, perSecond: 0.9 * LIMIT },
                  { forMs: endMs - 4_000, perSecond: 1.5 * LIMIT },
                ]
              : [
                  { forMs: beganMs, perSecond: 0 },
                  { forMs: endMs - beganMs, perSecond: at === 1 ? 1.5 * LIMIT : 0.5 * LIMIT },
                ],
        }),
      );
      const away = REGIONS.filter((region) => region !== REGIONS[1]);
      return worldwide(streams, {
        isPartitioned: true,
        happenings: [
          rootAt(REGIONS[1]),
          cut(4_000, ...away),
          {
            atMs: endMs,
            happen: (stage) => {
              const seconds = (endMs - beganMs) / 1_000;
              const limit = LIMIT * (seconds + 1);
              const allowed = partition.burstUnits + partition.unitsPerSecond * seconds;
              remarkOn(stage, 'cut off', tally.admitted - limit, allowed - limit);
            },
          },
        ],
        answeredWithinMs: ANSWERED_WITHIN_MS,
      });
    },
  };
}

const partitionHeal: Scenario = {
  name: 'partition-heal',
  about:
    'nine regions at 0.6 of the limit, three of them cut off for 20 s: two words after that all is as before',
  cases: [0.6].map((times) => ({
    label: '',
    plan: () =>
      worldwide(
        everywhere([regional()], (part) => [{ forMs: 40_000, perSecond: times * LIMIT * part }], EVEN).map(
          (stream) => ({ ...stream, request: refusedNever(stream.request, CUT.toMs + RECONCILED_MS) }),
        ),
        {
          isPartitioned: true,
          happenings: [rootAt('weur'), cut(CUT.fromMs, 'afr', 'me', 'oc'), mend(CUT.toMs, 'afr', 'me', 'oc')],
          answeredWithinMs: ANSWERED_WITHIN_MS,
        },
      ),
  })),
};

type Request = ReturnType<typeof regionLoad>['request'];

/** From then on nobody may be refused. */
function refusedNever(request: Request, fromMs: number): Request {
  return (random) => ({
    ...request(random),
    heard: ({ verdict, askedMs }, stage) => {
      if (verdict.outcome === 'denied' && askedMs >= fromMs)
        stage.breach(`refused at ${Math.round(askedMs)} ms`);
    },
  });
}

const syncLag: Scenario = {
  name: 'sync-lag',
  about:
    'what it costs when a word takes longer between regions: demand in nine regions, 1.5 times the limit',
  cases: [65, 250, 750].map((regionMs) => ({
    label: `${2 * regionMs + 20} ms`,
    plan: () =>
      worldwide(
        everywhere([regional()], (part) => [{ forMs: 30_000, perSecond: 1.5 * LIMIT * part }]),
        {
          faults: { regionMs },
          isPartitioned: regionMs > 400,
        },
      ),
  })),
};

export const PARTITIONS: readonly Scenario[] = [
  allStartAtOnce,
  partitionMinority,
  partitionHeal,
  ROOT_DEATH,
  syncLag,
];
