/**
 * Owners that go away while requests come in, on the bundle as it is served: everybody is answered, what is admitted stays within the
 * printed bound, and when the owners are back the limit is exact again.
 */
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';

const START_MS_MAX = 60_000;
const RATE_PER_SECOND = 100;
const BURST = 100;

/** What `limiter explain` prints for this rule: 1.2 times the shares, which add up to one. */
const FALLBACK_FACTOR = 1.2;

/** A fallback bucket holds at least one request, however small its share. */
const LARGEST_COST = 1;

/** An owner that is back is asked again within two seconds. */
const BACK_WITHIN = { timeout: 2_000, interval: 50 };

let served: ServeChild;
let port: number;
const agent = new Agent({ connections: 64, pipelining: 1 });

beforeAll(async () => {
  port = await freePorts(2);
  const rules = join(import.meta.dirname, 'outage.yaml');
  served = await startServe('--port', String(port), '--faults', String(port + 1), '--rules', rules);
}, START_MS_MAX);

afterAll(async () => {
  await agent.close();
  await served?.stop();
});

afterEach(() => setOwners({ mode: 'ok' }));

async function setOwners(fault: { mode: string; delayMs?: number }): Promise<void> {
  await fetch(`http://127.0.0.1:${port + 1}/owner`, { method: 'PUT', body: JSON.stringify(fault) });
}

interface Answer {
  readonly status: number;
  readonly source: string;
}

async function send(key: string, path = '/'): Promise<Answer> {
  const headers = { 'x-api-key': key, 'cf-connecting-ip': '192.0.2.1' };
  const response = await request(`http://127.0.0.1:${port}${path}`, { dispatcher: agent, headers });
  await response.body.dump();
  const source = /desc="(\w+)"/.exec(String(response.headers['server-timing']))?.[1] ?? '';
  return { status: response.statusCode, source };
}

interface Flood {
  readonly answers: readonly Answer[];
  readonly startedMs: number;
  /** When the first request of the last wave was sent. */
  readonly lastWaveMs: number;
  readonly endedMs: number;
}

/** Sends waves of requests for about this long. */
async function flood(key: string, forMs: number): Promise<Flood> {
  const startedMs = performance.now();
  const answers: Answer[] = [];
  let lastWaveMs: number;
  do {
    lastWaveMs = performance.now();
    answers.push(...(await Promise.all(Array.from({ length: 32 }, () => send(key)))));
  } while (performance.now() - startedMs < forMs);
  return { answers, startedMs, lastWaveMs, endedMs: performance.now() };
}

/** What the rate gives in this time. */
const unitsIn = (fromMs: number, untilMs: number) => (RATE_PER_SECOND * (untilMs - fromMs)) / 1_000;
const admitted = (answers: readonly Answer[]) => answers.filter(({ status }) => status === 200).length;

/**
 * Every wave drains the bucket at some time between its first request and its last answer, so what a flood right after another admits is the
 * rate alone: no more than it gives from the other's last wave to the end, no less than from the other's end to the last wave.
 */
function rateAlone(before: Flood, flood: Flood): { most: number; least: number } {
  return {
    most: unitsIn(before.lastWaveMs, flood.endedMs),
    least: unitsIn(before.endedMs, flood.lastWaveMs),
  };
}

describe.each([
  ['down', 'k_down', { mode: 'down' }],
  ['stalled', 'k_slow', { mode: 'slow', delayMs: 5_000 }],
])('owners that are %s', (_, key, fault) => {
  it('everybody is answered, within the bound, and the limit is exact when they are back', async () => {
    const before = await flood(key, 1_000);
    expect(admitted(before.answers)).toBeLessThanOrEqual(BURST + unitsIn(before.startedMs, before.endedMs));

    await setOwners(fault);
    const during = await flood(key, 3_000);
    expect(new Set(during.answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
    expect(during.answers.some(({ source }) => source === 'fallback')).toBe(true);
    const given = unitsIn(during.startedMs, during.endedMs);
    expect(admitted(during.answers)).toBeLessThanOrEqual(BURST + given * FALLBACK_FACTOR + LARGEST_COST);
    // The shares of one isolate are the whole: it goes on at its limit, not below it.
    expect(admitted(during.answers)).toBeGreaterThanOrEqual(given - BURST);

    await setOwners({ mode: 'ok' });
    const settling = await flood(key, 2_000);
    const after = await flood(key, 3_000);
    expect(after.answers.filter(({ source }) => source === 'fallback')).toEqual([]);
    const { most, least } = rateAlone(settling, after);
    expect(admitted(after.answers)).toBeLessThanOrEqual(most + 1);
    // What the fallback admitted is charged to the owner, which stays in debt by one quota at most until that has come back.
    expect(admitted(after.answers)).toBeGreaterThanOrEqual(least - RATE_PER_SECOND - 1);
    const later = await flood(key, 2_000);
    const exact = rateAlone(after, later);
    expect(admitted(later.answers)).toBeLessThanOrEqual(exact.most + 1);
    expect(admitted(later.answers)).toBeGreaterThanOrEqual(exact.least - 1);
  }, 30_000);
});

describe('a closed rule', () => {
  it('denies with a 503 while its owner is away, and admits when it is back', async () => {
    expect((await send('k_closed', '/closed')).status).toBe(200);
    await setOwners({ mode: 'down' });
    const statuses = await Promise.all(Array.from({ length: 10 }, () => send('k_closed', '/closed')));
    expect(new Set(statuses.map(({ status }) => status))).toEqual(new Set([503]));
    await setOwners({ mode: 'ok' });
    await vi.waitFor(async () => expect((await send('k_closed', '/closed')).status).toBe(200), BACK_WITHIN);
    const after = [];
    for (let sent = 0; sent < 10; sent += 1) after.push(await send('k_closed', '/closed'));
    expect(after).toEqual(after.map(() => ({ status: 200, source: 'owner' })));
  });
});
