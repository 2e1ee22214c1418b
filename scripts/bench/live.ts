/** What the measurements on `serve` share: a server with its baselines, loads that are checked, and rounds that alternate. */
import { join } from 'node:path';
import { FailureError, PROJECT_ROOT } from '../command.ts';
import { startServe } from '../serve/child.ts';
import { freePorts } from '../serve/ports.ts';
import { rawRequest } from './connection.ts';
import { ROUNDS } from './figure.ts';
import { type FullLoadResult, fullLoad } from './load.ts';
import { mean } from './statistics.ts';

/** As many as the figures of comparable limiters were taken with: enough to keep one thread busy, too few to queue for long. */
export const CONNECTIONS = 16;

/** A slice is some two thousand requests; eight of them, two seconds for each contender, make a round. */
const SLICE_SECONDS = 0.25;
const SLICES = 8;

/** By then the runtime has compiled what it will compile, and every owner exists. */
export const WARM_UP_SECONDS = 2;

/** The callers that the bench's rule files know, `k_bench_00` to `k_bench_15`. */
const KEYS = Array.from({ length: 16 }, (_, index) => `k_bench_${String(index).padStart(2, '0')}`);

export const MANY_CALLERS = KEYS.map(requestOf);
export const ONE_CALLER = [requestOf(KEYS[0]!)];

function requestOf(key: string): Buffer {
  return rawRequest({
    path: '/v1/items/42',
    headers: { 'x-api-key': key, 'cf-connecting-ip': '192.0.2.1', 'user-agent': 'bench' },
  });
}

export interface LivePorts {
  readonly limiter: number;
  readonly baseline: number;
  readonly objectBaseline: number;
  readonly faults: number;
}

export interface LiveOptions {
  /** A file of `scripts/bench/rules`. */
  readonly rules: 'local-only' | 'strict' | 'flood';
  /** With the test control, which counts owner calls and costs a little: not for measurements of speed. */
  readonly counted?: boolean;
}

export async function withServe<T>(
  { rules, counted }: LiveOptions,
  work: (ports: LivePorts) => Promise<T>,
): Promise<T> {
  const first = await freePorts(4);
  const ports = { limiter: first, baseline: first + 1, objectBaseline: first + 2, faults: first + 3 };
  const server = await startServe(
    ...['--port', String(ports.limiter), '--baseline', String(ports.baseline)],
    ...['--object-baseline', String(ports.objectBaseline)],
    ...['--rules', join(PROJECT_ROOT, 'scripts', 'bench', 'rules', `${rules}.yaml`)],
    ...(counted ? ['--faults', String(ports.faults)] : []),
  );
  try {
    return await work(ports);
  } finally {
    await server.stop();
  }
}

export interface Contender {
  readonly port: number;
  readonly requests: readonly Buffer[];
  /** What nearly every response must be: a measurement of errors measures nothing. */
  readonly status: number;
}

/**
 * Requests per second of each contender in each round. Within a round they take turns in short slices, in alternating order:
 * whatever else the machine does meanwhile then falls on all of them alike.
 */
export async function alternate<Name extends string>(
  contenders: Readonly<Record<Name, Contender>>,
  progress: (line: string) => void,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[];
  const rates = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (const name of names) await checkedLoad(contenders[name], WARM_UP_SECONDS, { warmUp: true });
  for (let round = 0; round < ROUNDS; round += 1) {
    const slices = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
    for (let slice = 0; slice < SLICES; slice += 1) {
      for (const name of slice % 2 === 0 ? names : names.toReversed()) {
        slices[name].push((await checkedLoad(contenders[name], SLICE_SECONDS)).requestsPerSecond);
      }
    }
    for (const name of names) rates[name].push(mean(slices[name]));
    progress(
      `round ${round + 1}: ${names.map((name) => `${name} ${Math.round(rates[name][round]!)}/s`).join(', ')}`,
    );
  }
  return rates;
}

/** A hundred a minute trickle through a flood; more responses of another kind than this are a fault. */
const OTHER_SHARE_MAX = 0.01;

export async function checkedLoad(
  { port, requests, status }: Contender,
  seconds: number,
  { warmUp = false } = {},
): Promise<FullLoadResult> {
  const result = await fullLoad({ port, connections: CONNECTIONS, seconds, requests });
  if (!warmUp) expectStatus(result.statuses, status);
  return result;
}

export function expectStatus(statuses: ReadonlyMap<number, number>, expected: number): void {
  const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  const other = total - (statuses.get(expected) ?? 0);
  if (total === 0 || other > total * OTHER_SHARE_MAX) {
    throw new FailureError(`expected ${expected} from the server, got ${JSON.stringify([...statuses])}`);
  }
}

export function ratios(of: readonly number[], to: readonly number[]): number[] {
  return of.map((value, round) => value / to[round]!);
}
