/**
 * The fixed set that every change of the engine has to pass: each scenario under one seed, a few random worlds, and nothing of it slow.
 */
import { describe, expect, test } from 'vitest';
import { missedBars } from '../../scripts/sim/report.ts';
import { rowName, SCENARIOS } from '../../scripts/sim/scenarios.ts';
import { type Result, simulate } from '../../scripts/sim/simulation.ts';
import { SOAK } from '../../scripts/sim/soak.ts';
import { run } from '../scripts/run.ts';

const OPTIONS = { timeout: 60_000 };

const rows = SCENARIOS.flatMap((scenario) =>
  scenario.cases
    .filter(({ isLong }) => isLong !== true)
    .map((each) => ({ ...each, name: rowName(scenario, each) })),
);

/** Rows whose medians miss a bar as the engine stands. Once one holds, its test fails, and the name has to go from here. */
const BELOW_BAR = new Set(['costs 1.5x']);

describe('nothing breaks, and no bar is missed', () => {
  // A row that is known to break fails its test once it holds.
  for (const { name, plan, isKnownToBreak = false } of rows) {
    const fails = isKnownToBreak || BELOW_BAR.has(name);
    test(name, { ...OPTIONS, fails }, async () => {
      const result = await simulate({ plan }, { seed: 1 });
      expect(result.violation).toBeUndefined();
      expect(missedBars({ name, runs: [{ seed: 1, ...result }] })).toEqual([]);
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

  test('in which something throws has broken a promise', async () => {
    const throws = (): never => {
      throw new Error('planted');
    };
    const plant = { name: 'throws', about: 'the gate throws', make: () => ({ beforeGate: throws }) };
    const { violation } = await simulate(SOAK, { seed: 11, plant });
    expect(violation).toMatch(/^at [\d.]+ ms: something threw: Error: planted/);
  });

  test('that breaks a promise exits 1, with its seed and the command that repeats it', async () => {
    const { code, stderr } = await run('sim.ts', 'steady', '--seed', '3', '--plant', 'shadow-decides');
    expect(code).toBe(1);
    expect(stderr).toMatch(/FAILED steady \(seed 3\)/);
    expect(stderr).toContain('repeat: npm run sim -- steady --seed 3 --plant shadow-decides');
  });

  test('that misses a bar exits 1 as well where bars are asked for, and says how to repeat it', async () => {
    const { code, stderr } = await run('sim.ts', 'shared', '--seed', '2', '--plant', 'slow-calls');
    expect(code).toBe(1);
    expect(stderr).toMatch(/below the bar: shared 0\.9x: waitP99 <= 30/);
    expect(stderr).toContain('repeat: npm run sim -- shared --seed 2 --seeds 1 --plant slow-calls');
  });
});
