import { readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { BESIDE_NAMES, type BesideName } from '../../scripts/serve/beside.ts';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts, portProblem } from '../../scripts/serve/ports.ts';

/** A start bundles the Worker and takes seconds; a busy machine may take several times that. */
const START_MS_MAX = 60_000;

describe('serve', () => {
  let first: number;
  let server: ServeChild;
  const gateway = (index: number) => `http://127.0.0.1:${first + index}`;
  const baseline = () => `http://127.0.0.1:${first + 2}`;
  const faults = (path: string) => `http://127.0.0.1:${first + 3}${path}`;
  const setFault = (body: unknown) => fetch(faults('/owner'), { method: 'PUT', body: JSON.stringify(body) });
  const request = (index: number, address: string) =>
    fetch(`${gateway(index)}/v1/items`, { headers: { 'cf-connecting-ip': address } });

  beforeAll(async () => {
    first = await freePorts(4);
    server = await startServe(
      ...['--port', String(first), '--gateways', '2'],
      ...['--baseline', String(first + 2), '--faults', String(first + 3)],
    );
  }, START_MS_MAX);

  afterAll(() => server?.stop());

  it('says where it listens, and every port answers', async () => {
    expect(server.readyLine).toBe(`ready ${gateway(0)}`);
    const statuses = await Promise.all(
      [gateway(0), gateway(1), baseline(), faults('/counts')].map(async (url) => (await fetch(url)).status),
    );
    expect(statuses).toEqual([200, 200, 200, 200]);
  });

  it('forwards to one demo origin, whatever the way', async () => {
    const response = await fetch(`${baseline()}/before`);
    const before = Number(response.headers.get('x-origin-count'));
    expect(await response.json()).toEqual({ method: 'GET', path: '/before', n: before });
    expect((await request(1, '192.0.2.10')).headers.get('x-origin-count')).toBe(String(before + 1));
  });

  it('counts owner calls and sources over all gateways', async () => {
    await fetch(faults('/counts'), { method: 'DELETE' });
    await request(0, '192.0.2.20');
    await request(1, '192.0.2.20');
    expect(await (await fetch(faults('/counts'))).json()).toEqual({
      ownerCalls: 2,
      rootCalls: 0,
      bySource: { owner: 2 },
    });
  });

  it('has an outage while the owner is set to be down, and none afterwards', async () => {
    onTestFinished(async () => void (await setFault({ mode: 'ok' })));
    await setFault({ mode: 'down' });
    const during = await request(0, '192.0.2.30');
    await setFault({ mode: 'ok' });
    const after = await request(1, '192.0.2.31');
    expect(during.headers.get('server-timing')).toContain('desc="fallback"');
    expect(after.headers.get('server-timing')).toContain('desc="owner"');
  });

  it.each([[{ mode: 'nonsense' }], [{ mode: 'slow' }], [{ mode: 'slow', delayMs: -1 }], ['down'], [null]])(
    'refuses the fault %j',
    async (body) => {
      expect((await setFault(body)).status).toBe(400);
    },
  );

  it.each([
    [{ name: 'mars', mode: 'cut' }],
    [{ name: 'weur', mode: 'slow' }],
    [{ name: 'weur' }],
    [{ mode: 'cut' }],
    ['weur'],
    [null],
  ])('refuses the region %j', async (body) => {
    const response = await fetch(faults('/region'), { method: 'PUT', body: JSON.stringify(body) });
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ error: expect.stringContaining('weur') });
  });

  it('stops on SIGTERM with exit code 0, within two seconds, and leaves nothing behind', async () => {
    const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('edge-limiter-serve-'));
    const before = folders().length;
    const startMs = performance.now();
    expect(await server.stop('SIGTERM')).toBe(0);
    expect(performance.now() - startMs).toBeLessThan(2_000);
    expect(folders().length).toBe(before - 1);
    expect(await portProblem([first, first + 1, first + 2, first + 3])).toBeUndefined();
  });
});

describe('what stands beside the limiter', () => {
  const FIELDS = ['ratelimit', 'ratelimit-policy', 'server-timing'];
  const FORWARDS: readonly (readonly [BesideName, { readonly fields: readonly string[] }])[] = [
    ['baseline', { fields: [] }],
    ['object-baseline', { fields: [] }],
    ['bare-limiter', { fields: FIELDS }],
    ['fields-baseline', { fields: FIELDS }],
    ['object-fields-baseline', { fields: FIELDS }],
    ['hono-rate-limiter', { fields: ['ratelimit-limit', 'ratelimit-policy', 'ratelimit-remaining'] }],
    ['object-limiter', { fields: [] }],
    ['rate-limiter-flexible', { fields: [] }],
  ];
  const names: readonly BesideName[] = [...FORWARDS.map(([name]) => name), 'denial-baseline', 'demo-origin'];
  let server: ServeChild;
  let first: number;
  const ask = (name: BesideName) =>
    fetch(`http://127.0.0.1:${first + 1 + names.indexOf(name)}/beside`, { headers: { 'x-api-key': 'k' } });
  const limitFields = (response: Response) =>
    [...response.headers.keys()].filter((field) => /^ratelimit|^server-timing/.test(field));

  beforeAll(async () => {
    first = await freePorts(names.length + 1);
    const beside = names.flatMap((name, index) => ['--beside', `${name}=${first + 1 + index}`]);
    server = await startServe('--port', String(first), ...beside);
  }, START_MS_MAX);
  afterAll(() => server?.stop());

  it('has a case for each name', () => {
    expect(names.toSorted()).toEqual(BESIDE_NAMES.toSorted());
  });

  it.each(FORWARDS)('%s forwards, with %j', async (name, { fields }) => {
    const response = await ask(name);
    expect(await response.json()).toMatchObject({ path: '/beside' });
    expect(limitFields(response)).toEqual(expect.arrayContaining([...fields]));
    if (fields.length === 0) expect(limitFields(response)).toEqual([]);
  });

  it('denial-baseline answers a 429 as long as the limiter does, and forwards nothing', async () => {
    const response = await ask('denial-baseline');
    expect(response.status).toBe(429);
    expect(limitFields(response)).toEqual(FIELDS);
    expect(response.headers.get('x-origin-count')).toBeNull();
  });

  it('demo-origin is an origin of its own', async () => {
    const response = await ask('demo-origin');
    expect(response.headers.get('x-origin-count')).toBe('1');
  });
});

describe('serve --origin', () => {
  it(
    'forwards path, query and body to a server outside, under its base path',
    async () => {
      const origin = createServer((request, response) => {
        request.on('data', (body) => response.end(`${request.method} ${request.url} ${body}`));
      });
      onTestFinished(() => {
        origin.closeAllConnections();
        origin.close();
      });
      await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
      const port = await freePorts(1);
      const url = `http://127.0.0.1:${(origin.address() as AddressInfo).port}/base`;
      const server = await startServe('--port', String(port), '--origin', url);
      onTestFinished(async () => void (await server.stop()));
      const response = await fetch(`http://127.0.0.1:${port}/a%20b?c=d`, { method: 'POST', body: 'hello' });
      expect(await response.text()).toBe('POST /base/a%20b?c=d hello');
      expect(await server.stop('SIGINT')).toBe(0);
    },
    START_MS_MAX,
  );
});
