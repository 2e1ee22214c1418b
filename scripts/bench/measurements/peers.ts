/**
 * Other limiters on the same workload in the same run: sixteen callers far inside their limits, every request admitted and forwarded.
 *
 * Each figure is a share of what bare forwarding lets through on the same host: workerd for all that run there, Node for
 * Redis. The limiter stands in the table three times, as a rule can be decided in three ways.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { FailureError, PROJECT_ROOT } from '../../command.ts';
import { freePorts } from '../../serve/ports.ts';
import type { Figure, Measurement } from '../figure.ts';
import { alternate, MANY_CALLERS, manyCallers, ratios, withServe } from '../live.ts';
import { startRedis } from '../redis.ts';

type Progress = (line: string) => void;

export const peers: Measurement = {
  name: 'peers',
  about: 'this and other limiters on one workload, each against bare forwarding on its host',
  run: async (progress) => [...(await onWorkerd(progress)), ...(await redis(progress))],
};

function onWorkerd(progress: Progress): Promise<Figure[]> {
  return withServe(
    { rules: 'peers', beside: ['baseline', 'hono-rate-limiter', 'object-limiter', 'rate-limiter-flexible'] },
    async ({ gateways, beside }) => {
      const requests = MANY_CALLERS;
      const rates = await alternate(
        {
          baseline: { ports: beside.baseline, requests, status: 200 },
          local: { ports: gateways, requests: manyCallers('/local/42'), status: 200 },
          leased: { ports: gateways, requests: manyCallers('/leased/42'), status: 200, leadIn: true },
          strict: { ports: gateways, requests: manyCallers('/strict/42'), status: 200 },
          flexible: { ports: beside['rate-limiter-flexible'], requests, status: 200 },
          hono: { ports: beside['hono-rate-limiter'], requests, status: 200 },
          object: { ports: beside['object-limiter'], requests, status: 200 },
        },
        progress,
      );
      const share = (name: string, of: readonly number[]) => ({
        name: `peers.${name}`,
        unit: 'x',
        values: ratios(of, rates.baseline),
      });
      return [
        share('local', rates.local),
        share('leased', rates.leased),
        share('strict', rates.strict),
        share('rate_limiter_flexible', rates.flexible),
        share('hono_rate_limiter', rates.hono),
        share('object_limiter', rates.object),
      ];
    },
  );
}

async function redis(progress: Progress): Promise<Figure[]> {
  const port = await freePorts(1);
  const server = await startRedis(port);
  if (server === undefined) {
    progress('redis-server is not installed, so there is no figure for Redis');
    return [];
  }
  try {
    return await withServe({ rules: 'peers', beside: ['demo-origin'] }, ({ beside }) =>
      onNode({ origin: beside['demo-origin'][0]!, redis: port }, progress),
    );
  } finally {
    await server.stop();
  }
}

const NODE_PEER = join(PROJECT_ROOT, 'scripts', 'bench', 'node-peer.ts');

async function onNode(ports: { origin: number; redis: number }, progress: Progress): Promise<Figure[]> {
  const first = await freePorts(2);
  const peer = fork(NODE_PEER, [first, first + 1, ports.origin, ports.redis].map(String));
  const exited = once(peer, 'exit');
  try {
    await Promise.race([
      once(peer, 'message'),
      exited.then(([code]) => Promise.reject(new FailureError(`the Node server ended with ${code}`))),
    ]);
    const rates = await alternate(
      {
        node: { ports: [first], requests: MANY_CALLERS, status: 200 },
        redis: { ports: [first + 1], requests: MANY_CALLERS, status: 200 },
      },
      progress,
    );
    return [{ name: 'peers.redis', unit: 'x', values: ratios(rates.redis, rates.node) }];
  } finally {
    peer.kill();
    await exited;
  }
}
