/**
 * One key hotter than an object can answer for: what spending a lease costs beside forwarding, how seldom the owner is asked, and
 * whether gateways that share the limit admit it all and no more.
 *
 * All gateways are isolates of one process, which runs them in turn: more of them do not make more throughput here. Each number of gateways has a key of its own, so that none finds another's leases.
 */
import { FailureError } from '../../command.ts';
import type { Figure, Measurement } from '../figure.ts';
import { alternate, CONNECTIONS, oneCaller, ownerCallsPerThousand, ratios, withServe } from '../live.ts';
import { type SteadyLoadResult, steadyLoad } from '../load.ts';
import { sum } from '../statistics.ts';

type Progress = (line: string) => void;

const GATEWAYS_MAX = 8;

/** Isolates of one thread get into each other's way: a number of gateways is compared with as many that only forward. */
const BASELINES = Array.from({ length: GATEWAYS_MAX }, () => 'baseline' as const);

/** One caller each for 1, 4 and 8 gateways. */
const FEW_CALLER = oneCaller(1);
const SOME_CALLER = oneCaller(4);
const MANY_CALLER = oneCaller(8);

export const hot: Measurement = {
  name: 'hot',
  about:
    'one hot key on leases, 1, 4 and 8 gateways: speed against bare forwarding, owner calls, admitted of ideal',
  run: async (progress) => [
    ...(await speed(progress)),
    ...(await ownerCalls(progress)),
    ...(await admitted(progress)),
  ],
};

function speed(progress: Progress): Promise<Figure[]> {
  return withServe(
    { rules: 'hot', gateways: GATEWAYS_MAX, beside: [...BASELINES, 'fields-baseline'] },
    async ({ gateways, beside }) => {
      const rates = await alternate(
        {
          baseline1: { ports: beside.baseline.slice(0, 1), requests: FEW_CALLER, status: 200 },
          fields1: { ports: beside['fields-baseline'], requests: FEW_CALLER, status: 200 },
          leased1: { ports: gateways.slice(0, 1), requests: FEW_CALLER, status: 200, leadIn: true },
          baseline4: { ports: beside.baseline.slice(0, 4), requests: SOME_CALLER, status: 200 },
          leased4: { ports: gateways.slice(0, 4), requests: SOME_CALLER, status: 200, leadIn: true },
          baseline8: { ports: beside.baseline, requests: MANY_CALLER, status: 200 },
          leased8: { ports: gateways, requests: MANY_CALLER, status: 200, leadIn: true },
        },
        progress,
      );
      return [
        { name: 'hot.of_baseline', unit: 'x', values: ratios(rates.leased1, rates.baseline1) },
        { name: 'hot.of_fields', unit: 'x', values: ratios(rates.leased1, rates.fields1) },
        { name: 'hot.of_baseline_4', unit: 'x', values: ratios(rates.leased4, rates.baseline4) },
        { name: 'hot.of_baseline_8', unit: 'x', values: ratios(rates.leased8, rates.baseline8) },
        { name: 'hot.rate', unit: 'per second', values: rates.leased1 },
      ];
    },
  );
}

function ownerCalls(progress: Progress): Promise<Figure[]> {
  return withServe({ rules: 'hot', gateways: GATEWAYS_MAX, counted: true }, async ({ gateways, faults }) => {
    const count = (gatewayCount: number, requests: readonly Buffer[]) =>
      ownerCallsPerThousand(
        { ports: gateways.slice(0, gatewayCount), requests, status: 200 },
        { faults, progress },
      );
    return [
      { name: 'hot.owner_calls', unit: 'per 1,000', values: await count(1, FEW_CALLER) },
      { name: 'hot.owner_calls_4', unit: 'per 1,000', values: await count(4, SOME_CALLER) },
      { name: 'hot.owner_calls_8', unit: 'per 1,000', values: await count(8, MANY_CALLER) },
    ];
  });
}

/** The limit in `rules/hot-limit.yaml`: a busy machine must still be able to offer twice as much without falling behind. */
const LIMIT_PER_SECOND = 500;
const BURST = 500;

const SHARING_GATEWAYS = 4;
const OVERLOAD = 2;
const ADMITTED_SECONDS = 10;

/** What is admitted in ten seconds hardly varies, and each round has a key that nobody has asked for before. */
const ADMITTED_ROUNDS = 3;

/** Compiles what will be compiled, on a key of its own. */
const WARM_UP_CALLER = oneCaller(15);
const WARM_UP_SECONDS = 1;

function admitted(progress: Progress): Promise<Figure[]> {
  return withServe({ rules: 'hot-limit', gateways: SHARING_GATEWAYS }, async ({ gateways }) => {
    await overload(gateways, { requests: WARM_UP_CALLER, seconds: WARM_UP_SECONDS });
    const rounds: Admitted[] = [];
    for (let round = 0; round < ADMITTED_ROUNDS; round += 1) {
      const load = { requests: oneCaller(round), seconds: ADMITTED_SECONDS };
      const found = admittedOf(await overload(gateways, load));
      rounds.push(found);
      progress(
        `admitted ${round + 1}: ${found.ofIdeal.toFixed(4)} of the ideal at ${found.offeredOfLimit.toFixed(2)} times the limit`,
      );
    }
    return [
      { name: 'hot.admitted_of_ideal', unit: 'x', values: rounds.map(({ ofIdeal }) => ofIdeal) },
      { name: 'hot.offered_of_limit', unit: 'x', values: rounds.map(({ offeredOfLimit }) => offeredOfLimit) },
      { name: 'hot.least_served', unit: 'of mean', values: rounds.map(({ leastOfMean }) => leastOfMean) },
    ];
  });
}

interface Overload {
  readonly requests: readonly Buffer[];
  readonly seconds: number;
}

function overload(
  gateways: readonly number[],
  { requests, seconds }: Overload,
): Promise<readonly SteadyLoadResult[]> {
  const ratePerSecond = (LIMIT_PER_SECOND * OVERLOAD) / gateways.length;
  return steadyLoad({ ports: gateways, connections: CONNECTIONS, seconds, ratePerSecond, requests });
}

interface Admitted {
  readonly ofIdeal: number;
  /** Less than it was meant to be on a machine that could not keep up. */
  readonly offeredOfLimit: number;
  /** The gateway that admitted least. */
  readonly leastOfMean: number;
}

/** Counted where the client stands: one ideal bucket is full at the first request and fills until the last answer is here. */
function admittedOf(results: readonly SteadyLoadResult[]): Admitted {
  const startMs = Math.min(...results.map((result) => result.firstSentMs));
  const endMs = Math.max(...results.map((result) => result.lastReceivedMs));
  const counts = results.map(admittedBy);
  const refill = (LIMIT_PER_SECOND * (endMs - startMs)) / 1_000;
  return {
    ofIdeal: sum(counts) / (BURST + refill),
    offeredOfLimit: sum(results.map(({ waitsMs }) => waitsMs.length)) / refill,
    leastOfMean: (Math.min(...counts) / sum(counts)) * counts.length,
  };
}

function admittedBy({ statuses }: SteadyLoadResult): number {
  const unexpected = [...statuses.keys()].filter((status) => status !== 200 && status !== 429);
  if (unexpected.length > 0) throw new FailureError(`expected 200 and 429, got ${unexpected.join(', ')}`);
  return statuses.get(200) ?? 0;
}
