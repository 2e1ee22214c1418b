/**
 * A soak run: a small world made at random, with random faults, that must be safe while they last and exact once they have ended.
 *
 * Everything comes from the seed: how many isolates, which rules, who sends what, and what goes wrong.
 */
import type { Winner } from '../../src/policy/counter.ts';
import { REGIONS, type Region } from '../../src/policy/region.ts';
import { randomFaults, randomFaultsWithinReach } from './faults.ts';
import type { Random } from './random.ts';
import { winner } from './rules.ts';
import type { Case, Plan, Stage } from './scenario.ts';
import type { Phase, Stream } from './traffic.ts';

const SAFETY_MS = 6_000;

/** Time for breakers to close and for the largest debt, a quota below empty, to come back, at the load of the recovery. */
const RECOVERY_MS = 8_000;
const LIVENESS_MS = 2_000;

/** Of the limit: little enough that what was owed comes back meanwhile. */
const RECOVERY_LOAD = 0.3;

/** Once all is well, calm callers are refused nothing, and the storm after them gets nothing above the limit. */
const CALM_LOAD = 0.5;
const STORM_LOAD = 3;

/** An owner answers a thousand calls a second: what a storm asks beyond that is decided without it. */
const ANSWERED_QUOTA_MAX = 300;

export const SOAK: Case = { label: '', plan: randomPlan };

function randomPlan(random: Random): Plan {
  const isWithinReach = random.chance(0.3);
  const isolates = 1 + random.below(8);
  const regions = random.chance(0.3) ? REGIONS.slice(0, 1 + random.below(4)) : undefined;
  const rules = Array.from({ length: 1 + random.below(3) }, (_, at) =>
    randomRule(`policy ${at}`, regions !== undefined && random.chance(0.7), random),
  );
  const costs = random.chance(0.3) ? [1, 1, 2, 3] : [1];
  const narrowest = Math.min(...rules.map(({ rule }) => (rule.limit!.quota * 1_000) / rule.limit!.windowMs));
  const mean = costs.reduce((sum, cost) => sum + cost, 0) / costs.length;
  const stream = (group: string, startsMs: number, phases: readonly Phase[]): Stream => ({
    phases: [{ forMs: startsMs, perSecond: 0 }, ...phases],
    request: (chance) => {
      const isolate = chance.below(isolates);
      const region = regions?.[isolate % regions.length];
      return { group, isolate, enforced: rules, cost: chance.oneOf(costs), ...(region && { region }) };
    },
  });
  const phase = (forMs: number, load: number): Phase => ({ forMs, perSecond: (narrowest * load) / mean });
  const liveFromMs = SAFETY_MS + RECOVERY_MS;
  return {
    isolates,
    streams: [
      stream('faults', 0, [
        phase(SAFETY_MS, random.between(0.3, isWithinReach ? 1.5 : 4)),
        phase(RECOVERY_MS, RECOVERY_LOAD),
      ]),
      stream('calm', liveFromMs, [phase(LIVENESS_MS, CALM_LOAD)]),
      stream('storm', liveFromMs + LIVENESS_MS, [phase(LIVENESS_MS, STORM_LOAD)]),
    ],
    faults: isWithinReach ? randomFaultsWithinReach(random) : randomFaults(random),
    ...(regions && !isWithinReach && randomCuts(regions, random)),
    regions: regions?.length ?? 1,
    heal: { atMs: SAFETY_MS, liveFromMs },
    largestCost: Math.max(...costs),
    isDegraded: !isWithinReach,
    inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
  };
}

/** Now and then one region is cut off from the others for a while, at most until the faults are over. */
function randomCuts(regions: readonly Region[], random: Random): Pick<Plan, 'happenings' | 'isPartitioned'> {
  const happenings = Array.from({ length: random.below(4) }, () => {
    const region = random.oneOf(regions);
    const atMs = random.between(0, SAFETY_MS);
    return [
      { atMs, happen: ({ world }: Stage) => world.cut(region) },
      { atMs: random.between(atMs, SAFETY_MS), happen: ({ world }: Stage) => world.mend(region) },
    ];
  });
  return { happenings: happenings.flat(), isPartitioned: true };
}

function randomRule(policy: string, isRegional: boolean, random: Random): Winner {
  // What regions share has to be worth sharing: a few units each are not even what chance asks for.
  const quota = isRegional ? 100 + random.below(400) : 20 + random.below(ANSWERED_QUOTA_MAX - 20);
  const bursts = isRegional ? random.between(1, 2) : random.between(0.3, 2);
  return winner({
    policy,
    owner: random.oneOf(['anne', 'bert']),
    quota,
    windowMs: 1_000,
    algorithm: !isRegional && random.chance(0.2) ? 'fixed_window' : 'token_bucket',
    ...(isRegional && { scope: 'regional', startCredit: random.between(0.05, 0.5) }),
    burst: Math.ceil(quota * bursts),
    consistency: random.oneOf(['strict', 'auto', 'auto', 'leased']),
    failureMode: random.chance(0.2) ? 'closed' : 'open',
  });
}
