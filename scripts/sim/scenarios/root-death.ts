/** A root that forgets, or a region's owner, at worst; and a root that never answers. */
import { boundOf } from '../../../src/engine/bound.ts';
import { LEASE_MS } from '../../../src/engine/middle-terms.ts';
import { HOUR_MS } from '../rules.ts';
import type { Case, Scenario, Stage } from '../scenario.ts';
import type { Heard, Stream } from '../traffic.ts';
import { ALONE, ANSWERED_WITHIN_MS, cut, FAR, ROOT, remarkOn, rootAt } from './region-kit.ts';
import { EVEN, everywhere, regional, regionLoad, worldwide } from './regions.ts';

const LIMIT = 1_000;

export const ROOT_DEATH: Scenario = {
  name: 'root-death',
  about: 'a root that loses its memory every four seconds; and one that never answers anybody',
  cases: [
    {
      label: 'forgets',
      plan: () =>
        worldwide(
          everywhere([regional()], (part) => [{ forMs: 30_000, perSecond: 0.9 * LIMIT * part }], EVEN),
          {
            happenings: Array.from({ length: 6 }, (_, at) => ({
              atMs: 4_000 * (at + 1),
              happen: ({ world }: Stage) => world.owner(ROOT).evict(),
            })),
            answeredWithinMs: ANSWERED_WITHIN_MS,
          },
        ),
    },
    forgottenCase(),
    regionForgetsCase(),
    {
      label: 'silent',
      plan: () =>
        worldwide(
          [regionLoad('weur', { enforced: [regional()], phases: [{ forMs: 20_000, perSecond: LIMIT / 2 }] })],
          {
            isPartitioned: true,
            happenings: [rootAt(FAR), cut(0, FAR)],
            answeredWithinMs: ANSWERED_WITHIN_MS,
          },
        ),
    },
  ],
};

/**
 * The root forgets what it has lent to a region that is cut off in the same moment, and lends it all to another. That is at worst just before
 * it would have written down what it lent to a region that has just begun.
 */
function forgottenCase(): Case {
  return {
    label: 'at worst',
    plan: () => {
      const rule = regional();
      const { rootCrashUnits } = boundOf(rule.rule, { ...ALONE, regions: 2 })!.regional!;
      const tally = { admitted: 0 };
      const beganMs = 5_000;
      const forgotMs = beganMs + 1_000;
      const heard = ({ verdict, askedMs }: Heard) => {
        if (verdict.outcome === 'allowed' && askedMs >= forgotMs && askedMs < forgotMs + LEASE_MS)
          tally.admitted += 1;
      };
      const after = { forMs: LEASE_MS, perSecond: 2 * LIMIT };
      const streams = [
        regionLoad('weur', {
          enforced: [rule],
          heard,
          phases: [
            { forMs: beganMs, perSecond: 0 },
            { forMs: 200, perSecond: 20 },
            { forMs: forgotMs - beganMs - 200, perSecond: LIMIT / 2 },
            after,
          ],
        }),
        regionLoad('enam', { enforced: [rule], heard, phases: [{ forMs: forgotMs, perSecond: 0 }, after] }),
      ];
      return worldwide(streams, {
        isPartitioned: true,
        happenings: [
          rootAt('enam'),
          cut(forgotMs, 'weur'),
          { atMs: forgotMs, happen: ({ world }) => world.owner(ROOT).evict() },
          {
            atMs: forgotMs + LEASE_MS + 500,
            happen: (stage) => {
              const limit = LIMIT + (LIMIT * LEASE_MS) / 1_000;
              remarkOn(stage, 'forgotten', tally.admitted - limit, rootCrashUnits);
            },
          },
        ],
      });
    },
  };
}

/** Dear enough for an object to charge so much between two writes. */
const COST = 10;

/** A region's owner forgets what it has charged since it last wrote, which is nearly all of an hour's quota. */
function regionForgetsCase(): Case {
  return {
    label: 'in a region',
    plan: () => {
      const rule = regional({ perSecond: LIMIT, windowMs: HOUR_MS });
      const { regionCrashUnits } = boundOf(rule.rule, { ...ALONE, largestCost: COST, regions: 1 })!.regional!;
      const tally = { admitted: 0 };
      const heard = ({ verdict }: Heard) => {
        if (verdict.outcome === 'allowed') tally.admitted += COST;
      };
      const phases = [
        { forMs: 3_150, perSecond: 2 },
        { forMs: 2_000, perSecond: 500 },
      ];
      const dear = (stream: Stream): Stream => ({
        ...stream,
        request: (random) => ({ ...stream.request(random), cost: COST }),
      });
      return worldwide([dear(regionLoad('weur', { enforced: [rule], heard, phases }))], {
        largestCost: COST,
        happenings: [
          { atMs: 3_400, happen: ({ world }) => world.owner(`region/weur/${ROOT}`).evict() },
          {
            atMs: 5_500,
            happen: (stage) =>
              remarkOn(stage, 'forgotten in a region', tally.admitted - LIMIT, regionCrashUnits),
          },
        ],
      });
    },
  };
}
