/** Ten thousand admin requests that make no sense: none fails, nothing is changed, and memory does not grow with them. */
import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';

const TOKEN = 'fuzz-token';
const REQUESTS = 10_000;
const WARM_UP = 1_000;

/** Requests that make sense, before: a server that has just started compiles and grows whatever it is asked. */
const SENSIBLE = 4_000;
const AT_ONCE = 50;

/** What the bar allows over the memory after the first thousand. */
const GROWTH_MAX = 1.2;

let served: ServeChild;
let port: number;
const agent = new Agent({ connections: AT_ONCE, pipelining: 1 });

beforeAll(async () => {
  port = await freePorts(1);
  served = await startServe(
    ...['--port', String(port), '--admin-token', TOKEN, '--quiet'],
    // Left to itself V8 lets garbage lie until there is a few hundred megabytes of it; a leak would hide behind that.
    ...['--v8-flag=--initial-old-space-size=1', '--v8-flag=--max-semi-space-size=1'],
  );
}, 60_000);

afterAll(async () => {
  await agent.close();
  await served?.stop();
});

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  readonly token: string;
  readonly address: string;
}

const json = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.record({
    attributes: fc.jsonValue(),
    cost: fc.jsonValue(),
    peek: fc.boolean(),
    action: fc.string(),
    forSeconds: fc.integer(),
  }),
  fc.record({ rules: fc.jsonValue(), message: fc.string(), activate: fc.constant(true) }),
  fc.record({ key: fc.string(), tier: fc.jsonValue(), expiresAt: fc.string() }),
);
const SENT: fc.Arbitrary<Sent> = fc.record({
  method: fc.constantFrom('GET', 'PUT', 'POST', 'DELETE', 'PATCH', 'OPTIONS'),
  path: fc.oneof(
    fc.constantFrom(
      '/v1/check',
      '/v1/clamps',
      '/v1/keys',
      '/v1/explain',
      '/v1/audit',
      '/v1/counters/inspect',
      '/v1/counters/reset',
    ),
    fc.constantFrom(
      '/v1/rulesets/demo-api',
      '/v1/rulesets/%00',
      '/v1/rulesets/a/b/c',
      '/v1/rulesets/%E0%A4%A',
      '/v1/rulesets/demo-api/1e3',
    ),
    fc.webPath().map((path) => `/${path}`),
  ),
  body: fc.oneof(
    json.map((value) => JSON.stringify(value)),
    json.map((value) => JSON.stringify(value).slice(0, -1)),
    fc.string({ unit: 'binary' }),
    fc.constant(`{"attributes":${'['.repeat(20_000)}`),
    fc.constant('x'.repeat(100_000)),
  ),
  token: fc.oneof({ weight: 4, arbitrary: fc.constant(TOKEN) }, { weight: 1, arbitrary: fc.base64String() }),
  address: fc.ipV4(),
});

async function send({ method, path, body, token, address }: Sent): Promise<number> {
  const response = await request(`http://127.0.0.1:${port}/_limiter${path}`, {
    dispatcher: agent,
    method: method as 'GET',
    headers: { authorization: `Bearer ${token}`, 'cf-connecting-ip': address },
    ...(method !== 'GET' && { body }),
  });
  await response.body.dump();
  return response.statusCode;
}

async function all(wanted: readonly Sent[]): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (let at = 0; at < wanted.length; at += AT_ONCE)
    statuses.push(...(await Promise.all(wanted.slice(at, at + AT_ONCE).map(send))));
  return statuses;
}

/** A decision of the check API, the view of a counter, a list. */
function sensible(at: number): Sent {
  const path = ['/v1/check', '/v1/counters/inspect', '/v1/clamps'][at % 3]!;
  const body = JSON.stringify({ attributes: { remote_address: '192.0.2.1', path: '/v1/items' } });
  return { method: at % 3 === 2 ? 'GET' : 'POST', path, body, token: TOKEN, address: '203.0.113.200' };
}

/** Resident memory of the process that serves, in bytes. */
function resident(): number {
  const tasks = readdirSync(`/proc/${served.pid}/task`);
  const children = tasks.flatMap((task) =>
    readFileSync(`/proc/${served.pid}/task/${task}/children`, 'utf8').trim().split(' ').filter(Boolean),
  );
  const [workerd] = children;
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${workerd}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1_024;
}

async function state(): Promise<string> {
  const paths = ['/v1/rulesets/demo-api', '/v1/clamps', '/v1/keys', '/v1/audit'];
  const texts = paths.map(async (path) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'cf-connecting-ip': '203.0.113.200' };
    const response = await request(`http://127.0.0.1:${port}/_limiter${path}`, { headers });
    return response.body.text();
  });
  return (await Promise.all(texts)).join('\n');
}

it(`${REQUESTS} of them`, async () => {
  const seed = Date.now();
  const wanted = fc.sample(SENT, { numRuns: REQUESTS, seed });
  await all(Array.from({ length: SENSIBLE }, (_, at) => sensible(at)));
  const before = await state();
  const early = await all(wanted.slice(0, WARM_UP));
  const warm = resident();
  const late = await all(wanted.slice(WARM_UP));
  const grown = resident() / warm;
  const statuses = new Set([...early, ...late]);
  expect({ seed, failed: [...statuses].filter((status) => status >= 500) }).toEqual({ seed, failed: [] });
  expect(grown).toBeLessThanOrEqual(GROWTH_MAX);
  expect(await state()).toBe(before);
}, 120_000);
