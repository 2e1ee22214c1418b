/** What happens to regions and their roots, and what is said of a bound. */
import type { Region } from '../../../src/policy/region.ts';
import type { Happening, Stage } from '../scenario.ts';

/** The owner of the counter, as `rules` names it when nobody says. */
export const ROOT = 'anne';

/** Where nobody asks, so that every region is far from the root. */
export const FAR: Region = 'oc';

/** Nobody waits for a root: what a region's own owner needs to answer, and the deadline where it does not. */
export const ANSWERED_WITHIN_MS = 200;

export const cut = (atMs: number, ...regions: readonly Region[]): Happening => ({
  atMs,
  happen: ({ world }) => {
    for (const region of regions) world.cut(region);
  },
});
export const mend = (atMs: number, ...regions: readonly Region[]): Happening => ({
  atMs,
  happen: ({ world }) => {
    for (const region of regions) world.mend(region);
  },
});
export const rootAt = (region: Region): Happening => ({
  atMs: 0,
  happen: ({ world }) => world.placeRoot(ROOT, region),
});

/** A bound is worth its name when something reaches this part of it. */
const NOT_EMPTY = 0.8;

export const ALONE = { isolates: 1, blindIsolates: 0, largestCost: 1 };

export function remarkOn(stage: Stage, what: string, measured: number, computed: number): void {
  const [is, may] = [Math.round(measured), Math.round(computed)];
  if (is < NOT_EMPTY * may)
    stage.breach(`${what}: ${is} units of ${may} are so few that the bound says little`);
  stage.remark(
    `${what}: ${is} units above the limit, where boundOf computes ${may} (${(is / may).toFixed(2)} of it)`,
  );
}
