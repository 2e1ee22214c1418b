import { expect, test } from 'vitest';
import { Measures } from '../../scripts/sim/measures.ts';

interface Sent {
  readonly group?: string;
  readonly isolate?: number;
  readonly times: number;
  readonly ideal: number;
  readonly admitted: number;
  readonly lost?: number;
}

/** Of `times` requests of one unit the first `ideal` are the ideal's, the first `admitted` are admitted, the last `lost` are lost. */
function measured(...all: readonly Sent[]): Measures {
  const measures = new Measures(0);
  for (const { group = 'all', isolate = 0, times, ideal, admitted, lost = 0 } of all) {
    for (let at = 0; at < times; at += 1) {
      const arrival = { group, isolate, cost: 1, atMs: at, isIdeal: at < ideal };
      measures.arrived(arrival);
      if (at < times - lost) measures.decided(arrival, { isAdmitted: at < admitted, atMs: at + 10 });
    }
  }
  return measures;
}

test('a group that the ideal refuses nothing was refused what it did not get', () => {
  const measures = measured(
    { group: 'inside', times: 100, ideal: 100, admitted: 90, lost: 4 },
    { group: 'outside', times: 100, ideal: 50, admitted: 20 },
  );
  expect(measures.figures(0)).toMatchObject({
    offered: 200,
    ideal: 150,
    admitted: 110,
    inQuotaRefusals: 6,
    lost: 4,
    waitP50: 10,
  });
});

test('the least-served isolate is told by its part of what it was offered; tiny ones do not count', () => {
  const measures = measured(
    { isolate: 0, times: 1_000, ideal: 500, admitted: 600 },
    { isolate: 1, times: 1_000, ideal: 500, admitted: 400 },
    { isolate: 2, times: 10, ideal: 5, admitted: 0 },
  );
  expect(measures.figures(0).leastServed).toBeCloseTo(0.4 / (1_000 / 2_010), 6);
});

test('calls are counted by the second', () => {
  const measures = measured({ times: 10, ideal: 10, admitted: 10 });
  for (const atMs of [0, 500, 999, 1_000, 3_100, 3_200]) measures.called(atMs);
  expect(measures.figures(0)).toMatchObject({
    ownerCalls: 6,
    callsPerThousand: 600,
    callsFirstSecond: 3,
    callsPerSecondMax: 2,
  });
});

test('who comes back is measured apart: denied again, or admitted so long after the first attempt', () => {
  const measures = new Measures(0);
  const arrive = (atMs: number, firstAskedMs?: number) => {
    const arrival = { group: 'all', isolate: 0, cost: 1, atMs, isIdeal: true, firstAskedMs };
    measures.arrived(arrival);
    return arrival;
  };
  measures.decided(arrive(0), { isAdmitted: false, atMs: 400 });
  measures.decided(arrive(1_000, 0), { isAdmitted: false, atMs: 1_010 });
  measures.decided(arrive(2_000, 0), { isAdmitted: true, isFallback: true, atMs: 2_050 });
  measures.decided(arrive(2_100), { isAdmitted: true, atMs: 2_100 });
  expect(measures.figures(0)).toMatchObject({
    deniedAgain: 1,
    untilAdmittedP50: 2_050,
    untilAdmittedP99: 2_050,
    admittedPerSecondMax: 2,
    fallbackDecisions: 1,
    answerMax: 400,
  });
});
