/**
 * How long a request of a limit in several regions waits, beside one of a limit that has a single owner near the caller, the regions
 * being an ocean apart.
 *
 * Both are asked at the same time, so whatever else the machine does falls on both. The bar is about their waits as a whole: what each
 * adds to bare forwarding is a difference of two waits, and a ratio of differences says nothing where they are small. It is there to be
 * read.
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
import { steadyLoad } from '../load.ts';
import { quantile } from '../statistics.ts';

/** To each of four ports: as much in all as the measurement of added wait sends to two. */
const RATE_PER_SECOND = 250;

/** 2,000 requests to each port in a round: twenty of them are beyond the 99th percentile. */
const ROUND_SECONDS = 8;

/** There and back between Europe and the west of North America. */
const LATENCY_MS = 150;

interface Load {
  /** Bare forwarding, and the limiter. */
  readonly ports: readonly [number, number];
  readonly requests: readonly Buffer[];
}

interface Round {
  readonly p50: number;
  readonly p99: number;
  readonly addedP50: number;
}

export const regional: Measurement = {
  name: 'regional',
  about: `wait in a region, ${LATENCY_MS} ms from the owner of the whole, against that of a single owner near`,
  run: (progress) =>
    withServe(
      { rules: 'regional', gateways: 2, beside: ['baseline', 'baseline'], regionLatencyMs: LATENCY_MS },
      async ({ gateways: [near, inRegion], beside: { baseline } }) => {
        const singleLoad: Load = { ports: [baseline[0]!, near!], requests: SINGLE_CALLERS };
        const regionLoad: Load = { ports: [baseline[1]!, inRegion!], requests: REGIONAL_CALLERS };
        for (const load of [singleLoad, regionLoad]) await warmUp({ ...load, status: 200 });
        const singles: Round[] = [];
        const regions: Round[] = [];
        for (let round = 1; round <= ROUNDS; round += 1) {
          const [single, region] = await Promise.all([steadyRound(singleLoad), steadyRound(regionLoad)]);
          singles.push(single);
          regions.push(region);
          progress(`round ${round}: single ${readable(single)}; in a region ${readable(region)}`);
        }
        return figuresOf(singles, regions);
      },
    ),
};

async function steadyRound(load: Load): Promise<Round> {
  const [baseline, limiter] = await steadyLoad({
    ...load,
    connections: CONNECTIONS,
    seconds: ROUND_SECONDS,
    ratePerSecond: RATE_PER_SECOND,
  });
  for (const { statuses } of [baseline!, limiter!]) expectStatus(statuses, 200);
  const p50 = quantile(limiter!.waitsMs, 0.5);
  return { p50, p99: quantile(limiter!.waitsMs, 0.99), addedP50: p50 - quantile(baseline!.waitsMs, 0.5) };
}

function figuresOf(singles: readonly Round[], regions: readonly Round[]): Figure[] {
  const p50 = (rounds: readonly Round[]) => rounds.map((round) => round.p50);
  const p99 = (rounds: readonly Round[]) => rounds.map((round) => round.p99);
  return [
    { name: 'regional.p99_of_single', unit: 'x', values: ratios(p99(regions), p99(singles)) },
    { name: 'regional.p50_of_single', unit: 'x', values: ratios(p50(regions), p50(singles)) },
    { name: 'regional.p99', unit: 'ms', values: p99(regions) },
    { name: 'regional.added_p50', unit: 'ms', values: regions.map(({ addedP50 }) => addedP50) },
  ];
}

function readable({ p50, p99, addedP50 }: Round): string {
  return `p50 ${p50.toFixed(2)} ms, ${addedP50.toFixed(2)} of it added, p99 ${p99.toFixed(2)} ms`;
}
