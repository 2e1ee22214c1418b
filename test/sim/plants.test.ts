/**
 * Every planted fault is found by a scenario that finds nothing without it: or the simulator would not find such a fault in the engine.
 */
import { expect, test } from 'vitest';
import type { Plant } from '../../scripts/sim/plant.ts';
import { PLANTS } from '../../scripts/sim/plants.ts';
import { missedBars } from '../../scripts/sim/report.ts';
import { caseOf } from '../../scripts/sim/scenarios.ts';
import { simulate } from '../../scripts/sim/simulation.ts';

/** For each plant the row of the table that shows it, and how it shows. */
const FOUND_BY: Readonly<Record<string, readonly [row: string, how: RegExp]>> = {
  'grant-not-deducted': ['small-burst 1.5x', /above its bound/],
  'outstanding-not-counted': ['small-burst 1.5x', /above its bound/],
  'give-back-twice': ['many-limits strict', /above its bound/],
  'lease-after-expiry': ['onset newcomers', /above its bound/],
  'hold-ignored': ['small-burst 1.5x', /callsPerThousand/],
  'shadow-decides': ['steady', /inside their quota were refused/],
  'denied-demand': ['noisy-user 0.8x later', /inside their quota were refused/],
  'slow-calls': ['shared 0.9x', /waitP99/],
};

/** A broken promise, or the bars that were missed. */
async function faultsOf(row: string, plant?: Plant): Promise<string> {
  const result = await simulate(caseOf(row), { seed: 1, plant });
  return result.violation ?? missedBars({ name: row, runs: [{ seed: 1, ...result }] }).join('\n');
}

for (const plant of PLANTS) {
  test(plant.name, { timeout: 60_000 }, async () => {
    const [row, how] = FOUND_BY[plant.name]!;
    expect(await faultsOf(row)).not.toMatch(how);
    expect(await faultsOf(row, plant)).toMatch(how);
  });
}
