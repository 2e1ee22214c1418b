/** The control plane over the bundle as it is served: four gateways, their owners, and an operator. */
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import parsePrometheus from 'parse-prometheus-text-format';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';

const START_MS_MAX = 60_000;
const GATEWAYS = 4;
const TOKEN = 'live-token';

/** What `serve` promises of a publish and of counts. */
const IN_FORCE_MS_MAX = 2_000;

/** A lease lives so long. */
const LEASE_MS = 1_000;

let served: ServeChild;
let first: number;
let folder: string;
const agent = new Agent({ connections: 64, pipelining: 1 });

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'edge-limiter-live-'));
  first = await freePorts(GATEWAYS + 1);
  served = await startServe(
    ...['--port', String(first), '--gateways', String(GATEWAYS), '--faults', String(first + GATEWAYS)],
    ...['--rules', join(import.meta.dirname, 'control.yaml'), '--admin-token', TOKEN],
    ...['--record', join(folder, 'record.jsonl')],
  );
}, START_MS_MAX);

afterAll(async () => {
  await agent.close();
  await served?.stop();
  await rm(folder, { recursive: true, force: true });
});

afterEach(() => setControl('ok'));

const ports = () => Array.from({ length: GATEWAYS }, (_, index) => first + index);

async function setControl(mode: string): Promise<void> {
  const body = JSON.stringify({ mode });
  await request(`http://127.0.0.1:${first + GATEWAYS}/control`, { method: 'PUT', body });
}

interface Answer {
  readonly status: number;
  readonly source: string;
  readonly policy: string;
  readonly remaining: number;
  readonly port: number;
}

async function send(key: string, port = first, address = '192.0.2.1'): Promise<Answer> {
  const headers = { 'x-api-key': key, 'cf-connecting-ip': address };
  const response = await request(`http://127.0.0.1:${port}/`, { dispatcher: agent, headers });
  await response.body.dump();
  return {
    port,
    status: response.statusCode,
    source: /desc="(\w+)"/.exec(String(response.headers['server-timing']))?.[1] ?? '',
    policy: String(response.headers['ratelimit-policy']),
    remaining: Number(/"default";r=(\d+)/.exec(String(response.headers.ratelimit))?.[1] ?? Number.NaN),
  };
}

async function say(method: 'GET' | 'PUT' | 'POST' | 'DELETE', path: string, body?: unknown, port = first) {
  const headers = { authorization: `Bearer ${TOKEN}` };
  const response = await request(`http://127.0.0.1:${port}/_limiter${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.body.text();
  return { status: response.statusCode, text };
}

/** Asks again and again until it is so; fails when it is not in time. */
async function within(limitMs: number, isSo: () => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    const tookMs = performance.now() - startMs;
    if (await isSo()) return tookMs;
    expect(tookMs).toBeLessThan(limitMs);
  }
}

function rules(quota: number, domain = 'control') {
  return {
    domain,
    // What is asserted to the unit is asserted of owners: a machine that stands still for a moment must not bring in the fallback.
    deadline: '1s',
    identity: { api_key: ['x-api-key'], unknown_keys: 'subject' },
    descriptors: [
      { key: 'api_key', rate_limit: { unit: 'day', requests_per_unit: quota } },
      {
        key: 'remote_address',
        rate_limit: { policy: 'address', unit: 'second', requests_per_unit: 100_000 },
      },
      hotRule(2_000),
      {
        key: 'api_key',
        value: 'k_shadow',
        rate_limit: { unit: 'day', requests_per_unit: 3, shadow_mode: true },
      },
    ],
  };
}

function hotRule(quota: number) {
  const limit = { unit: 'second', requests_per_unit: quota, consistency: 'leased' };
  return { key: 'api_key', value: 'k_hot', rate_limit: limit };
}

function publish(quota: number): Promise<void> {
  return publishRules(rules(quota), `quota ${quota}`);
}

async function publishRules(content: unknown, message: string): Promise<void> {
  const { status, text } = await say('PUT', '/v1/rulesets/control', { rules: content, message });
  expect([status, text]).toEqual([201, expect.any(String)]);
}

/** The quota that each gateway goes by, asked by a peek of nobody's. */
async function quotas(key: string): Promise<readonly string[]> {
  const answers = await Promise.all(ports().map((port) => send(key, port)));
  return answers.map(({ policy }) => /"default";q=(\d+)/.exec(policy)?.[1] ?? '');
}

/** The first in this file: nobody else has sent anything that is still to be counted. */
describe('metrics', () => {
  async function sum(name: string, labels: Record<string, string>): Promise<number> {
    const { text } = await say('GET', '/metrics');
    const family = parsePrometheus(text).find((each) => each.name === `edge_limiter_${name}`);
    const samples = (family?.metrics ?? []) as { labels?: Record<string, string>; value: string }[];
    return samples
      .filter((sample) => Object.entries(labels).every(([label, value]) => sample.labels?.[label] === value))
      .reduce((total, { value }) => total + Number(value), 0);
  }

  it('agree exactly with the client’s own count two seconds after it stops', async () => {
    const before = {
      allowed: await sum('requests_total', { outcome: 'allowed' }),
      denied: await sum('requests_total', { outcome: 'denied' }),
    };
    const counted = { allowed: 0, denied: 0 };
    for (let wave = 0; wave < 20; wave += 1) {
      const answers = await Promise.all(
        ports().flatMap((port) => Array.from({ length: 25 }, () => send('k_counted', port))),
      );
      for (const { status } of answers) counted[status === 200 ? 'allowed' : 'denied'] += 1;
    }
    expect(counted.allowed).toBe(50);
    await within(IN_FORCE_MS_MAX, async () => {
      const allowed = (await sum('requests_total', { outcome: 'allowed' })) - before.allowed;
      const denied = (await sum('requests_total', { outcome: 'denied' })) - before.denied;
      return allowed === counted.allowed && denied === counted.denied;
    });
  });

  it('S03 count what a shadow rule would have denied', async () => {
    const before = await sum('shadow_denied_total', {});
    for (let at = 0; at < 10; at += 1) expect((await send('k_shadow')).status).toBe(200);
    await within(IN_FORCE_MS_MAX, async () => (await sum('shadow_denied_total', {})) - before === 7);
  });
});

describe('a publish', () => {
  it('is in force in every gateway within two seconds, idle ones too, and keeps what was used', async () => {
    for (let at = 0; at < 10; at += 1) expect((await send('k_kept')).status).toBe(200);
    await publish(40);
    await within(IN_FORCE_MS_MAX, async () => (await quotas('k_look')).every((quota) => quota === '40'));
    expect((await send('k_kept')).remaining).toBe(40 - 10 - 1);
    await say('POST', '/v1/rulesets/control/rollback');
    await publish(60);
    await within(IN_FORCE_MS_MAX, async () => (await quotas('k_look_2')).every((quota) => quota === '60'));
    expect((await send('k_kept')).remaining).toBe(60 - 11 - 1);
  });

  it('reaches a caller that lives on leases, and so does its rollback', async () => {
    const hot = (quota: number, message: string) =>
      publishRules(
        { ...rules(60), descriptors: [...rules(60).descriptors.slice(0, 2), hotRule(quota)] },
        message,
      );
    const told = async () => (await Promise.all(Array.from({ length: 32 }, () => send('k_hot')))).at(-1)!;
    await hot(3_000, 'hot');
    await within(IN_FORCE_MS_MAX, async () => {
      const { source, policy } = await told();
      return source === 'lease' && policy.includes('q=3000');
    });
    await hot(4, 'narrow');
    await within(IN_FORCE_MS_MAX, async () => {
      const { status, policy } = await told();
      return status === 429 && policy.includes('q=4;');
    });
    await say('POST', '/v1/rulesets/control/rollback');
    await within(IN_FORCE_MS_MAX, async () => {
      const { status, policy } = await told();
      return status === 200 && policy.includes('q=3000');
    });
  });
});

describe('a source of rules that is', () => {
  it.each(['down', 'slow', 'empty', 'corrupt', 'older', 'other_domain'])(
    '%s fails no request and changes no rule',
    async (mode) => {
      await publish(70);
      await within(IN_FORCE_MS_MAX, async () => (await quotas(`k_${mode}`)).every((quota) => quota === '70'));
      await setControl(mode);
      await say('PUT', '/v1/rulesets/control', { rules: rules(80), message: 'unheard' });
      const answers: Answer[] = [];
      // Longer than it takes each gateway to ask.
      await within(3_000, async () => {
        answers.push(...(await Promise.all(ports().map((port) => send(`k_${mode}_2`, port, '192.0.2.8')))));
        return answers.length >= 60;
      });
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      await setControl('ok');
    },
  );
});

describe('a clamp', () => {
  const clamp = (body: Record<string, unknown>) =>
    say('PUT', '/v1/clamps', { attributes: { api_key: 'k_hot' }, forSeconds: 60, ...body });

  beforeAll(async () => {
    await publish(50);
    await within(IN_FORCE_MS_MAX, async () => (await quotas('k_look_3')).every((quota) => quota === '50'));
  });

  it('stops a hot caller within the time of a lease, in every gateway, and lets it go again', async () => {
    const storm = () =>
      Promise.all(ports().flatMap((port) => Array.from({ length: 8 }, () => send('k_hot', port))));
    await within(IN_FORCE_MS_MAX, async () => {
      const leased = (await storm()).filter(({ source }) => source === 'lease');
      return new Set(leased.map(({ port }) => port)).size === GATEWAYS;
    });
    await clamp({ action: 'deny' });
    await within(LEASE_MS, async () => (await storm()).every(({ status }) => status === 429));
    await say('DELETE', '/v1/clamps', { attributes: { api_key: 'k_hot' } });
    await within(IN_FORCE_MS_MAX, async () => (await storm()).every(({ status }) => status === 200));
  });

  it('limits it, and lifts all limits', async () => {
    const flood = () => Promise.all(Array.from({ length: 55 }, () => send('k_free')));
    await within(IN_FORCE_MS_MAX, async () => (await flood()).some(({ status }) => status === 429));
    await say('PUT', '/v1/clamps', {
      attributes: { api_key: 'k_free' },
      action: 'unlimited',
      forSeconds: 60,
    });
    await within(IN_FORCE_MS_MAX, async () => (await send('k_free')).status === 200);
    await say('PUT', '/v1/clamps', {
      attributes: { api_key: 'k_slow' },
      action: 'limit',
      rpm: 2,
      forSeconds: 60,
    });
    await within(IN_FORCE_MS_MAX, async () => (await send('k_slow')).status === 429);
    expect((await send('k_slow')).policy).toContain('"clamp";q=2;w=60');
  });
});

it('records decided requests for a replay, with keys as hashes', async () => {
  for (let at = 0; at < 5; at += 1) await send('k_recorded', first + (at % GATEWAYS));
  const hash = createHash('sha256').update('k_recorded').digest('hex');
  await within(IN_FORCE_MS_MAX, async () => {
    const text = await readFile(join(folder, 'record.jsonl'), 'utf8');
    expect(text).not.toContain('k_recorded');
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    return lines.filter(({ attributes, cost }) => attributes.api_key === hash && cost === 1).length === 5;
  });
});
