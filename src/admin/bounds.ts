/** What the API computes worst cases for: a caller that is busy in one place, and a limit of regions in all that the file names. */
import type { Topology } from '../engine/bound.ts';
import { regionsOf } from '../policy/place.ts';
import type { Ruleset } from '../policy/ruleset.ts';

const ISOLATES = 4;
const BLIND_ISOLATES = 4;

export function topologyOf(ruleset: Ruleset, cost: number): Topology {
  return {
    isolates: ISOLATES,
    blindIsolates: BLIND_ISOLATES,
    largestCost: Math.max(1, cost, ...ruleset.costs.map((each) => each.cost)),
    regions: regionsOf(ruleset).length,
  };
}
