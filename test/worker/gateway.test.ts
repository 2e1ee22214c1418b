/** The gateway over HTTP, in workerd, with real owners: what a client sees and what an origin sees. */
import { createExecutionContext, reset, waitOnExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { Hono } from 'hono';
import { type Item, parseList } from 'structured-headers';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { forward } from '../../src/gateway/forward.ts';
import { type LimiterEnv, rateLimit } from '../../src/gateway/rate-limit.ts';
import { bundledSnapshot } from '../../src/gateway/snapshot.ts';
import { GatewayWorld, isolateOf, rulesetOf } from './gateway-world.ts';

/** Ahead of the real clock, by which the alarms of owners go off. */
const START_MS = Date.UTC(2100, 5, 1);

const TWO_A_MINUTE = { unit: 'minute', requests_per_unit: 2 };
const byAddress = (limit: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  domain: 'test',
  ...more,
  descriptors: [{ key: 'remote_address', rate_limit: limit }],
});

/** `RateLimit` fields as a client's library reads them. */
function members(response: Response, field: string): Record<string, Record<string, unknown>> {
  const list = parseList(response.headers.get(field) ?? '') as Item[];
  return Object.fromEntries(
    list.map(([name, parameters]) => [name as string, Object.fromEntries(parameters)]),
  );
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: START_MS });
});

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
});

describe('an allowed request', () => {
  it('A11 reaches the origin and comes back with the limit fields', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    const response = await world.send('/a');
    expect(response.status).toBe(200);
    expect(await response.text()).toBe('from the origin');
    expect(response.headers.get('RateLimit-Policy')).toBe('"default";q=2;w=60');
    expect(response.headers.get('RateLimit')).toBe('"default";r=1;t=30');
  });

  it('keeps method, path, query, headers and body on its way', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      origin: async (request) =>
        Response.json([request.method, request.url, request.headers.get('x-own'), await request.text()]),
    });
    const response = await world.send('/a%20b//c?x=1&x=2', {
      method: 'PUT',
      body: 'the body',
      headers: { 'x-own': 'yes' },
    });
    expect(await response.json()).toEqual([
      'PUT',
      'https://api.example.com/a%20b//c?x=1&x=2',
      'yes',
      'the body',
    ]);
  });

  it('H01 H05 two policies are two items of one field, the most constrained first', async () => {
    const world = new GatewayWorld(
      byAddress([{ unit: 'day', requests_per_unit: 1_000, policy: 'daily' }, TWO_A_MINUTE] as never),
    );
    const response = await world.send('/a');
    expect(response.headers.get('RateLimit-Policy')).toBe('"default";q=2;w=60, "daily";q=1000;w=86400');
    expect(Object.keys(members(response, 'RateLimit'))).toEqual(['default', 'daily']);
  });

  it('replaces fields of the same names that the origin wrote', async () => {
    const headers = { RateLimit: '"origin";r=5;t=1', 'RateLimit-Policy': '"origin";q=5;w=1' };
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), { origin: () => new Response('', { headers }) });
    const response = await world.send('/a');
    expect(Object.keys(members(response, 'RateLimit'))).toEqual(['default']);
    expect(Object.keys(members(response, 'RateLimit-Policy'))).toEqual(['default']);
  });

  it('that leaves its whole quota is told a reset of 0', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE, { costs: [{ route: '/free', cost: 0 }] }));
    expect((await world.send('/free')).headers.get('RateLimit')).toBe('"default";r=2;t=0');
  });

  it('of a leaky bucket reaches the origin no sooner than its turn, and one whose wait is too long never', async () => {
    const seenAtMs: number[] = [];
    const queue = { unit: 'second', requests_per_unit: 10, algorithm: 'leaky_bucket', max_delay: '250ms' };
    const world = new GatewayWorld(byAddress(queue), {
      origin: () => {
        seenAtMs.push(performance.now());
        return new Response('from the origin');
      },
    });
    const responses = await Promise.all(['/a', '/b', '/c', '/d'].map((path) => world.send(path)));
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 200, 429]);
    const [first = Number.NaN, second, third] = seenAtMs;
    expect(seenAtMs).toHaveLength(3);
    expect(second).toBeGreaterThanOrEqual(first + 100);
    expect(third).toBeGreaterThanOrEqual(first + 200);
  });

  it('S03 that a shadow rule would have denied says nothing of it, and nothing of when to come back', async () => {
    const world = new GatewayWorld(
      byAddress([
        { unit: 'minute', requests_per_unit: 10 },
        { unit: 'minute', requests_per_unit: 1, policy: 'trial', shadow_mode: true },
      ] as never),
    );
    for (const left of [9, 8, 7]) {
      const response = await world.send('/a');
      expect([response.status, response.headers.has('Retry-After')]).toEqual([200, false]);
      expect(members(response, 'RateLimit')).toEqual({ default: { r: left, t: 6 * (10 - left) } });
      expect(Object.keys(members(response, 'RateLimit-Policy'))).toEqual(['default']);
    }
  });

  it('passes unlimited and unmatched requests without fields', async () => {
    const world = new GatewayWorld({
      domain: 'test',
      descriptors: [{ key: 'route', value: '/free', rate_limit: { unlimited: true } }],
    });
    for (const path of ['/free', '/other'])
      expect((await world.send(path)).headers.has('RateLimit')).toBe(false);
  });
});

describe('a denied request', () => {
  it('A11 is a 429 that never reaches the origin and says when to come back', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    await world.send('/a');
    await world.send('/a');
    const response = await world.send('/a');
    expect(world.seen).toHaveLength(2);
    expect(response.status).toBe(429);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/problem+json',
      ratelimit: '"default";r=0;t=30',
      'ratelimit-policy': '"default";q=2;w=60',
      'retry-after': '30',
    });
    expect(await response.json()).toEqual({
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Too Many Requests',
      status: 429,
      error: 'rate_limited',
      message: 'API rate limit exceeded for this address.',
      'violated-policies': ['default'],
      retry_after: 30,
    });
  });

  it('A01 a client that waits exactly Retry-After is admitted, one that comes a second early is not', async () => {
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 7, burst: 1 }));
    await world.send('/a');
    const retryAfter = Number((await world.send('/a')).headers.get('Retry-After'));
    vi.setSystemTime(Date.now() + (retryAfter - 1) * 1_000);
    expect((await world.send('/a')).status).toBe(429);
    vi.setSystemTime(Date.now() + 1_000);
    expect((await world.send('/a')).status).toBe(200);
  });

  it.each([
    [0, 30],
    [0.5, 31],
    [0.999, 32],
  ])(
    'of a counter that callers share comes back spread over the seconds after (%d: %d)',
    async (random, seconds) => {
      const world = new GatewayWorld({
        domain: 'test',
        descriptors: [{ key: 'host', rate_limit: TWO_A_MINUTE }],
      });
      await world.send('/a');
      await world.send('/a');
      vi.spyOn(Math, 'random').mockReturnValue(random);
      const denied = await world.send('/a');
      vi.restoreAllMocks();
      expect(denied.headers.get('Retry-After')).toBe(String(seconds));
      expect(members(denied, 'RateLimit')).toEqual({ default: { r: 0, t: seconds } });
      expect(await denied.json()).toMatchObject({ retry_after: seconds });
    },
  );

  it('A21 of several that deny, the longest wait is told and all are named', async () => {
    const world = new GatewayWorld(
      byAddress([
        { unit: 'hour', requests_per_unit: 1 },
        { unit: 'day', requests_per_unit: 1, policy: 'daily' },
      ] as never),
    );
    await world.send('/a');
    const response = await world.send('/a');
    expect(response.headers.get('Retry-After')).toBe('86400');
    expect(await response.json()).toMatchObject({ 'violated-policies': ['default', 'daily'] });
  });

  it('B05 that can never fit gets no Retry-After, and says so', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE, { costs: [{ route: '/dear', cost: 3 }] }));
    const response = await world.send('/dear');
    expect(response.status).toBe(429);
    expect(response.headers.has('Retry-After')).toBe(false);
    expect(await response.json()).toMatchObject({ error: 'cost_exceeds_limit' });
    expect(members(await world.send('/a'), 'RateLimit')).toEqual({ default: { r: 1, t: 30 } });
  });

  it('H09 no cache keeps it, whatever the route says of its answers', async () => {
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 1 }), {
      origin: () => new Response('', { headers: { 'Cache-Control': 'public, max-age=300' } }),
    });
    expect((await world.send('/a')).headers.get('Cache-Control')).toBe('public, max-age=300');
    expect((await world.send('/a')).headers.get('Cache-Control')).toBe('no-store');
  });
});

describe('header modes', () => {
  const limits = (headers: string) =>
    byAddress(TWO_A_MINUTE, { headers, costs: [{ route: '/two', cost: 2 }] });

  it('A11 legacy: the most constrained policy, with the reset as an epoch time and the cost where costs are in use', async () => {
    const response = await new GatewayWorld(limits('legacy')).send('/two');
    expect(response.headers.has('RateLimit')).toBe(false);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'x-ratelimit-limit': '2',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(START_MS / 1_000 + 60),
      'x-ratelimit-cost': '2',
    });
  });

  it('both', async () => {
    const { headers } = await new GatewayWorld(limits('both')).send('/a');
    expect([headers.has('RateLimit'), headers.has('X-RateLimit-Limit')]).toEqual([true, true]);
  });

  it('H03 none: no field, allowed or denied, but a denial still says when to come back', async () => {
    const world = new GatewayWorld(limits('none'));
    expect(
      [...(await world.send('/two')).headers.keys()].filter((name) => name.includes('ratelimit')),
    ).toEqual([]);
    const denied = await world.send('/a');
    expect([...denied.headers.keys()].filter((name) => name.includes('ratelimit'))).toEqual([]);
    expect(denied.headers.get('Retry-After')).toBe('30');
  });
});

describe('who is calling', () => {
  const keyed = {
    domain: 'test',
    identity: {
      api_key: ['authorization', 'x-api-key', 'query:api_key'],
      keys: [{ key: 'k_good', tier: 'paid' }],
    },
    descriptors: [
      { key: 'tier', value: 'paid', rate_limit: { unit: 'minute', requests_per_unit: 100 } },
      { key: 'remote_address', rate_limit: TWO_A_MINUTE },
    ],
  };
  const quota = async (world: GatewayWorld, path: string, init = {}) =>
    members(await world.send(path, init), 'RateLimit-Policy').default?.q;

  it.each([
    ['Authorization', '/a', { headers: { Authorization: 'Bearer k_good' } }],
    ['a scheme in another case', '/a', { headers: { Authorization: 'bEARER k_good' } }],
    ['a header', '/a', { headers: { 'X-API-Key': 'k_good' } }],
    ['a query parameter', '/a?api_key=k_good', {}],
  ])('is found by %s', async (_, path, init) => {
    expect(await quota(new GatewayWorld(keyed), path, init)).toBe(100);
  });

  it.each([
    ['unknown', '/a', { headers: { Authorization: 'Bearer k_bad' } }],
    ['empty', '/a', { headers: { Authorization: 'Bearer ' } }],
    ['of another scheme', '/a', { headers: { Authorization: 'Basic k_good' } }],
    ['repeated', '/a', { headers: { 'X-API-Key': 'k_good, k_good' } }],
    ['repeated in the query', '/a?api_key=k_good&api_key=k_good', {}],
    ['too long', '/a', { headers: { 'X-API-Key': 'k'.repeat(5_000) } }],
    ['not text', '/a?api_key=%00%ff%0a', {}],
  ])('a key that is %s is no key, and no bypass', async (_, path, init) => {
    const world = new GatewayWorld(keyed);
    expect(await quota(world, path, init)).toBe(2);
    await world.send(path, init);
    expect((await world.send(path, init)).status).toBe(429);
  });

  describe('where a rule of a class counts each caller', () => {
    const classed = (unknownKeys?: string) => ({
      domain: 'test',
      identity: {
        api_key: ['authorization', 'x-api-key', 'query:api_key'],
        default: { tier: 'free' },
        ...(unknownKeys && { unknown_keys: unknownKeys }),
      },
      descriptors: [
        { key: 'tier', value: 'free', rate_limit: TWO_A_MINUTE },
        { key: 'remote_address', rate_limit: { unit: 'minute', requests_per_unit: 100, policy: 'flood' } },
      ],
    });
    type Shown = (round: number) => { readonly path?: string; readonly headers?: Record<string, string> };
    const inRounds = async (world: GatewayWorld, shown: Shown) => {
      const statuses = [];
      for (const round of [1, 2, 3]) {
        const { path = '/a', ...init } = shown(round);
        statuses.push((await world.send(path, init)).status);
      }
      return statuses;
    };

    const KEYS: readonly [string, Shown][] = [
      ['in Authorization', (round) => ({ headers: { Authorization: `Bearer invented_${round}` } })],
      ['in a header', (round) => ({ headers: { 'X-API-Key': `invented_${round}` } })],
      ['in the query', (round) => ({ path: `/a?api_key=invented_${round}` })],
      ['as long as a key may be', (round) => ({ headers: { 'X-API-Key': `${'k'.repeat(511)}${round}` } })],
    ];

    it.each(KEYS)('invented keys %s are counted by the address that they come from', async (_, shown) => {
      const world = new GatewayWorld(classed());
      expect(await inRounds(world, shown)).toEqual([200, 200, 429]);
      expect((await world.send('/a', { address: '192.0.2.2' })).status).toBe(200);
    });

    it.each(KEYS)('keys %s are each a caller of its own, if the file says so', async (_, shown) => {
      expect(await inRounds(new GatewayWorld(classed('subject')), shown)).toEqual([200, 200, 200]);
    });

    it.each<[string, Shown]>([
      ['too long', (round) => ({ headers: { 'X-API-Key': `${'k'.repeat(512)}${round}` } })],
      [
        'too long for a token',
        (round) => ({ headers: { Authorization: `Bearer ${'k'.repeat(512)}${round}` } }),
      ],
      ['too long for a query', (round) => ({ path: `/a?api_key=${'k'.repeat(512)}${round}` })],
      ['repeated', (round) => ({ headers: { 'X-API-Key': `k_${round}, k_${round}` } })],
      ['repeated in the query', (round) => ({ path: `/a?api_key=k_${round}&api_key=k_${round}` })],
      ['a list with commas', (round) => ({ headers: { 'X-API-Key': `k_${round},k_0` } })],
      ['a token with commas', (round) => ({ headers: { Authorization: `Bearer k_${round},k_0` } })],
      ['a list in the query', (round) => ({ path: `/a?api_key=k_${round},k_0` })],
      ['not text', (round) => ({ path: `/a?api_key=k_${round}%00%ff%0a` })],
      ['not ASCII', (round) => ({ path: `/a?api_key=k_%C3%A9_${round}` })],
    ])('what is %s is no key, even there', async (_, shown) => {
      expect(await inRounds(new GatewayWorld(classed('subject')), shown)).toEqual([200, 200, 429]);
    });
  });

  it('E13 rotating X-Forwarded-For neither escapes nor locks anybody out', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    const statuses = [];
    for (const last of [1, 2, 3]) {
      const headers = { 'X-Forwarded-For': `203.0.113.${last}` };
      statuses.push((await world.send('/a', { headers })).status);
    }
    expect(statuses).toEqual([200, 200, 429]);
    expect((await world.send('/a', { address: '203.0.113.1' })).status).toBe(200);
  });

  it('behind a trusted proxy the address is counted from the right', async () => {
    const world = new GatewayWorld(
      byAddress({ unit: 'minute', requests_per_unit: 1 }, { identity: { trusted_hops: 1 } }),
    );
    const from = (list: string) => world.send('/a', { headers: { 'X-Forwarded-For': list } });
    expect((await from('198.51.100.7, 203.0.113.1')).status).toBe(200);
    expect((await from('198.51.100.8, 203.0.113.1')).status).toBe(429);
    expect((await from('198.51.100.7, 203.0.113.2')).status).toBe(200);
  });

  it('E11 spellings of one address are one caller', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    const statuses = [];
    for (const address of ['1.2.3.4', '::ffff:1.2.3.4', '::FFFF:102:304'])
      statuses.push((await world.send('/a', { address })).status);
    expect(statuses).toEqual([200, 200, 429]);
  });
});

describe('where a request comes from', () => {
  const file = {
    domain: 'test',
    descriptors: [
      { key: 'country', rate_limit: { ...TWO_A_MINUTE, policy: 'country' } },
      { key: 'asn', rate_limit: { ...TWO_A_MINUTE, policy: 'asn' } },
      { key: 'host', rate_limit: TWO_A_MINUTE },
    ],
  };

  it('is what the platform says', async () => {
    const response = await new GatewayWorld(file).send('/a', { cf: { country: 'FR', asn: 64_496 } });
    expect(Object.keys(members(response, 'RateLimit-Policy')).sort()).toEqual(['asn', 'country', 'default']);
  });

  it('is unknown where the platform says nothing, and the limits of other rules hold', async () => {
    const world = new GatewayWorld(file);
    const responses = [await world.send('/a'), await world.send('/a'), await world.send('/a')];
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 429]);
    for (const response of responses)
      expect(Object.keys(members(response, 'RateLimit-Policy'))).toEqual(['default']);
  });
});

describe('what is asked for', () => {
  const login = {
    domain: 'test',
    descriptors: [{ key: 'route', value: '/login', rate_limit: TWO_A_MINUTE }],
  };

  it.each(['//login', '/login/', '/./login', '/%6Cogin', '/x/../login', '/login?x=1', '/login#top'])(
    'E07 E09 %s is /login',
    async (path) => {
      const world = new GatewayWorld(login);
      await world.send('/login');
      await world.send('/login');
      expect((await world.send(path)).status).toBe(429);
    },
  );

  it('HEAD shares what GET has, and answers without a body', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    await world.send('/a', { method: 'HEAD' });
    await world.send('/a');
    const denied = await world.send('/a', { method: 'HEAD' });
    expect(denied.status).toBe(429);
    expect(denied.headers.get('Retry-After')).toBe('30');
    expect(await denied.text()).toBe('');
  });

  it('an allowed HEAD is one for the origin too, and comes back with the limit fields and no body', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      origin: () => new Response('from the origin', { headers: { 'X-Own': 'yes' } }),
    });
    const response = await world.send('/a', { method: 'HEAD' });
    expect(world.seen.map(({ method }) => method)).toEqual(['HEAD']);
    expect([response.status, response.headers.get('X-Own')]).toEqual([200, 'yes']);
    expect(response.headers.get('RateLimit-Policy')).toBe('"default";q=2;w=60');
    expect(response.headers.get('RateLimit')).toBe('"default";r=1;t=30');
    expect(await response.text()).toBe('');
  });
});

describe('browsers', () => {
  const cors = { cors: { allow_origins: ['https://app.example.com'] } };
  const preflight = (origin = 'https://app.example.com') => ({
    method: 'OPTIONS',
    headers: { Origin: origin, 'Access-Control-Request-Method': 'GET' },
  });

  it('X01 a preflight costs nothing, a plain OPTIONS does', async () => {
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 10 }, cors));
    for (let round = 0; round < 10; round += 1) {
      expect((await world.send('/a', preflight())).status).toBe(200);
      expect((await world.send('/a')).status).toBe(200);
    }
    expect((await world.send('/a', { method: 'OPTIONS' })).status).toBe(429);
  });

  it.each([
    ['Access-Control-Request-Method', { Origin: 'https://app.example.com' }],
    ['Origin', { 'Access-Control-Request-Method': 'GET' }],
  ])('an OPTIONS without %s is no preflight: it is counted', async (_, headers) => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE, cors));
    const response = await world.send('/a', { method: 'OPTIONS', headers });
    expect(response.headers.get('RateLimit')).toBe('"default";r=1;t=30');
    await world.send('/a');
    expect((await world.send('/a', { method: 'OPTIONS', headers })).status).toBe(429);
    expect((await world.send('/a', preflight())).status).toBe(200);
  });

  it('preflights without end are stopped by the built-in tier, or by the flood tier of the file', async () => {
    const builtIn = new GatewayWorld(byAddress(TWO_A_MINUTE, cors));
    const statuses = new Set<number>();
    for (let sent = 0; sent < 6_001; sent += 1) statuses.add((await builtIn.send('/a', preflight())).status);
    expect(statuses).toEqual(new Set([200, 429]));
    expect(builtIn.seen).toHaveLength(6_000);
    const tiered = new GatewayWorld(byAddress({ ...TWO_A_MINUTE, scope: 'local', policy: 'flood' }, cors));
    for (let sent = 0; sent < 3; sent += 1) await tiered.send('/a', preflight());
    expect(tiered.seen).toHaveLength(2);
  });

  it('can read a denial, if the file names their origin', async () => {
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 0 }, cors));
    const named = await world.send('/a', { headers: { Origin: 'https://app.example.com' } });
    expect(named.headers.get('Access-Control-Allow-Origin')).toBe('https://app.example.com');
    expect(named.headers.get('Access-Control-Expose-Headers')).toContain('Retry-After');
    expect(named.headers.get('Vary')).toContain('Origin');
    const other = await world.send('/a', { headers: { Origin: 'https://evil.example' } });
    expect(other.headers.has('Access-Control-Allow-Origin')).toBe(false);
  });

  it('can read the limit fields of what the origin allows them', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE, cors));
    const response = await world.send('/a', { headers: { Origin: 'https://app.example.com' } });
    expect(response.headers.get('Access-Control-Expose-Headers')).toContain('RateLimit');
  });
});

describe('an answer with immutable headers', () => {
  const FAR = 'https://far.example/there';
  const FIELDS = { ratelimit: '"default";r=1;t=30', 'ratelimit-policy': '"default";q=2;w=60' };
  const far = async () => {
    const response = await fetch(FAR);
    expect(() => response.headers.set('X-Own', 'yes')).toThrow(TypeError);
    return response;
  };

  it('H07 of the origin gets the limit fields, and keeps what it says', async () => {
    const response = await new GatewayWorld(byAddress(TWO_A_MINUTE), { origin: far }).send('/a');
    expect(Object.fromEntries(response.headers)).toMatchObject(FIELDS);
    expect([response.status, await response.text()]).toEqual([200, `from ${FAR}`]);
  });

  it('H07 of the origin is one that can be written on, once it is forwarded', async () => {
    const ORIGIN = { fetch: far } as unknown as Fetcher;
    const response = await forward(new Request('https://api.example.com/a'), { ORIGIN });
    response.headers.set('X-Own', 'yes');
    expect([response.headers.get('X-Own'), await response.text()]).toEqual(['yes', `from ${FAR}`]);
  });

  it('H07 of a route of the same app gets them too', async () => {
    const snapshot = bundledSnapshot(rulesetOf(byAddress(TWO_A_MINUTE)));
    const app = new Hono<LimiterEnv>().use(rateLimit({ rules: () => snapshot })).get('/a', far);
    const headers = { 'CF-Connecting-IP': '192.0.2.1' };
    const context = createExecutionContext();
    const asked = new Request('https://api.example.com/a', { headers });
    const response = await app.fetch(asked, { OWNER: isolateOf(env.OWNER) }, context);
    await waitOnExecutionContext(context);
    expect(Object.fromEntries(response.headers)).toMatchObject(FIELDS);
    expect([response.status, await response.text()]).toEqual([200, `from ${FAR}`]);
  });
});

describe('the origin', () => {
  it('H07 its stream is not held', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      origin: () => {
        const { readable, writable } = new TransformStream();
        const writer = writable.getWriter();
        void writer.write(new TextEncoder().encode('first'));
        return new Response(readable);
      },
    });
    const response = await world.send('/stream');
    const reader = response.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toBe('first');
    await reader?.cancel();
  });

  it.each([204, 301, 304, 404, 500])('its status %i and headers stay as they are', async (status) => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      origin: () => new Response(null, { status, headers: { Location: '/there', 'X-Own': 'yes' } }),
    });
    const response = await world.send('/a', { redirect: 'manual' });
    expect([response.status, response.headers.get('X-Own')]).toEqual([status, 'yes']);
    expect(response.headers.has('RateLimit')).toBe(true);
  });

  it('is the route’s own where none is bound: the very request goes there', async () => {
    const fetched = vi.spyOn(globalThis, 'fetch').mockResolvedValue(new Response('from the route'));
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 1 }), { origin: null });
    const request = new Request('https://api.example.com/a%20b?x=1', {
      method: 'PUT',
      body: 'the body',
      headers: { 'CF-Connecting-IP': '192.0.2.1' },
    });
    const response = await world.sendAsIs(request);
    expect([response.status, await response.text()]).toEqual([200, 'from the route']);
    expect(response.headers.get('RateLimit')).toBe('"default";r=0;t=60');
    expect((await world.send('/a')).status).toBe(429);
    expect(fetched.mock.calls).toHaveLength(1);
    const [asked, ...options] = fetched.mock.calls[0] ?? [];
    expect(asked).toBe(request);
    expect(options).toEqual([]);
  });

  it('that fails is a 502 with the limit fields', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      origin: () => Promise.reject(new Error('connection refused')),
    });
    const response = await world.send('/a');
    expect(response.status).toBe(502);
    expect(await response.json()).toMatchObject({ error: 'origin_failed' });
    expect(response.headers.get('RateLimit')).toBe('"default";r=1;t=30');
  });

  it('a WebSocket upgrade counts once and passes through; a denied one is a plain 429', async () => {
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 1 }), {
      origin: () => {
        const { 0: client, 1: server } = new WebSocketPair();
        server.accept();
        server.addEventListener('message', ({ data }) => server.send(`echo ${data}`));
        return new Response(null, { status: 101, webSocket: client });
      },
    });
    const upgrade = { headers: { Upgrade: 'websocket' } };
    const response = await world.send('/ws', upgrade);
    expect(response.status).toBe(101);
    const socket = response.webSocket;
    socket?.accept();
    const answer = new Promise((resolve) => socket?.addEventListener('message', ({ data }) => resolve(data)));
    socket?.send('hello');
    expect(await answer).toBe('echo hello');
    socket?.close();
    expect((await world.send('/ws', upgrade)).status).toBe(429);
  });
});

describe('faults of the limiter itself', () => {
  const file = {
    domain: 'test',
    descriptors: [
      { key: 'remote_address', rate_limit: TWO_A_MINUTE },
      {
        key: 'route',
        value: '/login',
        rate_limit: { ...TWO_A_MINUTE, policy: 'login', failure_mode: 'closed' },
      },
    ],
  };

  it('F17 a planted throw forwards on open routes, and is a 503 on closed ones', async () => {
    const log = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const world = new GatewayWorld(file, {
      identify: () => {
        throw new TypeError('planted');
      },
    });
    const open = await world.send('/a');
    expect([open.status, await open.text()]).toEqual([200, 'from the origin']);
    const closed = await world.send('/Login/../login/');
    expect([closed.status, closed.headers.get('Retry-After')]).toEqual([503, '1']);
    expect(world.seen).toHaveLength(1);
    expect(log.mock.calls.join()).toContain('limiter_fault');
    log.mockRestore();
  });

  it('a cost function that throws or answers nonsense leaves the cost of the rules', async () => {
    const log = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const costs = [
      () => {
        throw new TypeError('planted');
      },
      () => Number.NaN,
      () => -1,
      () => 0.5,
      () => 'many' as unknown as number,
    ];
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 100 }), {
      cost: () => (costs.shift() ?? (() => 2))(),
    });
    for (let sent = 0; sent < 5; sent += 1) await world.send('/a');
    expect(members(await world.send('/a'), 'RateLimit').default?.r).toBe(93);
    log.mockRestore();
  });
});

describe('reserved paths', () => {
  it('health answers without a token and costs nothing', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    for (let asked = 0; asked < 5; asked += 1) await world.send('/_limiter/health');
    const response = await world.send('/_limiter/health', { cf: { continent: 'OC', country: 'AU' } });
    expect(await response.json()).toEqual({
      status: 'ok',
      activation: 0,
      rulesSource: 'bundled',
      region: 'oc',
    });
    expect(members(await world.send('/a'), 'RateLimit').default?.r).toBe(1);
  });

  it('health is answered here even when there are no rules', async () => {
    const log = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE), {
      rules: () => {
        throw new Error('planted');
      },
    });
    const response = await world.send('/_limiter/health');
    expect([response.status, await response.json()]).toEqual([
      503,
      expect.objectContaining({ status: 'broken', region: 'enam' }),
    ]);
    expect(await (await world.send('/a')).text()).toBe('from the origin');
    log.mockRestore();
  });

  it('X03 a request that passes two mounts of one domain is charged once', async () => {
    const snapshot = bundledSnapshot(rulesetOf(byAddress(TWO_A_MINUTE)));
    const app = new Hono<LimiterEnv>();
    app.use('*', rateLimit({ rules: () => snapshot }));
    app.use('/a', rateLimit({ rules: () => snapshot }));
    app.get('/a', (context) => context.text('own'));
    const bindings = { OWNER: isolateOf(env.OWNER) };
    const headers = { 'CF-Connecting-IP': '192.0.2.1' };
    const told = [];
    for (let sent = 0; sent < 3; sent += 1) {
      const context = createExecutionContext();
      const request = new Request('https://api.example.com/a', { headers });
      const response = await app.fetch(request, bindings, context);
      await waitOnExecutionContext(context);
      told.push([response.status, response.headers.get('RateLimit')]);
    }
    expect(told).toEqual([
      [200, '"default";r=1;t=30'],
      [200, '"default";r=0;t=60'],
      [429, '"default";r=0;t=30'],
    ]);
  });

  it('anything else there is a 404 that the origin never sees', async () => {
    const world = new GatewayWorld(byAddress(TWO_A_MINUTE));
    const response = await world.send('/_limiter/v1/check', { method: 'POST', body: '{}' });
    expect([response.status, response.headers.get('Content-Type')]).toEqual([
      404,
      'application/problem+json',
    ]);
    expect(world.seen).toHaveLength(0);
  });
});

describe('Server-Timing', () => {
  it('names what decided, where it is asked for', async () => {
    const bindings = { SERVER_TIMING: 'true' };
    const world = new GatewayWorld(byAddress({ unit: 'minute', requests_per_unit: 1 }), { bindings });
    expect((await world.send('/a')).headers.get('Server-Timing')).toMatch(
      /^limiter;desc="owner";dur=\d+\.\d\d$/,
    );
    // The allowance that took the last unit is remembered.
    expect((await world.send('/a')).headers.get('Server-Timing')).toMatch(/^limiter;desc="deny_memory"/);
    const silent = new GatewayWorld(byAddress(TWO_A_MINUTE));
    expect((await silent.send('/a')).headers.has('Server-Timing')).toBe(false);
  });
});
