/**
 * Fleets too large to simulate: a million requests a second over five million keys, fifty million callers, and ten times the first.
 *
 * Each is estimated from a sample of its keys (`fleet/estimate`), beside the design that has no leases and calls an object for each
 * request. Every key has a limit of its own; demand is steeper the larger a part of it is to be denied, so of a plan's limit and the
 * part denied the exponent follows: somewhat below the 1 that is usual, at which the most popular keys would be denied ten times as much.
 */
import type { Winner } from '../../../src/policy/counter.ts';
import { type Demand, exponentFor, shareAbove } from '../fleet/demand.ts';
import { type Effort, type Estimate, estimate, type Fleet } from '../fleet/estimate.ts';
import { LONE_PER_SECOND } from '../fleet/lone.ts';
import type { Plant } from '../plant.ts';
import { DAY_MS, winner } from '../rules.ts';
import { perSecond } from './kit.ts';

export interface Sizing {
  readonly label: string;
  readonly about: string;
  readonly fleet: Fleet;
  readonly limitPerSecond: number;
  /** When there are most of them; the fleet may be told of at another time. */
  readonly peakRequestsPerSecond: number;
}

export interface FleetRow {
  readonly sizing: Sizing;
  readonly estimate: Estimate;
}

/** Enough for a few per cent, and all sizings within half a minute. */
const EFFORT: Effort = {
  requests: 2_500,
  keys: { min: 3, max: 40 },
  measuredMs: { min: 600, max: 20_000 },
  lonePerSecond: LONE_PER_SECOND,
};

/** Of all requests, when there are most of them. */
export const DENIED_AT_PEAK = 0.02;

interface Peak {
  readonly keys: number;
  readonly requestsPerSecond: number;
  readonly limitPerSecond: number;
}

const MILLION: Peak = { keys: 5_000_000, requestsPerSecond: 1_000_000, limitPerSecond: 1_000 };
const CALLERS: Peak = { keys: 50_000_000, requestsPerSecond: 100_000, limitPerSecond: 100 };
const TENFOLD: Peak = { keys: 50_000_000, requestsPerSecond: 10_000_000, limitPerSecond: 1_000 };

/** Between peak and average nothing changes but the number of requests. */
const AVERAGE_OF_PEAK = 0.3;

const ISOLATES = 200;

/** 2,000 isolates in nine regions; a key lives in one of them, so those of its region serve it. */
const ISOLATES_OF_REGION = 222;

/** What a caller's connections lead to, where they lead to few. */
const NEAR_ISOLATES = 8;

interface Shape {
  readonly label: string;
  readonly about: string;
  readonly peak: Peak;
  readonly isolates: number;
  readonly ofPeak?: number;
  /** Beside the limit a second a quota of the day, which nobody uses up. */
  readonly isByDay?: boolean;
}

export const SIZINGS: readonly Sizing[] = [
  {
    label: '1M/s peak',
    about: 'each key in all 200 isolates',
    peak: MILLION,
    isolates: ISOLATES,
  },
  {
    label: '1M/s average',
    about: 'each key in all 200 isolates',
    peak: MILLION,
    isolates: ISOLATES,
    ofPeak: AVERAGE_OF_PEAK,
  },
  {
    label: '1M/s average near',
    about: 'each key in 8 of the 200 isolates',
    peak: MILLION,
    isolates: NEAR_ISOLATES,
    ofPeak: AVERAGE_OF_PEAK,
  },
  {
    label: '1M/s average by day',
    about: 'each key in all 200 isolates, and with a fixed window of a day beside its limit',
    peak: MILLION,
    isolates: ISOLATES,
    ofPeak: AVERAGE_OF_PEAK,
    isByDay: true,
  },
  {
    label: '50M callers',
    about: 'each caller in all 200 isolates',
    peak: CALLERS,
    isolates: ISOLATES,
  },
  {
    label: '10x peak',
    about: 'each key lives in one of nine regions, in all 222 isolates there: no limit spans regions',
    peak: TENFOLD,
    isolates: ISOLATES_OF_REGION,
  },
  {
    label: '10x average',
    about: 'each key lives in one of nine regions, in all 222 isolates there: no limit spans regions',
    peak: TENFOLD,
    isolates: ISOLATES_OF_REGION,
    ofPeak: AVERAGE_OF_PEAK,
  },
].map(sizingOf);

export const FLEET = {
  name: 'fleet',
  about:
    'fleets of millions of requests a second, estimated from a sample of their keys; under the first seed',
} as const;

export async function runFleet(
  sizing: Sizing,
  options: { readonly seed: number; readonly plant?: Plant | undefined },
): Promise<FleetRow> {
  return { sizing, estimate: await estimate(sizing.fleet, EFFORT, options) };
}

function sizingOf({ label, about, peak, isolates, ofPeak = 1, isByDay = false }: Shape): Sizing {
  const { keys, limitPerSecond, requestsPerSecond: peakRequestsPerSecond } = peak;
  const exponent = exponentFor(peak, { limitPerSecond, share: DENIED_AT_PEAK });
  const demand = { keys, exponent, requestsPerSecond: peakRequestsPerSecond * ofPeak };
  const enforced = (owner: string) => [
    perSecond({ perSecond: limitPerSecond, owner }),
    ...(isByDay ? [byDay(limitPerSecond, owner)] : []),
  ];
  return { label, about, limitPerSecond, peakRequestsPerSecond, fleet: { demand, isolates, enforced } };
}

/** Ten times what the limit a second lets through. */
const DAYS_WORTH = (10 * DAY_MS) / 1_000;

function byDay(limitPerSecond: number, owner: string): Winner {
  return winner({
    policy: 'daily',
    algorithm: 'fixed_window',
    quota: DAYS_WORTH * limitPerSecond,
    windowMs: DAY_MS,
    consistency: 'auto',
    owner,
  });
}

/** What would be denied at peak if demand went by the usual exponent of 1. */
export function deniedAtOne({ fleet, peakRequestsPerSecond, limitPerSecond }: Sizing): number {
  const peak: Demand = { ...fleet.demand, requestsPerSecond: peakRequestsPerSecond, exponent: 1 };
  return shareAbove(peak, limitPerSecond);
}
