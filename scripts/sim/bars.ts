/**
 * The bars: what the medians over the seeds must reach, all in one place. `npm run sim -- --check` fails when one is missed.
 *
 * What must never happen at all (a unit too much, a caller inside its quota refused while all is well) is no bar: it fails the run.
 */
import type { Figures } from './measures.ts';

export type Bar = {
  /** One row of the table. */
  readonly row: string;
  readonly figure: keyof Figures & string;
  readonly why: string;
} & ({ readonly atLeast: number } | { readonly atMost: number });

const OVERLOADED = [
  'hot-key 2x',
  'skew 1.5x',
  'skew 5x',
  'onset',
  'onset newcomers',
  'costs 1.5x',
  'pause-flood',
  'many-limits 1.5x',
  'shared 2x',
  'shared small-burst 2x',
];

export const BARS: readonly Bar[] = [
  ...OVERLOADED.flatMap((row): Bar[] => [
    {
      row,
      figure: 'ofIdeal',
      atLeast: 0.99,
      why: 'leases waste next to nothing of a limit that is in demand',
    },
    { row, figure: 'leastServed', atLeast: 0.5, why: 'what is scarce is shared by demand' },
  ]),
  { row: 'small-burst 1.5x', figure: 'ofIdeal', atLeast: 0.97, why: 'a small burst still gives its rate' },
  {
    row: 'small-burst 1.5x',
    figure: 'callsPerThousand',
    atMost: 70,
    why: 'whoever was told that there is no more does not ask before its time',
  },
  { row: 'flood', figure: 'callsPerThousand', atMost: 30, why: 'a flood is denied from memory' },
  { row: 'skew 0.9x', figure: 'callsPerThousand', atMost: 40, why: 'a hot key costs its owner few calls' },
  { row: 'skew 5x', figure: 'callsPerThousand', atMost: 10, why: 'overload costs its owner even fewer' },
  {
    row: 'onset slow start',
    figure: 'ofIdeal',
    atLeast: 0.95,
    why: 'a lease that comes too late is given back',
  },
  { row: 'onset', figure: 'callsFirstSecond', atMost: 3_000, why: 'a cold key does not drown its owner' },
  { row: 'onset', figure: 'callsPerSecondMax', atMost: 500, why: 'and settles within a second' },
  { row: 'hot-key 0.8x', figure: 'callsPerThousand', atMost: 20, why: 'a leased request makes no call' },
  { row: 'brownout', figure: 'fallbackDecisions', atMost: 0, why: 'leases outlast a slow owner' },
  { row: 'brownout', figure: 'inQuotaRefusals', atMost: 0, why: 'and nobody notices' },
  {
    row: 'brownout strict',
    figure: 'inQuotaRefusals',
    atMost: 0,
    why: 'a slow owner is done without, up to the limit',
  },
  {
    row: 'failover',
    figure: 'answerMax',
    atMost: 160,
    why: 'of an owner that is away nobody waits longer than the deadline',
  },
  {
    row: 'shared 0.9x',
    figure: 'waitP99',
    atMost: 30,
    why: 'a request that asks waits for a round trip and no more',
  },
  ...['window', 'bucket'].map(
    (kind): Bar => ({
      row: `retry-storm ${kind} +2s`,
      figure: 'fallbackDecisions',
      atMost: 0,
      why: 'two seconds of spread keep all who come back from drowning their owner',
    }),
  ),
  { row: 'hot-key 2x', figure: 'callsPerThousand', atMost: 20, why: 'nor does one that is denied' },
  ...['0.5x', '0.9x', 'far 0.9x'].flatMap((load): Bar[] => [
    { row: `one-region ${load}`, figure: 'ofIdeal', atLeast: 0.999, why: 'one region soon holds nearly all' },
    { row: `one-region ${load}`, figure: 'inQuotaRefusals', atMost: 0, why: 'and refuses nothing meanwhile' },
    { row: `one-region ${load}`, figure: 'rootCallsPerSecond', atMost: 2, why: 'for next to no calls' },
  ]),
  { row: 'nine-regions 2x', figure: 'ofIdeal', atLeast: 0.985, why: 'nine regions waste next to nothing' },
  { row: 'nine-regions 2x', figure: 'ofIdeal', atMost: 1, why: 'and get no more than there is' },
  ...['2x', '5x'].map(
    (load): Bar => ({
      row: `nine-regions ${load}`,
      figure: 'leastServed',
      atLeast: 0.5,
      why: 'the smallest region has its part too',
    }),
  ),
  { row: 'spike-moves', figure: 'ofIdeal', atLeast: 0.95, why: 'rate and room follow the demand' },
  ...['split 0.9x', 'split 5x'].flatMap((row): Bar[] => [
    { row, figure: 'ofIdeal', atLeast: 0.98, why: 'slices together are one bucket' },
    { row, figure: 'hottestOwner', atMost: 500, why: 'and none of them is too hot' },
  ]),
];

export function barsOf(row: string): readonly Bar[] {
  return BARS.filter((bar) => row === bar.row);
}

export function holds(bar: Bar, value: number): boolean {
  return 'atLeast' in bar ? value >= bar.atLeast : value <= bar.atMost;
}

export function describeBar(bar: Bar): string {
  return 'atLeast' in bar ? `${bar.figure} >= ${bar.atLeast}` : `${bar.figure} <= ${bar.atMost}`;
}
