/**
 * What the limiter adds to a request's wait at a steady 500 requests a second, above bare forwarding at the same rate and time.
 */
import type { Figure, Measurement } from '../figure.ts';
import { ROUNDS } from '../figure.ts';
import { CONNECTIONS, expectStatus, MANY_CALLERS, warmUp, withServe } from '../live.ts';
import { type SteadyLoadResult, steadyLoad } from '../load.ts';
import { quantile } from '../statistics.ts';

const RATE_PER_SECOND = 500;

/** 1,500 requests to each port in a round: fifteen of them are beyond the 99th percentile. */
const ROUND_SECONDS = 3;

export const wait: Measurement = {
  name: 'wait',
  about: `added wait at a steady ${RATE_PER_SECOND} requests a second, p50 and p99`,
  run: async (progress) => [...(await added('local-only', progress)), ...(await added('strict', progress))],
};

function added(rules: 'local-only' | 'strict', progress: (line: string) => void): Promise<Figure[]> {
  const name = rules === 'strict' ? 'strict' : 'local';
  return withServe({ rules, beside: ['baseline'] }, async ({ gateways, beside }) => {
    const both = [...beside.baseline, ...gateways];
    for (const port of both) await warmUp({ ports: [port], requests: MANY_CALLERS, status: 200 });
    const rounds: { p50: number; p99: number }[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const [baseline, limiter] = await steadyRound(both);
      rounds.push({ p50: difference(limiter, baseline, 0.5), p99: difference(limiter, baseline, 0.99) });
      const { p50, p99 } = rounds.at(-1)!;
      progress(`round ${round + 1}: ${name} adds p50 ${p50.toFixed(3)} ms, p99 ${p99.toFixed(3)} ms`);
    }
    return [
      { name: `wait.${name}_p50`, unit: 'ms', values: rounds.map((round) => round.p50) },
      { name: `wait.${name}_p99`, unit: 'ms', values: rounds.map((round) => round.p99) },
    ];
  });
}

async function steadyRound(ports: readonly number[]): Promise<[SteadyLoadResult, SteadyLoadResult]> {
  const [baseline, limiter] = await steadyLoad({
    ports,
    connections: CONNECTIONS,
    seconds: ROUND_SECONDS,
    ratePerSecond: RATE_PER_SECOND,
    requests: MANY_CALLERS,
  });
  expectStatus(baseline!.statuses, 200);
  expectStatus(limiter!.statuses, 200);
  return [baseline!, limiter!];
}

function difference(limiter: SteadyLoadResult, baseline: SteadyLoadResult, at: number): number {
  return quantile(limiter.waitsMs, at) - quantile(baseline.waitsMs, at);
}
