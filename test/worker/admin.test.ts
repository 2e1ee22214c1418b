/** The admin API over real objects: what an operator can do, and what nobody else can. */
import { evictDurableObject, listDurableObjectIds, reset, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { AdminWorld, perDay, rows, TOKEN } from './admin-world.ts';
import { sha256 } from './gateway-world.ts';

afterEach(async () => {
  vi.restoreAllMocks();
  vi.useRealTimers();
  await reset();
});

async function quotaTold(world: AdminWorld): Promise<number> {
  const response = await world.get('/');
  return Number(/q=(\d+)/.exec(response.headers.get('ratelimit-policy') ?? '')?.[1]);
}

async function statusesOf(world: AdminWorld, times: number): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < times; at += 1) statuses.push((await world.get('/')).status);
  return statuses;
}

function publish(world: AdminWorld, quota: number, more: Record<string, unknown> = {}) {
  const body = { rules: perDay(quota), message: `quota ${quota}`, ...more };
  return world.say('/v1/rulesets/test', {
    method: 'PUT',
    body,
    headers: { 'X-Limiter-Author': `op${quota}` },
  });
}

describe('versions', () => {
  it('are published, put in force without a deploy, listed, and keep what was counted', async () => {
    const world = new AdminWorld(perDay(10));
    expect(await quotaTold(world)).toBe(10);
    expect(await publish(world, 20)).toMatchObject({
      status: 201,
      body: { version: 1, activation: 1, warnings: [] },
    });
    await world.refresh();
    const response = await world.get('/');
    expect(response.headers.get('ratelimit')).toMatch(/r=18;/);
    expect((await publish(world, 30, { activate: false })).body).toEqual({ version: 2, warnings: [] });
    const { body } = await world.say('/v1/rulesets/test');
    expect(body.active).toMatchObject({ activation: 1, version: 1, author: 'op20', cause: 'publish' });
    expect(rows(body.versions, 'version', 'author', 'message')).toEqual([
      [2, 'op30', 'quota 30'],
      [1, 'op20', 'quota 20'],
    ]);
    expect((await world.say('/v1/rulesets/test/2')).body).toMatchObject({ version: 2, rules: perDay(30) });
  });

  it('L05 with mistakes are refused whole, with all of them and their places', async () => {
    const world = new AdminWorld(perDay(10));
    const rules = {
      domain: 'test',
      headers: 'loud',
      descriptors: [{ key: 'user', rate_limit: { unit: 'fortnight', requests_per_unit: -1 } }],
    };
    const { status, body } = await world.say('/v1/rulesets/test', {
      method: 'PUT',
      body: { rules, message: 'x' },
    });
    expect(status).toBe(422);
    expect(rows(body.errors, 'path').flat().sort()).toEqual([
      'descriptors[0].rate_limit.requests_per_unit',
      'descriptors[0].rate_limit.unit',
      'headers',
    ]);
    expect((await world.say('/v1/rulesets/test')).body).toMatchObject({ active: null, versions: [] });
  });

  it('with warnings are taken, and say so; of another domain are refused', async () => {
    const world = new AdminWorld(perDay(10));
    const rules = {
      domain: 'test',
      descriptors: [
        {
          key: 'remote_address',
          rate_limit: { unit: 'day', requests_per_unit: 5, per: [], consistency: 'strict' },
        },
      ],
    };
    const warned = await world.say('/v1/rulesets/test', { method: 'PUT', body: { rules, message: 'x' } });
    expect(warned.status).toBe(201);
    expect(warned.body.warnings).not.toEqual([]);
    const body = { rules: perDay(1, 'other'), message: 'x' };
    const refused = await world.say('/v1/rulesets/test', { method: 'PUT', body });
    expect([refused.status, rows(refused.body.errors, 'path')]).toEqual([422, [['domain']]]);
  });

  it('published by two at once both exist, one is in force, and the log says which', async () => {
    const [one, other] = [new AdminWorld(perDay(10)), new AdminWorld(perDay(10))];
    await Promise.all([publish(one, 20), publish(other, 30)]);
    const { body } = await one.say('/v1/rulesets/test');
    expect(body.versions).toHaveLength(2);
    expect(body.active).toMatchObject({ activation: 2 });
    const audit = await one.say('/v1/audit');
    const [last] = (audit.body.entries as { action: string }[]).filter(({ action }) => action === 'activate');
    const { version } = body.active as { version: number };
    expect(last).toMatchObject({ detail: { version, activation: 2 } });
    await Promise.all([one.refresh(), other.refresh()]);
    expect(await quotaTold(one)).toBe(await quotaTold(other));
  });

  it('are rolled back by a new activation, one version further each time', async () => {
    const world = new AdminWorld(perDay(10));
    const back = () => world.say('/v1/rulesets/test/rollback', { method: 'POST' });
    expect(await back()).toMatchObject({ status: 409 });
    await publish(world, 20);
    expect((await back()).status).toBe(409);
    await publish(world, 30);
    await publish(world, 40);
    expect((await back()).body).toEqual({ activation: 4, version: 2 });
    await world.refresh();
    expect(await quotaTold(world)).toBe(30);
    expect((await back()).body).toEqual({ activation: 5, version: 1 });
    expect((await back()).status).toBe(409);
    await publish(world, 50);
    expect((await back()).body).toEqual({ activation: 7, version: 1 });
    expect((await world.say('/v1/rulesets/test/3/activate', { method: 'POST' })).body).toEqual({
      activation: 8,
      version: 3,
    });
    expect((await world.say('/v1/rulesets/test/9/activate', { method: 'POST' })).status).toBe(404);
  });

  it('of a control plane that has lost count go on above what isolates have seen', async () => {
    const world = new AdminWorld(perDay(10));
    await publish(world, 20);
    const { body } = await world.say('/v1/rulesets/test/1/activate?atLeast=500', { method: 'POST' });
    expect(body).toEqual({ activation: 500, version: 1 });
    expect((await publish(world, 30)).body).toMatchObject({ activation: 501 });
  });

  it('are compared: what changes for whom', async () => {
    const world = new AdminWorld(perDay(10));
    await publish(world, 20);
    await publish(world, 30);
    const { body } = await world.say('/v1/rulesets/test/1/diff/2');
    expect(body).toMatchObject({ rules: { changed: [{}] } });
    expect(body.affected).not.toEqual([]);
  });

  it('outlive the object’s memory', async () => {
    const world = new AdminWorld(perDay(10));
    await publish(world, 20);
    await evictDurableObject(env.CONTROL.getByName('control'));
    expect((await publish(world, 30)).body).toMatchObject({ version: 2, activation: 2 });
  });

  it('L09 a reload of the same content changes no decision', async () => {
    const world = new AdminWorld(perDay(2));
    for (let at = 0; at < 5; at += 1) {
      await publish(world, 2);
      await world.refresh();
      await world.get('/');
    }
    expect((await world.get('/')).status).toBe(429);
  });

  it('L13 requests that were denied do not count when the limit is raised', async () => {
    const world = new AdminWorld(perDay(3));
    for (let at = 0; at < 10; at += 1) await world.get('/');
    await publish(world, 5);
    await world.refresh();
    expect(await statusesOf(world, 4)).toEqual([200, 200, 429, 429]);
  });

  it('L11 a limit of 0 denies, and the next one holds for callers that are known', async () => {
    const world = new AdminWorld(perDay(3));
    await world.get('/');
    await publish(world, 0);
    await world.refresh();
    expect(await statusesOf(world, 1)).toEqual([429]);
    await publish(world, 4);
    await world.refresh();
    expect(await statusesOf(world, 5)).toEqual([200, 200, 200, 200, 429]);
  });
});

describe('clamps', () => {
  const clamp = (world: AdminWorld, body: Record<string, unknown>, method = 'PUT') =>
    world.say('/v1/clamps', { method, body: { attributes: { remote_address: '192.0.2.1' }, ...body } });

  it('stop a caller at once, in isolates that have not heard of it too, and end by themselves', async () => {
    const [near, far] = [new AdminWorld(perDay(10)), new AdminWorld(perDay(10))];
    expect((await clamp(near, { action: 'deny', forSeconds: 60 })).body).toMatchObject({ told: true });
    const denied = await far.get('/');
    expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '60']);
    expect(far.isolate.snapshot.clamps.isEmpty).toBe(false);
    const again = await far.get('/');
    expect(again.headers.get('ratelimit-policy')).toContain('"clamp"');
    expect((await far.get('/', { address: '192.0.2.2' })).status).toBe(200);
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61_000 });
    expect((await far.get('/')).status).toBe(200);
    expect((await near.say('/v1/clamps')).body.clamps).toEqual([]);
    vi.useRealTimers();
  });

  it('limit beside the rules, lift the rules, are listed, and are lifted', async () => {
    const world = new AdminWorld(perDay(3));
    expect((await clamp(world, { action: 'unlimited', forSeconds: 60 })).status).toBe(200);
    await world.refresh();
    for (let at = 0; at < 9; at += 1) expect((await world.get('/')).status).toBe(200);
    await clamp(world, { action: 'limit', rpm: 2, forSeconds: 60 });
    await world.refresh();
    expect(await statusesOf(world, 4)).toEqual([200, 200, 429, 429]);
    const { body } = await world.say('/v1/clamps');
    expect(body.clamps).toMatchObject([
      { attributes: { remote_address: '192.0.2.1' }, action: 'limit', rpm: 2 },
    ]);
    expect((await clamp(world, {}, 'DELETE')).body).toMatchObject({
      lifted: { action: 'limit' },
      told: true,
    });
    await world.refresh();
    expect((await world.get('/')).status).toBe(200);
    expect((await clamp(world, {}, 'DELETE')).status).toBe(404);
  });

  it('that are raised count with the next refresh, whatever was denied a moment ago', async () => {
    const world = new AdminWorld(perDay(100));
    await clamp(world, { action: 'limit', rpm: 2, forSeconds: 60 });
    await world.refresh();
    expect(await statusesOf(world, 3)).toEqual([200, 200, 429]);
    await clamp(world, { action: 'limit', rpm: 50, forSeconds: 60 });
    await world.refresh();
    expect(await statusesOf(world, 1)).toEqual([200]);
  });

  it('S07 deny from the first request on, and a peek says so before it and after', async () => {
    const world = new AdminWorld(perDay(3));
    const attributes = { remote_address: '192.0.2.1' };
    const peek = async () => (await world.say('/v1/check', { body: { attributes, peek: true } })).body;
    await clamp(world, { action: 'deny', forSeconds: 60 });
    await world.refresh();
    for (let at = 0; at < 2; at += 1) {
      expect(await peek()).toMatchObject({ allowed: false, reason: 'clamped', retryAfterSeconds: 60 });
      expect(await statusesOf(world, 1)).toEqual([429]);
    }
  });

  it('on a key hold whoever it is, known or not, and whether or not anybody could be asked', async () => {
    const silent = {
      getByName: (name: string) => ({
        head: (domain: string) => env.CONTROL.getByName(name).head(domain),
        key: () => Promise.reject(new Error('down')),
      }),
    } as unknown as DurableObjectNamespace;
    const operator = new AdminWorld(perDay(10));
    await operator.say('/v1/keys', { method: 'PUT', body: { key: 'k_other', tier: 'gold' } });
    for (const key of ['k_1', 'k_2'])
      await clamp(operator, { action: 'deny', forSeconds: 60, attributes: { api_key: key } });
    for (const world of [new AdminWorld(perDay(10)), new AdminWorld(perDay(10), { CONTROL: silent })]) {
      await world.refresh();
      for (const key of ['k_1', 'k_2']) expect((await world.get('/', { key })).status).toBe(429);
      expect((await world.get('/', { key: 'k_3' })).status).toBe(200);
    }
  });

  it('on what no rule asks about hold as well', async () => {
    const rules = {
      domain: 'test',
      identity: { keys: [{ key: 'k_1', tier: 'gold' }] },
      descriptors: [{ key: 'tier', rate_limit: { unit: 'day', requests_per_unit: 99 } }],
    };
    const world = new AdminWorld(rules);
    await clamp(world, { action: 'deny', forSeconds: 60 });
    await clamp(world, { action: 'deny', forSeconds: 60, attributes: { host: 'api.example.com' } });
    await world.refresh();
    expect((await world.get('/', { key: 'k_1' })).status).toBe(429);
    await clamp(world, { attributes: { host: 'api.example.com' } }, 'DELETE');
    expect((await world.get('/', { key: 'k_1' })).status).toBe(429);
    expect((await world.get('/', { key: 'k_1', address: '192.0.2.2' })).status).toBe(200);
  });

  it('that limit one caller in two ways both hold, under two names', async () => {
    const world = new AdminWorld(perDay(10));
    await clamp(world, { action: 'limit', rpm: 5, forSeconds: 60 });
    await clamp(world, { action: 'limit', rpm: 2, forSeconds: 60, attributes: { host: 'api.example.com' } });
    await world.refresh();
    const response = await world.get('/');
    expect(response.headers.get('ratelimit-policy')).toMatch(/"clamp(-2)?";q=2.*"clamp(-2)?";q=5/);
    expect(await statusesOf(world, 2)).toEqual([200, 429]);
  });

  it('are seen by inspect and undone by reset as far as they count', async () => {
    const world = new AdminWorld(perDay(10));
    await clamp(world, { action: 'limit', rpm: 2, forSeconds: 60 });
    await world.refresh();
    expect(await statusesOf(world, 3)).toEqual([200, 200, 429]);
    const body = { attributes: { remote_address: '192.0.2.1' } };
    const seen = await world.say('/v1/counters/inspect', { body });
    expect(seen.body.clamp).toBe('limit');
    expect(rows(seen.body.counters, 'policy', 'remaining')).toEqual([
      ['default', 8],
      ['clamp', 0],
    ]);
    await world.say('/v1/counters/reset', { body });
    expect(await statusesOf(world, 1)).toEqual([200]);
    expect((await world.say('/v1/audit')).body.entries).toMatchObject([
      { action: 'reset' },
      { action: 'clamp' },
    ]);
  });

  it('survive the owner’s eviction and a change of the rules', async () => {
    const world = new AdminWorld(perDay(10));
    await clamp(world, { action: 'deny', forSeconds: 600 });
    const [id] = await import('cloudflare:test').then(({ listDurableObjectIds }) =>
      listDurableObjectIds(env.OWNER),
    );
    await runInDurableObject(env.OWNER.get(id!), async (_, state) => state.storage.sync());
    await evictDurableObject(env.OWNER.get(id!));
    await publish(world, 20);
    expect((await new AdminWorld(perDay(10)).get('/')).status).toBe(429);
  });

  it.each([
    ['an unknown action', { action: 'ban', forSeconds: 1 }],
    ['a limit without a rate', { action: 'limit', forSeconds: 1 }],
    ['a denial with a rate', { action: 'deny', rpm: 5, forSeconds: 1 }],
    ['no time', { action: 'deny' }],
    ['a time of nothing', { action: 'deny', forSeconds: 0 }],
    ['no caller', { action: 'deny', forSeconds: 1, attributes: {} }],
    [
      'an address that is none',
      { action: 'deny', forSeconds: 1, attributes: { remote_address: 'nonsense' } },
    ],
    ['a network', { action: 'deny', forSeconds: 1, attributes: { remote_address: '192.0.2.0/24' } }],
    ['an attribute that no request has', { action: 'deny', forSeconds: 1, attributes: { colour: 'red' } }],
    ['the subject', { action: 'deny', forSeconds: 1, attributes: { subject: 'x' } }],
  ])('with %s are refused with the place', async (_, body) => {
    const { status, body: said } = await clamp(new AdminWorld(perDay(10)), body);
    expect(status).toBe(422);
    expect(said.errors).not.toEqual([]);
  });
});

describe('the key directory', () => {
  const RULES = {
    domain: 'test',
    identity: { default: { tier: 'none' } },
    descriptors: [
      { key: 'tier', value: 'none', rate_limit: { unit: 'day', requests_per_unit: 1 } },
      { key: 'tier', value: 'gold', rate_limit: { unit: 'day', requests_per_unit: 100 } },
      {
        key: 'label_plan',
        value: 'trial',
        rate_limit: { policy: 'trial', unit: 'day', requests_per_unit: 7 },
      },
    ],
  };
  const told = async (world: AdminWorld, key: string) =>
    (await world.get('/', { key })).headers.get('ratelimit-policy');

  it('says who shows a key: tier, labels, disabled, expired, revoked', async () => {
    const world = new AdminWorld(RULES);
    const keys = [
      { key: 'k_gold', tier: 'gold', org: 'acme', labels: { plan: 'trial' } },
      { keySha256: sha256('k_off'), tier: 'gold', disabled: true },
      { key: 'k_old', tier: 'gold', expiresAt: '2020-01-01T00:00:00Z' },
    ];
    expect((await world.say('/v1/keys', { method: 'PUT', body: { keys } })).body).toEqual({ stored: 3 });
    await world.refresh();
    expect(await told(world, 'k_gold')).toBe('"trial";q=7;w=86400, "default";q=100;w=86400');
    for (const key of ['k_off', 'k_old', 'k_unknown']) expect(await told(world, key)).toContain('q=1;');
    const revoked = await world.say('/v1/keys', { method: 'DELETE', body: { key: 'k_gold' } });
    expect(revoked.body).toEqual({ removed: 1 });
    expect(await told(world, 'k_gold')).toContain('q=1;');
    expect((await world.say('/v1/keys', { method: 'DELETE', body: { key: 'k_gold' } })).status).toBe(404);
  });

  it('is read page by page, and key by key', async () => {
    const world = new AdminWorld(RULES);
    const keys = Array.from({ length: 25 }, (_, at) => ({ key: `k_${at}`, tier: 'gold' }));
    await world.say('/v1/keys', { method: 'PUT', body: { keys } });
    const seen: string[] = [];
    let after = '';
    for (;;) {
      const { body } = await world.say(`/v1/keys?limit=10&after=${after}`);
      seen.push(...rows(body.keys, 'keySha256').flat().map(String));
      if (body.next === null) break;
      after = String(body.next);
    }
    expect(seen).toEqual(keys.map(({ key }) => sha256(key)).sort());
    expect((await world.say(`/v1/keys?keySha256=${sha256('k_3')}`)).body).toMatchObject({
      keys: [{ tier: 'gold' }],
    });
    expect((await world.say(`/v1/keys?keySha256=${sha256('none')}`)).status).toBe(404);
  });

  it('says which key of a list has which mistake', async () => {
    const keys = [{ key: 'k_1' }, { key: 'k_2', tier: 7 }, { tier: 'gold' }];
    const { status, body } = await new AdminWorld(RULES).say('/v1/keys', { method: 'PUT', body: { keys } });
    expect([status, rows(body.errors, 'path').flat()]).toEqual([422, ['keys[1].tier', 'keys[2]']]);
  });

  it('is not asked while it is empty', async () => {
    const world = new AdminWorld(RULES);
    await world.refresh();
    expect(world.isolate.lookUp(() => {})).toBeUndefined();
    await world.say('/v1/keys', { method: 'PUT', body: { key: 'k', tier: 'gold' } });
    await world.refresh();
    expect(world.isolate.lookUp(() => {})).toBeDefined();
  });

  it('that does not answer makes nobody unknown: each such key is counted by itself, beside the address', async () => {
    const silent = {
      getByName: (name: string) => ({
        head: (domain: string) => env.CONTROL.getByName(name).head(domain),
        key: () => Promise.reject(new Error('down')),
      }),
    } as unknown as DurableObjectNamespace;
    const address = {
      key: 'remote_address',
      rate_limit: { policy: 'address', unit: 'day', requests_per_unit: 3 },
    };
    const rules = { ...RULES, descriptors: [...RULES.descriptors, address] };
    const world = new AdminWorld(rules, { CONTROL: silent });
    const statuses = [];
    for (const key of ['a', 'b', 'a', 'c', 'd']) statuses.push((await world.get('/', { key })).status);
    expect(statuses).toEqual([200, 200, 429, 200, 429]);
  });
});

describe('the check API', () => {
  const RULES = {
    domain: 'test',
    identity: { keys: [{ key: 'k_1', tier: 'gold', org: 'acme' }] },
    descriptors: [
      {
        key: 'tier',
        value: 'gold',
        descriptors: [
          { key: 'route', value: '/v1/:id', rate_limit: { unit: 'day', requests_per_unit: 5, burst: 5 } },
        ],
      },
      { key: 'org', rate_limit: { policy: 'org', unit: 'day', requests_per_unit: 8 } },
    ],
  };
  const attributes = { api_key: 'k_1', path: '/v1/x/', method: 'get' };

  it('decides on the gateway’s own counters, with the gateway’s answer', async () => {
    const world = new AdminWorld(RULES);
    await world.get('/v1/x', { key: 'k_1' });
    const { body } = await world.say('/v1/check', { body: { attributes, cost: 3 } });
    expect(body).toMatchObject({
      allowed: true,
      reason: 'allowed',
      policy: 'default',
      limit: 5,
      remaining: 1,
      source: 'owner',
    });
    expect(rows(body.policies, 'policy', 'remaining')).toEqual([
      ['default', 1],
      ['org', 4],
    ]);
    const denied = await world.say('/v1/check', { body: { attributes, cost: 2 } });
    expect(denied).toMatchObject({
      status: 200,
      body: { allowed: false, reason: 'rate_limited', policy: 'default' },
    });
    expect(denied.body.retryAfterSeconds).toEqual(expect.any(Number));
    expect((await world.say('/v1/check', { body: { attributes, cost: 6 } })).body.reason).toBe(
      'cost_exceeds_limit',
    );
    const unmatched = await world.say('/v1/check', { body: { attributes: { user: 'u', colour: 'red' } } });
    expect(unmatched.body).toMatchObject({
      allowed: true,
      reason: 'unmatched',
      limit: null,
      ignored: ['colour'],
    });
  });

  it('A11 tells waits and resets in seconds from now, of the request and of each policy', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2100, 5, 1) });
    const world = new AdminWorld(RULES);
    const { body } = await world.say('/v1/check', { body: { attributes, cost: 2 } });
    expect(body).toMatchObject({ resetSeconds: 34_560, retryAfterSeconds: null });
    expect(rows(body.policies, 'policy', 'resetSeconds', 'windowSeconds')).toEqual([
      ['default', 34_560, 86_400],
      ['org', 21_600, 86_400],
    ]);
    const denied = await world.say('/v1/check', { body: { attributes, cost: 4, peek: true } });
    expect(denied.body).toMatchObject({ resetSeconds: 17_280, retryAfterSeconds: 17_280 });
    const seen = await world.say('/v1/counters/inspect', { body: { attributes } });
    expect(rows(seen.body.counters, 'policy', 'resetSeconds', 'windowSeconds')).toEqual([
      ['default', 34_560, 86_400],
      ['org', 21_600, 86_400],
    ]);
  });

  it('A11 M09 peeks by the same comparison, and charges nothing', async () => {
    const world = new AdminWorld(RULES);
    const peek = async (cost: number) =>
      (await world.say('/v1/check', { body: { attributes, cost, peek: true } })).body;
    expect((await peek(5)).allowed).toBe(true);
    expect((await peek(5)).remaining).toBe(5);
    await world.say('/v1/check', { body: { attributes, cost: 4 } });
    expect((await peek(1)).allowed).toBe(true);
    expect(await peek(2)).toMatchObject({
      allowed: false,
      reason: 'rate_limited',
      retryAfterSeconds: 17_280,
    });
  });

  it('tells the worst cases of each policy when asked, and only then', async () => {
    const world = new AdminWorld(RULES);
    const ask = async (more: object) =>
      (await world.say('/v1/check', { body: { attributes, ...more } })).body.policies as {
        policy: string;
        bound?: unknown;
      }[];
    for (const policy of await ask({})) expect(policy).not.toHaveProperty('bound');
    const { body } = await world.say('/v1/explain', { body: { attributes } });
    const told = new Map(rows(body.policies, 'policy', 'bound') as [string, unknown][]);
    for (const peek of [false, true]) {
      const policies = await ask({ bound: true, peek });
      expect(rows(policies, 'policy')).toEqual([['default'], ['org']]);
      for (const { policy, bound } of policies) expect(bound).toEqual(told.get(policy));
    }
    expect(told.get('default')).toMatchObject({ limit: { burstUnits: 5 }, crashUnits: 5 });
  });

  it.each(['token_bucket', 'leaky_bucket', 'fixed_window', 'sliding_window', 'sliding_log'])(
    'peeks as it decides: %s',
    async (algorithm) => {
      const world = new AdminWorld({
        domain: 'test',
        descriptors: [{ key: 'user', rate_limit: { unit: 'hour', requests_per_unit: 6, algorithm } }],
      });
      for (const cost of [1, 3, 2, 1, 7]) {
        const ask = async (peek: boolean) =>
          (await world.say('/v1/check', { body: { attributes: { user: 'u' }, cost, peek } })).body;
        const foreseen = await ask(true);
        const { allowed, reason } = await ask(false);
        expect(foreseen).toMatchObject({ allowed, reason });
      }
    },
  );

  it('hashes a key at the door, and takes a hash in place of one', async () => {
    const world = new AdminWorld(RULES);
    await world.say('/v1/check', { body: { attributes, cost: 1 } });
    const { api_key: _, ...others } = attributes;
    const hashed = { ...others, api_key_sha256: sha256('k_1') };
    expect((await world.say('/v1/check', { body: { attributes: hashed } })).body.remaining).toBe(3);
    const posing = { ...others, api_key: `sha256:${sha256('k_1')}` };
    expect((await world.say('/v1/check', { body: { attributes: posing } })).body.reason).toBe('unmatched');
    const odd = await world.say('/v1/check', { body: { attributes: { api_key_sha256: 'beef' } } });
    expect([odd.status, rows(odd.body.errors, 'path')]).toEqual([422, [['attributes.api_key_sha256']]]);
  });

  it('D13 tells a domain that nobody knows from one that allows; and knows what was published', async () => {
    const world = new AdminWorld(RULES);
    const asked = { domain: 'other', attributes: { remote_address: '192.0.2.1' } };
    expect(await world.say('/v1/check', { body: asked })).toMatchObject({
      status: 404,
      body: { error: 'unknown_domain' },
    });
    await world.say('/v1/rulesets/other', {
      method: 'PUT',
      body: { rules: perDay(1, 'other'), message: 'x' },
    });
    const answers = [];
    for (let at = 0; at < 2; at += 1)
      answers.push((await world.say('/v1/check', { body: asked })).body.allowed);
    expect(answers).toEqual([true, false]);
  });

  it('looks into counters and sets them back, and explains', async () => {
    const world = new AdminWorld(RULES);
    for (let at = 0; at < 6; at += 1) await world.get('/v1/x', { key: 'k_1' });
    const look = async () =>
      (await world.say('/v1/counters/inspect', { body: { attributes } })).body.counters;
    expect(rows(await look(), 'policy', 'remaining')).toEqual([
      ['default', 0],
      ['org', 3],
    ]);
    expect((await world.say('/v1/counters/reset', { body: { attributes } })).body.reset).toHaveLength(2);
    expect(rows(await look(), 'remaining')).toEqual([[5], [8]]);
    expect((await world.get('/v1/x', { key: 'k_1' })).status).toBe(200);
    const { body } = await world.say('/v1/explain', { body: { attributes } });
    expect(rows(body.policies, 'policy', 'title')).toEqual([
      ['default', 'tier=gold > route=/v1/:id: 5 per 1d'],
      ['org', 'org: 8 per 1d'],
    ]);
    const sentences = expect.arrayContaining([expect.stringMatching(/^healthy: at most 5 units/)]);
    expect(body.policies).toMatchObject([{ bound: { sentences } }, {}]);
    const pricedAs = (policy: string) => ({ policies: [{ policy, shadow: false }], calls: 1e6 });
    expect(body.price).toMatchObject({
      requestsPerSecond: 5 / 86_400,
      owners: [pricedAs('default'), pricedAs('org')],
    });
  });
});

describe('who may not', () => {
  it('without a configured token there is nothing there', async () => {
    const world = new AdminWorld(perDay(1), { ADMIN_TOKEN: '' });
    for (const path of ['/metrics', '/v1/clamps', '/v1/check', '/openapi.json'])
      expect((await world.say(path)).status).toBe(404);
  });

  it.each([
    ['no token', null],
    ['another one', 'x'],
    ['the beginning of it', TOKEN.slice(0, -1)],
    ['more than it', `${TOKEN}x`],
    ['a very long one', 'x'.repeat(5_000)],
  ])('with %s: 401, as a problem, and nothing else', async (_, token) => {
    const { status, body, headers } = await new AdminWorld(perDay(1)).say('/v1/clamps', { token });
    expect([status, body.error, headers.get('content-type')]).toEqual([
      401,
      'unauthorized',
      'application/problem+json',
    ]);
  });

  it('an address that shows no token guesses nothing', async () => {
    const world = new AdminWorld(perDay(1));
    for (let at = 0; at < 20; at += 1)
      expect((await world.say('/v1/clamps', { token: null })).status).toBe(401);
    expect((await world.say('/v1/clamps')).status).toBe(200);
  });

  it.each(['//_limiter/v1/keys', '/_LIMITER/v1/keys', '/_limiter%2fv1/keys', '/%255flimiter/v1/keys'])(
    'a request for %s is not shown to the origin',
    async (path) => {
      const response = await new AdminWorld(perDay(1)).get(path, { key: TOKEN });
      expect([response.status, await response.text()]).toEqual([
        404,
        expect.not.stringContaining('from the origin'),
      ]);
    },
  );

  it('an address that guesses is stopped, right or wrong, and no other is', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    const world = new AdminWorld(perDay(1));
    const statuses = [];
    for (let at = 0; at < 12; at += 1)
      statuses.push((await world.say('/v1/clamps', { token: `guess ${at}` })).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), 429, 429]);
    const right = await world.say('/v1/clamps');
    expect([right.status, right.headers.get('retry-after')]).toEqual([429, '6']);
    expect((await world.say('/v1/clamps', { address: '192.0.2.98' })).status).toBe(200);
    vi.setSystemTime(Date.now() + 6_000);
    expect((await world.say('/v1/clamps')).status).toBe(200);
    vi.useRealTimers();
  });

  it('another origin’s page gets no CORS header', async () => {
    const { headers } = await new AdminWorld(perDay(1)).say('/v1/clamps', {
      headers: { Origin: 'https://evil.example' },
    });
    expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  it('a caller’s limits do not count the operator', async () => {
    const world = new AdminWorld(perDay(1));
    for (let at = 0; at < 5; at += 1)
      expect((await world.say('/v1/clamps', { address: '192.0.2.1' })).status).toBe(200);
    expect((await world.get('/')).status).toBe(200);
  });
});

describe('what makes no sense', () => {
  it.each([
    ['no JSON', { method: 'PUT', raw: '{"rules":' }, 400],
    ['no UTF-8', { method: 'PUT', raw: new Uint8Array([0x7b, 0xff, 0x7d]) }, 400],
    ['a body of the wrong shape', { method: 'PUT', body: [] }, 422],
    ['fields that are not there', { method: 'PUT', body: { rules: {}, message: 'x', wat: 1 } }, 422],
    ['no message', { method: 'PUT', body: { rules: {} } }, 422],
    ['a method that the path does not take', { method: 'PATCH', body: {} }, 405],
    ['an author that is no text', { method: 'POST', headers: { 'X-Limiter-Author': 'x'.repeat(200) } }, 405],
  ] as const)('%s', async (_, saying, status) => {
    const said = await new AdminWorld(perDay(1)).say('/v1/rulesets/test', saying);
    expect([said.status, said.headers.get('content-type')]).toEqual([status, 'application/problem+json']);
    expect(said.body.message).toMatch(/\S/);
  });

  it('too large', async () => {
    const said = await new AdminWorld(perDay(1)).say('/v1/clamps', {
      method: 'PUT',
      raw: 'x'.repeat(70_000),
    });
    expect([said.status, said.body.error]).toEqual([413, 'body_too_large']);
  });

  it('whatever is sent: never a 500, and nothing is changed', async () => {
    const world = new AdminWorld(perDay(1));
    await publish(world, 5);
    const method = fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS');
    const path = fc.oneof(
      fc.constantFrom(
        '/v1/check',
        '/v1/clamps',
        '/v1/keys',
        '/v1/explain',
        '/v1/counters/inspect',
        '/v1/audit?limit=x',
        '/metrics',
      ),
      fc.constantFrom(
        '/v1/rulesets/test',
        '/v1/rulesets/%00',
        '/v1/rulesets/test/0',
        '/v1/rulesets/test/1e9/activate',
        '/v1/rulesets/%E0%A4%A',
      ),
      fc.webPath(),
    );
    const json = fc.oneof(
      fc.jsonValue(),
      fc.record({
        attributes: fc.jsonValue(),
        cost: fc.jsonValue(),
        peek: fc.jsonValue(),
        action: fc.jsonValue(),
      }),
      fc.record({ rules: fc.jsonValue(), message: fc.string(), activate: fc.constant(false) }),
    );
    const body = fc.oneof(
      json.map((value) => JSON.stringify(value)),
      fc.string(),
    );
    await fc.assert(
      fc.asyncProperty(method, path, body, async (sent, to, content) => {
        const hasBody = sent !== 'GET' && sent !== 'HEAD';
        const said = await world.say(to.startsWith('/') ? to : `/${to}`, {
          method: sent,
          ...(hasBody && { raw: content }),
        });
        expect(said.status).not.toBe(500);
        expect(said.status).not.toBe(503);
      }),
      { numRuns: 400 },
    );
    expect((await world.say('/v1/rulesets/test')).body).toMatchObject({ active: { activation: 1 } });
    expect((await world.say('/v1/clamps')).body.clamps).toEqual([]);
    expect((await world.say('/v1/keys')).body.keys).toEqual([]);
  });
});

it('a canary key and the token are nowhere: in no log, metric, error, storage or object name', async () => {
  const lines: string[] = [];
  for (const level of ['log', 'warn', 'error', 'info', 'debug'] as const)
    vi.spyOn(console, level).mockImplementation((...parts) => void lines.push(parts.map(String).join(' ')));
  const CANARY = 'k_canary_93b1';
  const world = new AdminWorld(perDay(5));
  const answers: string[] = [];
  const say = async (...[path, saying]: Parameters<AdminWorld['say']>) =>
    void answers.push((await world.say(path, saying)).text);
  const rules = {
    ...perDay(5),
    identity: { keys: [{ key: CANARY, tier: 'gold' }] },
    descriptors: [{ key: 'api_key', value: CANARY, rate_limit: { unit: 'day', requests_per_unit: 5 } }],
  };
  await say('/v1/rulesets/test', { method: 'PUT', body: { rules, message: 'canary' } });
  await say('/v1/rulesets/test', {
    method: 'PUT',
    body: { rules: { ...rules, oops: 1 }, message: 'canary' },
  });
  await world.refresh();
  await world.get('/', { key: CANARY });
  await say('/v1/keys', { method: 'PUT', body: { key: CANARY, tier: 'gold' } });
  await say('/v1/keys', { method: 'PUT', body: { key: CANARY, tier: 7 } });
  await say('/v1/clamps', {
    method: 'PUT',
    body: { attributes: { api_key: CANARY }, action: 'deny', forSeconds: 60 },
  });
  await world.get('/', { key: CANARY });
  for (const path of ['/v1/check', '/v1/explain', '/v1/counters/inspect', '/v1/counters/reset'])
    await say(path, { body: { attributes: { api_key: CANARY } } });
  for (const path of [
    '/v1/rulesets/test/1',
    '/v1/keys',
    '/v1/clamps',
    '/v1/audit',
    '/metrics',
    '/openapi.json',
  ])
    await say(path);
  await say('/v1/clamps', { token: `${TOKEN}x` });
  const stored: string[] = [];
  for (const bound of [env.OWNER, env.CONTROL, env.METRICS]) {
    const namespace = bound as unknown as DurableObjectNamespace;
    for (const id of await listDurableObjectIds(namespace)) {
      stored.push(`${id.name}`);
      await runInDurableObject(namespace.get(id), async (_, state) => {
        stored.push(JSON.stringify([...state.storage.kv.list()]));
        const tables = state.storage.sql
          .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'")
          .toArray();
        for (const { name } of tables)
          stored.push(JSON.stringify(state.storage.sql.exec(`SELECT * FROM "${name}"`).toArray()));
      });
    }
  }
  expect(stored.join('\n')).toContain(sha256(CANARY));
  const everything = [...lines, ...answers, ...stored].join('\n');
  expect(everything).not.toContain(CANARY);
  expect(everything).not.toContain(TOKEN);
});

it('D05 a request that no rule matches is counted as unmatched, one that a rule lets pass unasked as allowed', async () => {
  const world = new AdminWorld({
    domain: 'test',
    descriptors: [{ key: 'route', value: '/free', rate_limit: { unlimited: true } }],
  });
  for (const path of ['/other', '/free', '/other']) await world.get(path);
  await world.isolate.flush();
  const { text } = await world.say('/metrics');
  const counted = [...text.matchAll(/^edge_limiter_requests_total\{(.*)\} (\d+)$/gm)].map(
    ([, labels, amount]) => `${/outcome="(\w+)"/.exec(labels!)?.[1]} ${amount}`,
  );
  expect(counted.sort()).toEqual(['allowed 1', 'unmatched 2']);
});

it('buckets that had to give way, since an isolate has more callers than it has room for, are counted', async () => {
  const world = new AdminWorld({
    domain: 'test',
    descriptors: [{ key: 'user', rate_limit: { unit: 'day', requests_per_unit: 10, scope: 'local' } }],
  });
  const { limiter, snapshot } = world.isolate;
  const callers = 300_000;
  for (let user = 0; user < callers; user += 1)
    await limiter.decide({ attributes: { user: `u${user}` }, method: 'GET' }, snapshot, {}, () => {});
  await world.isolate.flush();
  const { text } = await world.say('/metrics');
  const displaced = Number(
    /^edge_limiter_buckets_displaced_total\{domain="test".*\} (\d+)$/m.exec(text)?.[1],
  );
  // Each caller has a bucket or has displaced another, and there are 262,144 of them.
  expect(displaced).toBeGreaterThanOrEqual(callers - 262_144);
  expect(displaced).toBeLessThan(callers);
});
