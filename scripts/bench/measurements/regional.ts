/**
 * What a limit in several regions adds to a request's wait, beside a limit that has a single owner near the caller, the regions being
 * an ocean apart: above bare forwarding of the same requests at the same time, each with a baseline of its own.
 */
import type { Figure, Measurement } from '../figure.ts';
import { ROUNDS } from '../figure.ts';
import {
  CONNECTIONS,
  expectStatus,
  REGIONAL_CALLERS,
  ratios,
  SINGLE_CALLERS,
  warmUp,
  withServe,
} from '../live.ts';
import { type SteadyLoadResult, steadyLoad } from '../load.ts';
import { quantile } from '../statistics.ts';

/** To each of four ports: as much in all as the measurement of added wait sends to two. */
const RATE_PER_SECOND = 250;

/** 2,000 requests to each port in a round: twenty of them are beyond the 99th percentile. */
const ROUND_SECONDS = 8;

/** There and back between Europe and the west of North America. */
const LATENCY_MS = 150;

type Added = { readonly p50: number; readonly p99: number };

export const regional: Measurement = {
  name: 'regional',
  about: `added wait in a region, ${LATENCY_MS} ms from the owner of the whole, against that of a single owner near`,
  run: (progress) =>
    withServe(
      {
        rules: 'regional',
        gateways: 2,
        beside: ['baseline', 'baseline'],
        regionLatencyMs: LATENCY_MS,
      },
      async ({ gateways: [near, away], beside }) => {
        const [nearBaseline, awayBaseline] = beside.baseline;
        const singleLoad = { ports: [nearBaseline!, near!], requests: SINGLE_CALLERS };
        const regionalLoad = { ports: [awayBaseline!, away!], requests: REGIONAL_CALLERS };
        for (const load of [singleLoad, regionalLoad]) await warmUp({ ...load, status: 200 });
        const rounds: { readonly single: Added; readonly inRegion: Added }[] = [];
        for (let round = 0; round < ROUNDS; round += 1) {
          const [single, inRegion] = await Promise.all([added(singleLoad), added(regionalLoad)]);
          rounds.push({ single, inRegion });
          progress(
            `round ${round + 1}: single adds ${readable(single)}, a region adds ${readable(inRegion)}`,
          );
        }
        return figuresOf(rounds);
      },
    ),
};

async function added(load: {
  readonly ports: readonly number[];
  readonly requests: readonly Buffer[];
}): Promise<Added> {
  const [baseline, limiter] = await steadyLoad({
    ...load,
    connections: CONNECTIONS,
    seconds: ROUND_SECONDS,
    ratePerSecond: RATE_PER_SECOND,
  });
  for (const { statuses } of [baseline!, limiter!]) expectStatus(statuses, 200);
  return { p50: difference(limiter!, baseline!, 0.5), p99: difference(limiter!, baseline!, 0.99) };
}

function difference(limiter: SteadyLoadResult, baseline: SteadyLoadResult, at: number): number {
  return quantile(limiter.waitsMs, at) - quantile(baseline.waitsMs, at);
}

function figuresOf(rounds: readonly { readonly single: Added; readonly inRegion: Added }[]): Figure[] {
  const single99 = rounds.map(({ single }) => single.p99);
  const region99 = rounds.map(({ inRegion }) => inRegion.p99);
  const single50 = rounds.map(({ single }) => single.p50);
  const region50 = rounds.map(({ inRegion }) => inRegion.p50);
  return [
    { name: 'regional.p99_of_single', unit: 'x', values: ratios(region99, single99) },
    { name: 'regional.p50_of_single', unit: 'x', values: ratios(region50, single50) },
    { name: 'regional.p99', unit: 'ms', values: region99 },
    { name: 'regional.single_p99', unit: 'ms', values: single99 },
  ];
}

function readable({ p50, p99 }: Added): string {
  return `p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms`;
}
