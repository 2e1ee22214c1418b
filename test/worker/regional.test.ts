/** Regional rules in workerd: which owner a request is counted on, where it is made, and what an operator reaches. */
import { evictDurableObject, reset, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it } from 'vitest';
import type { Bound } from '../../src/engine/bound.ts';
import { Isolate } from '../../src/gateway/isolate.ts';
import { REGIONS } from '../../src/policy/region.ts';
import { AdminWorld, perDay, rows } from './admin-world.ts';
import { GatewayWorld, recordedOwners, rulesetOf } from './gateway-world.ts';

const KEY = 'k_1';
const FRANCE = { continent: 'EU', country: 'FR', longitude: '2.35' };
const JAPAN = { continent: 'AS', country: 'JP', longitude: '139.7' };
const CALIFORNIA = { continent: 'NA', country: 'US', longitude: '-122.4' };

const regional = (limit: Record<string, unknown>, more: Record<string, unknown> = {}) => ({
  domain: 'test',
  identity: { keys: [{ key: KEY, tier: 'gold', org: 'acme' }] },
  ...more,
  descriptors: [
    { key: 'org', rate_limit: { unit: 'day', requests_per_unit: 100, scope: 'regional', ...limit } },
  ],
});

const SPLIT = regional({ region_weights: { weur: 0.02, apac: 0.03 } });

afterEach(() => reset());

/** The owners that were asked, by their place: `region/weur/`, with the hint that each was asked with. */
function placesIn(placed: ReadonlyMap<string, string | undefined>): readonly unknown[] {
  return [...placed].map(([name, hint]) => [name.slice(0, name.indexOf('own/')), hint]);
}

describe('a request', () => {
  const ask = async (file: Record<string, unknown>, cf: Record<string, unknown> | undefined) => {
    const { placed, owners } = recordedOwners(env.OWNER);
    const world = new GatewayWorld(file, { bindings: { OWNER: owners } });
    const response = await world.send('/a', { key: KEY, ...(cf && { cf }) });
    return { response, places: placesIn(placed) };
  };

  it.each([
    ['of France', FRANCE, {}, 'weur'],
    ['of Japan', JAPAN, {}, 'apac'],
    ['of California', CALIFORNIA, {}, 'wnam'],
    ['from nowhere', undefined, {}, 'enam'],
    ['of Japan, where only the west is served', JAPAN, { regions: ['enam', 'wnam'] }, 'wnam'],
    ['of France, where only the east is served', FRANCE, { regions: ['oc', 'eeur'] }, 'eeur'],
  ])('%s is counted by an owner that is made in its region', async (_, cf, more, region) => {
    const { response, places } = await ask(regional({}, more), cf);
    expect(response.status).toBe(200);
    expect(places).toEqual([[`region/${region}/`, region]]);
    expect(response.headers.get('RateLimit-Policy')).toBe('"default";q=100;w=86400');
  });

  it('of another rule is counted where it always was, without a hint', async () => {
    expect((await ask(regional({ scope: 'global' }), FRANCE)).places).toEqual([['', undefined]]);
  });

  it('of a shadow rule is counted in its region too', async () => {
    expect((await ask(regional({ shadow_mode: true }), JAPAN)).places).toEqual([['region/apac/', 'apac']]);
  });

  it('of a rule that is split is told of its part, and uses up no other', async () => {
    const world = new GatewayWorld(SPLIT);
    const send = async (cf: Record<string, unknown>) => (await world.send('/a', { key: KEY, cf })).status;
    const first = await world.send('/a', { key: KEY, cf: FRANCE });
    expect(first.headers.get('RateLimit-Policy')).toBe('"default";q=2;w=86400');
    expect([await send(FRANCE), await send(FRANCE)]).toEqual([200, 429]);
    // California has no part: the nearest is that of Asia.
    expect([await send(JAPAN), await send(CALIFORNIA), await send(JAPAN)]).toEqual([200, 200, 200]);
    expect([await send(JAPAN), await send(CALIFORNIA)]).toEqual([429, 429]);
  });
});

it('an isolate counts under the region that it is in', () => {
  const { metrics } = new Isolate({ OWNER: env.OWNER }, rulesetOf(perDay(1)), 'weur');
  metrics.count('owner_calls_total', {});
  expect(metrics.take()).toMatchObject({
    region: 'weur',
    counters: [[expect.anything(), { region: 'weur' }, 1]],
  });
});

describe('the check API', () => {
  const attributes = { api_key: KEY };

  it('decides for the region that it is told, else for the one that it is asked from', async () => {
    const world = new AdminWorld(SPLIT);
    const remaining = async (more: object, cf: Record<string, unknown> = FRANCE) =>
      (await world.say('/v1/check', { body: { attributes, ...more }, cf })).body.remaining;
    expect(await remaining({})).toBe(1);
    expect(await remaining({ region: 'apac' })).toBe(2);
    expect(await remaining({ region: 'weur' }, JAPAN)).toBe(0);
    expect(await remaining({ peek: true }, JAPAN)).toBe(2);
    expect(await remaining({ peek: true, region: 'weur' }, JAPAN)).toBe(0);
  });

  it('knows no other region', async () => {
    const { status, body } = await new AdminWorld(SPLIT).say('/v1/check', {
      body: { attributes, region: 'mars' },
    });
    expect([status, rows(body.errors, 'path')]).toEqual([422, [['region']]]);
  });

  it('explains what is counted in a region', async () => {
    const world = new AdminWorld(regional({}));
    const explained = async (more: object) =>
      (await world.say('/v1/explain', { body: { attributes, ...more } })).body;
    expect(await explained({ region: 'oc' })).toMatchObject({
      region: 'oc',
      policies: [{ counted: { inRegion: { region: 'oc', owner: { hint: 'oc' }, isSplit: false } } }],
    });
    expect(await explained({})).toMatchObject({ region: 'enam' });
  });

  it('tells worst cases for as many regions as the file names, or those of a part', async () => {
    const boundIn = async (rules: Record<string, unknown>, path: string) => {
      const body = { attributes, region: 'weur', ...(path === '/v1/check' && { bound: true, peek: true }) };
      const { policies } = (await new AdminWorld(rules).say(path, { body })).body;
      return (policies as { bound: Bound }[])[0]!.bound;
    };
    for (const path of ['/v1/check', '/v1/explain']) {
      const shared = await boundIn(regional({}, { regions: ['weur', 'apac'] }), path);
      expect(shared.regional?.regions).toBe(2);
      expect(shared.sentences).toContainEqual(expect.stringMatching(/^2 regions at a cold start/));
      const part = await boundIn(SPLIT, path);
      expect(part).not.toHaveProperty('regional');
      expect(part.limit.burstUnits).toBe(2);
      expect(part.sentences).toContainEqual(expect.stringMatching(/^each region has its own part/));
    }
  });
});

describe('an operator', () => {
  const attributes = { api_key: KEY };
  const org = { attributes: { org: 'acme' } };

  it('sees the whole and every region', async () => {
    const { placed, owners } = recordedOwners(env.OWNER);
    const world = new AdminWorld(regional({}, { regions: ['weur', 'apac'] }), { OWNER: owners });
    const { body } = await world.say('/v1/counters/inspect', { body: { attributes } });
    expect(rows(body.counters, 'policy', 'region')).toEqual([
      ['default', null],
      ['default', 'weur'],
      ['default', 'apac'],
    ]);
    expect(placesIn(placed)).toEqual([
      ['', undefined],
      ['region/weur/', 'weur'],
      ['region/apac/', 'apac'],
    ]);
  });

  it('sees every part of a limit that is split, and sets all of them back', async () => {
    const world = new AdminWorld(SPLIT);
    for (const region of ['weur', 'apac']) await world.say('/v1/check', { body: { attributes, region } });
    const look = async () => {
      const { body } = await world.say('/v1/counters/inspect', { body: { attributes } });
      return rows(body.counters, 'region', 'limit', 'remaining');
    };
    expect(await look()).toEqual([
      ['weur', 2, 1],
      ['apac', 3, 2],
    ]);
    const { body } = await world.say('/v1/counters/reset', { body: { attributes } });
    expect(body.reset).toEqual([
      expect.stringMatching(/^part\/weur\//),
      expect.stringMatching(/^part\/apac\//),
    ]);
    expect(await look()).toEqual([
      ['weur', 2, 2],
      ['apac', 3, 3],
    ]);
  });

  it('clamps a caller in all regions, also before an isolate has heard of it', async () => {
    const clamped = new AdminWorld(regional({}));
    const set = await clamped.say('/v1/clamps', {
      method: 'PUT',
      body: { ...org, action: 'deny', forSeconds: 60 },
    });
    expect(set.body).toMatchObject({ told: true });
    for (const region of REGIONS) {
      const unaware = new AdminWorld(regional({}));
      const { body } = await unaware.say('/v1/check', { body: { attributes, region } });
      expect([region, body.allowed]).toEqual([region, false]);
    }
    await clamped.say('/v1/clamps', { method: 'DELETE', body: org });
    const { body } = await clamped.say('/v1/check', { body: { attributes, region: 'oc' } });
    expect(body.allowed).toBe(true);
  });

  it('clamps with a control plane that was made before there were regions', async () => {
    const world = new AdminWorld(regional({}));
    const body = { ...org, action: 'deny', forSeconds: 60 };
    await world.say('/v1/clamps', { method: 'PUT', body });
    const control = env.CONTROL.getByName('control');
    await runInDurableObject(control, async (_, state) => {
      state.storage.sql.exec('ALTER TABLE clamps DROP COLUMN regional_owners');
    });
    await evictDurableObject(control);
    expect((await world.say('/v1/clamps')).body.clamps).toMatchObject([{ action: 'deny' }]);
    expect((await world.say('/v1/clamps', { method: 'PUT', body })).body).toMatchObject({ told: true });
  });

  it('lifts a clamp in every region that was told of it, whatever the rules say by now', async () => {
    const set = await new AdminWorld(SPLIT).say('/v1/clamps', {
      method: 'PUT',
      body: { ...org, action: 'deny', forSeconds: 60 },
    });
    expect(set.status).toBe(200);
    const changed = new AdminWorld(regional({ scope: 'global' }));
    await changed.say('/v1/clamps', {
      method: 'PUT',
      body: { ...org, action: 'limit', rpm: 9, forSeconds: 60 },
    });
    expect((await changed.say('/v1/clamps', { method: 'DELETE', body: org })).body).toMatchObject({
      told: true,
    });
    const { body } = await new AdminWorld(SPLIT).say('/v1/check', { body: { attributes, region: 'weur' } });
    expect(body).toMatchObject({ allowed: true, remaining: 1 });
  });
});
