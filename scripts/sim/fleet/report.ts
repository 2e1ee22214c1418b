/** Fleets as a table for people: what each came to, beside a call for every request, and what of it was simulated. */
import { DENIED_AT_PEAK, deniedAtOne, type FleetRow } from '../scenarios/fleet.ts';
import { dollarsPerMillion, type Estimate } from './estimate.ts';

/** What an object answers, at most. */
const OBJECT_CALLS_PER_SECOND = 1_000;

const HEADER = [
  'fleet',
  'requests/s',
  'denied',
  'calls/s',
  'naive',
  'hottest object',
  'naive',
  'rows/s',
  'at rest',
  '$/million',
  'naive',
  'wait p50 ms',
  'p99 ms',
];

export function renderFleet(rows: readonly FleetRow[]): string {
  const lines = [HEADER, ...rows.map(cellsOf)];
  const widths = HEADER.map((_, at) => Math.max(...lines.map((line) => line[at]!.length)));
  const table = lines.map((line) =>
    line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!))).join('  '),
  );
  const rule = widths.map((width) => '-'.repeat(width)).join('  ');
  return [table[0], rule, ...table.slice(1), '', ...rows.flatMap(sentencesOf), '', ...LEGEND].join('\n');
}

const LEGEND = [
  'naive: one call for each request and none beside; same storage. An object answers about 1,000 calls a second.',
  'hottest object: calls a second of the one that is asked most. Dollars: calls, rows and object time, without the Worker request.',
  'Waits are those of admitted requests: in these worlds a call takes 17 to 25 ms, and 20 more where its object has to start.',
];

/** What of a fleet was simulated, and what was not. */
export function sentencesOf({ sizing, estimate }: FleetRow): readonly string[] {
  const { demand } = sizing.fleet;
  const { oneByOne, sampled, byFormula } = estimate.thinned;
  const { deniedCold, deniedWithin } = estimate;
  return [
    `fleet ${sizing.label}: ${sizing.about}. ${told(sizing.limitPerSecond)} a second a key, at which Zipf's law with ` +
      `exponent ${demand.exponent.toFixed(2)} has ${percent(DENIED_AT_PEAK)} denied at peak; with exponent 1 it would be ` +
      `${percent(deniedAtOne(sizing))}.`,
    `  thinned: of ${told(demand.keys)} keys the hottest ${told(oneByOne)} simulated one by one, ${told(sampled.keys)} more in ` +
      `${sampled.strata} strata for ${told(sampled.standFor)}; the ${told(byFormula.keys)} rarest ` +
      `(${percent(byFormula.share)} of the requests) by formula.`,
    `  well within their limits: ${told(deniedWithin)} a second denied, and ${told(deniedCold)} in all in the first ten seconds of ` +
      'keys that begin in all their isolates at once.',
  ];
}

function cellsOf({ sizing, estimate }: FleetRow): readonly string[] {
  const { requests, denied, calls, rows, bytesAtRest, hottest, naive, waitP50, waitP99 } = estimate;
  const naiveHottest = `${told(naive.hottest)}${naive.hottest > OBJECT_CALLS_PER_SECOND ? ' (!)' : ''}`;
  return [
    sizing.label,
    told(sizing.fleet.demand.requestsPerSecond),
    percent(denied / requests),
    told(calls),
    told(naive.calls),
    told(hottest.calls),
    naiveHottest,
    told(rows),
    bytes(bytesAtRest),
    dollarsPerMillion(estimate).toFixed(2),
    naiveDollars(estimate).toFixed(2),
    waitP50.toFixed(1),
    waitP99.toFixed(1),
  ];
}

export function naiveDollars({ requests, naive, rows }: Estimate): number {
  return dollarsPerMillion({ requests, rows, ...naive });
}

/** Three digits: that is what an estimate is good for. */
function told(value: number): string {
  const rounded = value >= 1_000 ? Number(value.toPrecision(3)) : Math.round(value);
  return rounded.toLocaleString('en-US');
}

function percent(part: number): string {
  return `${(part * 100).toFixed(1)}%`;
}

function bytes(count: number): string {
  return count >= 1e9
    ? `${(count / 1e9).toFixed(1)} GB`
    : count >= 1e6
      ? `${(count / 1e6).toFixed(1)} MB`
      : `${Math.round(count / 1e3)} kB`;
}
