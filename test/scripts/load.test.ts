import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { rawRequest } from '../../scripts/bench/connection.ts';
import { fullLoad, steadyLoad } from '../../scripts/bench/load.ts';

/** Each server's arrivals by `performance.now()`, and the connections that they came over. */
const arrivalsMs: number[][] = [[], []];
const connections = [new Set<unknown>(), new Set<unknown>()];
const requests = [rawRequest({ path: '/', headers: {} })];
let servers: Server[];
let ports: number[];

beforeAll(async () => {
  servers = arrivalsMs.map((arrivals, index) =>
    createServer((request, response) => {
      arrivals.push(performance.now());
      connections[index]?.add(request.socket);
      response.end('hello');
    }),
  );
  ports = await Promise.all(servers.map(listening));
});
afterAll(() => {
  for (const server of servers) server.close();
});
beforeEach(() => {
  for (const arrivals of arrivalsMs) arrivals.length = 0;
  for (const seen of connections) seen.clear();
});

function listening(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

describe('a full load', () => {
  it('deals its connections out to all ports, and counts every response', async () => {
    const { statuses } = await fullLoad({ ports, connections: 6, seconds: 0.1, requests });
    expect(connections.map((seen) => seen.size)).toEqual([3, 3]);
    expect(statuses).toEqual(new Map([[200, arrivalsMs.flat().length]]));
  });
});

describe('a steady load', () => {
  it('sends all that it promised to each port, and tells when it began and ended', async () => {
    const beforeMs = performance.now();
    const results = await steadyLoad({ ports, connections: 2, seconds: 0.2, ratePerSecond: 500, requests });
    for (const [index, { statuses, waitsMs, firstSentMs, lastReceivedMs }] of results.entries()) {
      const arrivals = arrivalsMs[index] ?? [];
      expect(statuses).toEqual(new Map([[200, 100]]));
      expect([waitsMs.length, arrivals.length]).toEqual([100, 100]);
      expect(firstSentMs).toBeGreaterThanOrEqual(beforeMs);
      expect(firstSentMs).toBeLessThanOrEqual(Math.min(...arrivals));
      expect(lastReceivedMs).toBeGreaterThanOrEqual(Math.max(...arrivals));
    }
  });
});
