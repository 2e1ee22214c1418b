/**
 * A Node server that forwards, once as it is and once behind `rate-limiter-flexible` with Redis: what a limiter with a shared store
 * costs, against bare forwarding by the same server.
 *
 * `node node-peer.ts BARE_PORT LIMITED_PORT ORIGIN_PORT REDIS_PORT`; tells its parent when both ports listen.
 */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { QUOTA, WINDOW_MS } from '../workers/peers/limit.ts';

const [barePort, limitedPort, originPort, redisPort] = process.argv.slice(2).map(Number) as [
  number,
  number,
  number,
  number,
];

const origin = { host: '127.0.0.1', port: originPort, agent: new Agent({ keepAlive: true }) };

const limiter = new RateLimiterRedis({
  storeClient: new Redis(redisPort, '127.0.0.1'),
  points: QUOTA,
  duration: WINDOW_MS / 1_000,
});

function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url: path, headers } = incoming;
  const onward = request({ ...origin, method, path, headers }, (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on('error', () => outgoing.writeHead(502).end());
  incoming.pipe(onward);
}

async function limit(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const status = await limiter.consume(String(incoming.headers['x-api-key'])).then(() => 200, statusOf);
  if (status === 200) forward(incoming, outgoing);
  else outgoing.writeHead(status).end();
}

/** The limiter rejects with its numbers when the caller is beyond them, and with an error when Redis failed. */
function statusOf(reason: unknown): number {
  return reason instanceof RateLimiterRes ? 429 : 503;
}

const servers = [createServer(forward).listen(barePort), createServer(limit).listen(limitedPort)];
await Promise.all(servers.map((server) => once(server, 'listening')));
process.send?.('ready');
