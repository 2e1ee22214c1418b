/** All scenarios by name, in the order of the table. */
import type { Case, Scenario } from './scenario.ts';
import { CALLERS } from './scenarios/callers.ts';
import { HOT } from './scenarios/hot.ts';
import { ILLS } from './scenarios/ills.ts';
import { OWNERS } from './scenarios/owners.ts';
import { PARTITIONS } from './scenarios/partitions.ts';
import { REGIONAL } from './scenarios/regions.ts';
import { STORM } from './scenarios/storm.ts';

export const SCENARIOS: readonly Scenario[] = [
  ...HOT,
  ...CALLERS,
  ...ILLS,
  ...OWNERS,
  ...STORM,
  ...REGIONAL,
  ...PARTITIONS,
];

/** The name of a row: the scenario's, and which case of it. */
export function rowName({ name }: Pick<Scenario, 'name'>, { label }: Case): string {
  return label === '' ? name : `${name} ${label}`;
}

/** The case of a row; throws on a name that is none. */
export function caseOf(row: string): Case {
  for (const scenario of SCENARIOS) {
    const found = scenario.cases.find((each) => rowName(scenario, each) === row);
    if (found !== undefined) return found;
  }
  throw new Error(`There is no row ${row}.`);
}
