/** The gateway over HTTP where clients, proxies and clocks are not as one would like them. */
import { reset } from 'cloudflare:test';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { GatewayWorld } from './gateway-world.ts';

const START_MS = Date.UTC(2026, 5, 1);

const file = (descriptors: readonly Record<string, unknown>[], more: Record<string, unknown> = {}) => ({
  domain: 'test',
  ...more,
  descriptors,
});

const byAddress = (limit: Record<string, unknown>) => ({ key: 'remote_address', rate_limit: limit });

const ONE_A_MINUTE = { unit: 'minute', requests_per_unit: 1 };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: START_MS });
});

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

it.each([
  ['203.0.113.1:5555', '203.0.113.1', '203.0.113.2:5555'],
  ['[2001:db8::1]:443', '2001:db8::1', '[2001:db8:1::1]:443'],
  ['"203.0.113.1"', '203.0.113.1', '"203.0.113.2"'],
  ['"[2001:db8::1]"', '[2001:db8::1]:1', '2001:db8:1::1'],
])(
  'an address that a trusted proxy writes as %s is the caller’s, as %s is, and %s another’s',
  async (written, bare, other) => {
    const world = new GatewayWorld(file([byAddress(ONE_A_MINUTE)], { identity: { trusted_hops: 1 } }));
    const statuses: number[] = [];
    for (const list of [written, bare, other])
      statuses.push((await world.send('/a', { headers: { 'X-Forwarded-For': list } })).status);
    expect(statuses).toEqual([200, 429, 200]);
  },
);

it('a host is one host with a port, a dot at its end or in capitals', async () => {
  const hosts = file([{ key: 'host', value: 'api.example.com', rate_limit: ONE_A_MINUTE }]);
  const world = new GatewayWorld(hosts);
  expect((await world.send('https://api.example.com/a')).status).toBe(200);
  for (const host of ['api.example.com:8443', 'API.example.com', 'api.example.com.', 'api%2eexample.com'])
    expect([host, (await world.send(`https://${host}/a`)).status]).toEqual([host, 429]);
});

it('a path that its readers could take for several is forwarded as the one that rules were matched against', async () => {
  const world = new GatewayWorld(file([byAddress(ONE_A_MINUTE)]));
  // As the runtime hands out what a socket brought; a request that is made here would have it folded already.
  const request = new Request('https://api.example.com/as-sent', {
    method: 'POST',
    body: 'sent',
    headers: { 'CF-Connecting-IP': '192.0.2.1' },
  });
  Object.defineProperty(request, 'url', { value: 'https://api.example.com/x\\..\\login?next=a%2e' });
  expect((await world.sendAsIs(request)).status).toBe(200);
  const [seen] = world.seen;
  expect([seen?.url, seen?.method, await seen?.text()]).toEqual([
    'https://api.example.com/login?next=a%2e',
    'POST',
    'sent',
  ]);
});

it('preflights that each invent a header are stopped, whatever a local rule counts by that header', async () => {
  const rule = { key: 'plan', rate_limit: { ...ONE_A_MINUTE, scope: 'local' } };
  const world = new GatewayWorld(file([rule], { attributes: { plan: { header: 'x-plan' } } }));
  const statuses = new Set<number>();
  for (let sent = 0; sent < 6_001; sent += 1) {
    const headers = {
      Origin: 'https://app.example.com',
      'Access-Control-Request-Method': 'GET',
      'X-Plan': `p${sent}`,
    };
    statuses.add((await world.send('/a', { method: 'OPTIONS', headers })).status);
  }
  expect(statuses).toEqual(new Set([200, 429]));
  expect(world.seen).toHaveLength(6_000);
});

it('a denial tells what is left of a local rule after its charge has been given back', async () => {
  const local = byAddress({ ...ONE_A_MINUTE, requests_per_unit: 50, scope: 'local', policy: 'flood' });
  const world = new GatewayWorld(file([byAddress(ONE_A_MINUTE), local]));
  await world.send('/a');
  for (let sent = 0; sent < 3; sent += 1) {
    const denied = await world.send('/a');
    expect(denied.status).toBe(429);
    expect(denied.headers.get('RateLimit')).toContain('"flood";r=49;');
  }
});

it('C11 a reset that is a time of day is the decision’s, however long the origin takes', async () => {
  const origin = () => {
    vi.setSystemTime(START_MS + 7_000);
    return new Response('at last');
  };
  const limits = file([byAddress({ ...ONE_A_MINUTE, requests_per_unit: 60 })], { headers: 'legacy' });
  const response = await new GatewayWorld(limits, { origin }).send('/a');
  expect(response.headers.get('X-RateLimit-Reset')).toBe(String(START_MS / 1_000 + 1));
});

it('what a browser may read of it depends on its origin, and caches are told', async () => {
  const limits = file([byAddress(ONE_A_MINUTE)], { cors: { allow_origins: ['https://app.example.com'] } });
  const world = new GatewayWorld(limits);
  const headers = { Origin: 'https://app.example.com' };
  expect((await world.send('/a', { headers })).headers.get('Vary')).toBe('Origin');
  expect((await world.send('/a', { address: '192.0.2.9' })).headers.get('Vary')).toBe('Origin');
});
