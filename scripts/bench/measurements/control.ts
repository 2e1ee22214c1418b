/**
 * What the control plane costs: the throughput of a hot key with telemetry, rules refresh and key directory beside one without, and
 * what requests notice of a publish that reaches four gateways.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError, PROJECT_ROOT } from '../../command.ts';
import { parseYaml } from '../../limiter/yaml-tree.ts';
import { rawRequest } from '../connection.ts';
import { type Figure, type Measurement, ROUNDS } from '../figure.ts';
import { ADMIN_TOKEN, alternate, CONNECTIONS, oneCaller, ratios, withServe } from '../live.ts';
import { type SteadyLoadResult, steadyLoad } from '../load.ts';
import { quantile } from '../statistics.ts';

type Progress = (line: string) => void;

export const control: Measurement = {
  name: 'control',
  about: 'the control plane: speed of a hot key with and without it, and a publish under load',
  run: async (progress) => [...(await cost(progress)), ...(await publish(progress))],
};

/** A caller whom only the directory knows, so that every request of it passes there. */
const DIRECTORY_KEY = 'k_directory';
const DIRECTORY_CALLER = [
  rawRequest({
    path: '/v1/items/42',
    headers: { 'x-api-key': DIRECTORY_KEY, 'cf-connecting-ip': '192.0.2.1', 'user-agent': 'bench' },
  }),
];

/** With a warm-up of three seconds each, the directory has been asked and owners have granted. */
function cost(progress: Progress): Promise<Figure[]> {
  return withServe({ rules: 'hot', beside: ['bare-limiter'] }, async ({ gateways, beside }) => {
    await say(gateways[0]!, 'PUT', '/v1/keys', { key: DIRECTORY_KEY, tier: 'bench' });
    const rates = await alternate(
      {
        bare: { ports: beside['bare-limiter'], requests: oneCaller(1), status: 200, leadIn: true },
        full: { ports: gateways, requests: DIRECTORY_CALLER, status: 200, leadIn: true },
      },
      progress,
    );
    return [{ name: 'control.of_bare', unit: 'x', values: ratios(rates.full, rates.bare) }];
  });
}

const GATEWAYS = 4;
const RATE_PER_SECOND = 2_000;

/** 6,000 requests in each half of a round: sixty of them are beyond the 99th percentile. */
const HALF_SECONDS = 3;

/** Between two looks at a gateway's activation. */
const LOOK_MS = 20;

interface Round {
  readonly inForceSeconds: number;
  readonly p99Ratio: number;
  readonly quietRatio: number;
  readonly failed: number;
}

function publish(progress: Progress): Promise<Figure[]> {
  return withServe({ rules: 'hot', gateways: GATEWAYS }, async ({ gateways }) => {
    const file = join(PROJECT_ROOT, 'scripts', 'bench', 'rules', 'hot.yaml');
    const rules = parseYaml(await readFile(file, 'utf8')).value;
    await half(gateways);
    const rounds: Round[] = [];
    for (let round = 1; round <= ROUNDS; round += 1) {
      const quiet = await half(gateways);
      const before = await half(gateways);
      const [during, inForceSeconds] = await Promise.all([
        half(gateways),
        publishedWithin(gateways, rules, round),
      ]);
      const p99Ratio = p99(during) / p99(before);
      rounds.push({
        inForceSeconds,
        p99Ratio,
        quietRatio: p99(before) / p99(quiet),
        failed: failures([before, during]),
      });
      progress(
        `publish ${round}: in force everywhere after ${inForceSeconds.toFixed(2)} s, p99 ${p99(before).toFixed(2)} ms before and ${p99(during).toFixed(2)} ms during`,
      );
    }
    return [
      { name: 'publish.in_force', unit: 's', values: rounds.map(({ inForceSeconds }) => inForceSeconds) },
      { name: 'publish.p99_of_before', unit: 'x', values: rounds.map(({ p99Ratio }) => p99Ratio) },
      { name: 'publish.p99_without', unit: 'x', values: rounds.map(({ quietRatio }) => quietRatio) },
      { name: 'publish.failed', unit: 'requests', values: rounds.map(({ failed }) => failed) },
    ];
  });
}

function half(ports: readonly number[]): Promise<readonly SteadyLoadResult[]> {
  const ratePerSecond = RATE_PER_SECOND / GATEWAYS;
  return steadyLoad({
    ports,
    connections: CONNECTIONS,
    seconds: HALF_SECONDS,
    ratePerSecond,
    requests: oneCaller(2),
  });
}

function p99(results: readonly SteadyLoadResult[]): number {
  return quantile(
    results.flatMap(({ waitsMs }) => waitsMs),
    0.99,
  );
}

function failures(halves: readonly (readonly SteadyLoadResult[])[]): number {
  const statuses = halves.flat().flatMap((result) => [...result.statuses]);
  return statuses.reduce((sum, [status, count]) => sum + (status === 200 ? 0 : count), 0);
}

/** Publishes, and answers after how many seconds the last gateway says that it is in force. */
async function publishedWithin(
  ports: readonly number[],
  rules: unknown,
  activation: number,
): Promise<number> {
  const startMs = performance.now();
  await say(ports[0]!, 'PUT', '/v1/rulesets/bench', { rules, message: `round ${activation}` });
  const seen = await Promise.all(ports.map((port) => activated(port, activation)));
  return (Math.max(...seen) - startMs) / 1_000;
}

async function activated(port: number, activation: number): Promise<number> {
  for (let looks = 0; looks < (HALF_SECONDS * 1_000) / LOOK_MS; looks += 1) {
    const health = (await (await fetch(`http://127.0.0.1:${port}/_limiter/health`)).json()) as {
      activation: number;
    };
    if (health.activation >= activation) return performance.now();
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new FailureError(`the gateway at port ${port} has not heard of activation ${activation}`);
}

async function say(port: number, method: string, path: string, body: unknown): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/_limiter${path}`, {
    method,
    headers: { Authorization: `Bearer ${ADMIN_TOKEN}` },
    body: JSON.stringify(body),
  });
  if (!response.ok)
    throw new FailureError(`${method} ${path} answered ${response.status}: ${await response.text()}`);
}
