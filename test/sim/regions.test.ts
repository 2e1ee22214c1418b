/** What a limit that regions share costs a request: nothing that one of its own region would not. */
import { describe, expect, test } from 'vitest';
import { perSecond } from '../../scripts/sim/scenarios/kit.ts';
import { regional, regionLoad, worldwide } from '../../scripts/sim/scenarios/regions.ts';
import { simulate } from '../../scripts/sim/simulation.ts';
import type { Winner } from '../../src/policy/counter.ts';

const OPTIONS = { timeout: 60_000 };
const PHASES = [{ forMs: 10_000, perSecond: 200 }];

async function figuresOf(rule: Winner) {
  const plan = () =>
    worldwide([regionLoad('weur', { enforced: [rule], phases: PHASES })], {
      happenings: [{ atMs: 0, happen: ({ world }) => world.placeRoot('anne', 'oc') }],
    });
  return (await simulate({ plan }, { seed: 1 })).figures;
}

describe('with the root on the other side of the world', () => {
  test('a strict request waits for its region’s owner and no longer', OPTIONS, async () => {
    const shared = await figuresOf(regional({ perSecond: 1_000, consistency: 'strict' }));
    const own = await figuresOf(perSecond({ perSecond: 1_000, consistency: 'strict' }));
    expect(own.waitP99).toBeGreaterThan(0);
    expect(shared.waitP99).toBeLessThanOrEqual(1.2 * own.waitP99);
    expect(shared.inQuotaRefusals).toBe(0);
  });

  test('a leased request waits for nobody', OPTIONS, async () => {
    expect((await figuresOf(regional({ perSecond: 1_000 }))).waitP50).toBe(0);
  });
});
