/**
 * The fixed set that every change of the engine has to pass: each scenario under one seed, a few random worlds, and nothing of it slow.
 */
import { describe, expect, test } from 'vitest';
import { rowName, SCENARIOS } from '../../scripts/sim/scenarios.ts';
import { type Result, simulate } from '../../scripts/sim/simulation.ts';
import { SOAK } from '../../scripts/sim/soak.ts';

const OPTIONS = { timeout: 60_000 };

const rows = SCENARIOS.flatMap((scenario) =>
  scenario.cases
    .filter(({ isLong }) => isLong !== true)
    .map((each) => ({ name: rowName(scenario, each), plan: each.plan })),
);

/** Rows that break a promise as the engine stands. Once one holds, its test fails, and the name has to go from here. */
const BROKEN = new Set(['noisy-user 0.9x small-burst']);

describe('nothing breaks', () => {
  for (const { name, plan } of rows) {
    test(name, { ...OPTIONS, fails: BROKEN.has(name) }, async () => {
      const { violation } = await simulate({ plan }, { seed: 1 });
      expect(violation).toBeUndefined();
    });
  }

  test('in worlds made at random', OPTIONS, async () => {
    const found: Record<number, string> = {};
    for (let seed = 1; seed <= 40; seed += 1) {
      const { violation } = await simulate(SOAK, { seed });
      if (violation !== undefined) found[seed] = violation;
    }
    expect(found).toEqual({});
  });
});

describe('a run', () => {
  test('is repeated by its seed, to the last figure', async () => {
    const run = (seed: number): Promise<Result> => simulate(SOAK, { seed });
    const [first, again, other] = [await run(11), await run(11), await run(12)];
    expect(again).toEqual(first);
    expect(other.figures).not.toEqual(first.figures);
  });
});
