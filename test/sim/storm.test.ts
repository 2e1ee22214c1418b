/** What a retry storm shows: that coming back all at once hurts, and how much spreading it buys. */
import { describe, expect, test } from 'vitest';
import type { Figures } from '../../scripts/sim/measures.ts';
import type { Row } from '../../scripts/sim/report.ts';
import { rowName, SCENARIOS } from '../../scripts/sim/scenarios.ts';
import { simulate } from '../../scripts/sim/simulation.ts';
import { RETRY_SPREAD_SECONDS } from '../../src/engine/spread.ts';

const STORM = SCENARIOS.find(({ name }) => name === 'retry-storm')!;

const rows: Row[] = [];
for (const each of STORM.cases) {
  const result = await simulate(each, { seed: 1 });
  rows.push({ name: rowName(STORM, each), runs: [{ seed: 1, ...result }] });
}

function across(kind: string, figure: keyof Figures): readonly number[] {
  return rows.filter(({ name }) => name.includes(kind)).map(({ runs }) => runs[0]!.figures[figure]);
}

function falls(values: readonly number[]): boolean {
  return values.every((value, at) => at === 0 || value < values[at - 1]!);
}

describe('of a window', () => {
  test('all at once is more than the owner answers in time; any spread is not', () => {
    const [atOnce, ...spread] = across('window', 'fallbackDecisions');
    expect(atOnce).toBeGreaterThan(100);
    expect(spread).toEqual([0, 0, 0]);
  });

  test('each spread lowers the peak', () => {
    expect(falls(across('window', 'admittedPerSecondMax'))).toBe(true);
  });
});

test('of a bucket each spread lowers the denials of those who come back', () => {
  expect(falls(across('bucket', 'deniedAgain'))).toBe(true);
});

test('the finding names the spread that is in force, and needs all rows for it', () => {
  expect(STORM.finding!(rows).at(-1)).toContain(
    `Finding: spread Retry-After of shared counters upward by ${RETRY_SPREAD_SECONDS} s`,
  );
  expect(STORM.finding!(rows.slice(1))).toEqual([]);
});
