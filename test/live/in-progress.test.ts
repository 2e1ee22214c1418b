/** Real sockets that are dropped, bodies that break off and clients that stay: after any of it, the slots are those of open responses. */
import { once } from 'node:events';
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';

const START_MS_MAX = 60_000;

/** A slot that nobody lets go is free after five seconds, so what is free sooner was let go. */
const SOON = { timeout: 4_000, interval: 20 };

/** As `in-progress.yaml` has it for one route. */
const LONG_SLOT_MS = 1_000;

let served: ServeChild;
let port: number;
let origin: Server;
let addresses = 0;

const PIECE = 'more ';
const PIECE_MS = 10;

/** Streams until it is stopped, breaks off, or says what it cost. */
function answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://origin');
  if (pathname === '/quick') outgoing.end('done');
  else if (pathname === '/nothing') outgoing.writeHead(204).end();
  else if (pathname === '/late') setTimeout(() => outgoing.end('late'), 300);
  else {
    const tokens = searchParams.get('tokens');
    outgoing.writeHead(200, tokens === null ? {} : { 'x-tokens-used': tokens });
    const timer = setInterval(() => outgoing.write(PIECE), PIECE_MS);
    outgoing.on('close', () => clearInterval(timer));
    if (pathname === '/breaks') setTimeout(() => outgoing.destroy(), 60);
  }
}

beforeAll(async () => {
  origin = createServer(answer).listen(0, '127.0.0.1');
  await once(origin, 'listening');
  port = await freePorts(2);
  const { port: originPort } = origin.address() as AddressInfo;
  const rules = join(import.meta.dirname, 'in-progress.yaml');
  const flags = ['--port', String(port), '--gateways', '2', '--rules', rules];
  served = await startServe(...flags, '--origin', `http://127.0.0.1:${originPort}`);
}, START_MS_MAX);

afterAll(async () => {
  await served?.stop();
  origin?.closeAllConnections();
  origin?.close();
});

interface Open {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  /** How long the body has been streaming at least, by what has come of it. */
  streamedMs(): number;
  /** Until more of it comes. */
  more(): Promise<unknown>;
  /** Drops the connection, as a client does that has gone. */
  drop(): void;
  ended(): Promise<void>;
}

function open(
  path: string,
  { address, gateway = 0, agent }: { address: string; gateway?: number; agent?: Agent },
) {
  const { promise, resolve, reject } = Promise.withResolvers<Open>();
  const headers = { 'CF-Connecting-IP': address };
  const options = { host: '127.0.0.1', port: port + gateway, path, headers, agent: agent ?? false };
  const sent = request(options, (response) => {
    const closed = new Promise<void>((close) => response.on('close', close));
    let bytes = 0;
    response.on('error', () => {});
    response.on('data', (piece: Buffer) => {
      bytes += piece.length;
    });
    resolve({
      status: response.statusCode ?? 0,
      headers: response.headers,
      streamedMs: () => (bytes / PIECE.length) * PIECE_MS,
      more: () => once(response, 'data'),
      drop: () => sent.destroy(),
      ended: () => closed,
    });
  });
  sent.on('error', reject);
  sent.end();
  return { answered: promise, drop: () => sent.destroy() };
}

/** As many streams as there are slots, and one more that is denied; all are dropped in the end. */
async function takesAll(address: string): Promise<void> {
  const streams: Open[] = [];
  try {
    for (let stream = 0; stream < 3; stream += 1)
      streams.push(await open('/stream', { address, gateway: stream % 2 }).answered);
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await open('/stream', { address }).answered).status).toBe(429);
  } finally {
    for (const { drop } of streams) drop();
  }
}

function newAddress(): string {
  addresses += 1;
  return `192.0.2.${addresses}`;
}

describe('requests in progress', () => {
  it('are as many as the limit, over two gateways', () => takesAll(newAddress()));

  it('I01 I07 a client that drops its connection lets its slot go', async () => {
    const address = newAddress();
    await vi.waitFor(() => takesAll(address), SOON);
    await vi.waitFor(() => takesAll(address), SOON);
  });

  it('requests one after the other on one connection never meet their own slot', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const address = newAddress();
    const held = [await open('/stream', { address }).answered, await open('/stream', { address }).answered];
    for (let time = 0; time < 50; time += 1) {
      const response = await open('/quick', { address, agent }).answered;
      await response.ended();
      expect(response.status).toBe(200);
    }
    agent.destroy();
    for (const { drop } of held) drop();
  });

  it('after any mix of ends, all slots are free', async () => {
    const address = newAddress();
    const paths = ['/quick', '/nothing', '/breaks', '/late', '/stream', '/late'];
    for (let round = 0; round < 8; round += 1) {
      const endings = [0, 1, 2].map(async (each) => {
        const number = round * 3 + each;
        const path = paths[number % paths.length]!;
        const sent = open(path, { address, gateway: number % 2 });
        // Every other late answer is not waited for: it is dropped before it has begun, or was denied.
        if (path === '/late' && number % 2 === 1) {
          setTimeout(sent.drop, 50);
          await sent.answered.catch(() => {});
          return;
        }
        const response = await sent.answered;
        if (path === '/stream') response.drop();
        await response.ended();
      });
      await Promise.all(endings);
    }
    await vi.waitFor(() => takesAll(address), SOON);
  }, 30_000);

  it('keep their slots for several times the life of one', async () => {
    const address = newAddress();
    const ask = (gateway: number) => open('/long', { address, gateway }).answered;
    const stream = await ask(0);
    const statuses = new Set<number>();
    // The other gateway's requests take no word of this one's slot along.
    while (stream.streamedMs() < 4 * LONG_SLOT_MS) {
      await stream.more();
      const other = await ask(1);
      other.drop();
      statuses.add(other.status);
    }
    expect([stream.status, [...statuses]]).toEqual([200, [429]]);
    stream.drop();
    await vi.waitFor(async () => {
      const next = await ask(1);
      next.drop();
      expect(next.status).toBe(200);
    }, SOON);
  });

  it('of everybody together are a 503 when they are too many', async () => {
    const others = [newAddress(), newAddress()];
    await vi.waitFor(async () => {
      const streams: Open[] = [];
      try {
        for (let stream = 0; stream < 6; stream += 1)
          streams.push(await open('/stream', { address: others[stream % 2]! }).answered);
        expect(streams.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200, 200]);
        const { status, headers } = await open('/stream', { address: newAddress() }).answered;
        expect([status, headers['retry-after']]).toEqual([503, '1']);
      } finally {
        for (const { drop } of streams) drop();
      }
    }, SOON);
  });
});

describe('a cost that the response tells', () => {
  /** What came before may still hold slots that are everybody's. */
  async function admitted(path: string, address: string): Promise<Open> {
    const response = await open(path, { address }).answered;
    if (response.status !== 200) response.drop();
    expect(response.status).toBe(200);
    return response;
  }

  const leftOf = ({ headers }: Open) =>
    Number(/"budget";r=(\d+)/.exec(String(headers.ratelimit ?? ''))?.[1] ?? Number.NaN);

  it('is charged whether the stream ends or is dropped, and the next request knows', async () => {
    const address = newAddress();
    const first = await vi.waitFor(() => admitted('/tokens?tokens=200', address), SOON);
    expect(leftOf(first)).toBe(995);
    first.drop();
    await vi.waitFor(async () => {
      const next = await open('/quick', { address, gateway: 1 }).answered;
      await next.ended();
      expect(leftOf(next)).toBeLessThan(800);
    }, SOON);
  });

  it('X07 a stream that crosses the limit goes on, and the next request is denied', async () => {
    const address = newAddress();
    const stream = await vi.waitFor(() => admitted('/tokens?tokens=5000', address), SOON);
    const next = await open('/quick', { address }).answered;
    expect(next.status).toBe(429);
    stream.drop();
  });
});
