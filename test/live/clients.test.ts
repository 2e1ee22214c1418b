/** The clients that people use, against the limiter as it is served: each waits as long as it was told, and succeeds in the end. */
import { join } from 'node:path';
import { Octokit } from '@octokit/core';
import { throttling } from '@octokit/plugin-throttling';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import got from 'got';
import ky from 'ky';
import { Agent, RetryAgent, request as undiciRequest } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';
import { startRecorder } from './recorder.ts';

/** A start bundles the Worker, on a machine that may be busy. */
const START_MS_MAX = 60_000;

/** A timer of Node's may fire within the millisecond before its time. */
const TIMER_SLACK_MS = 1;

type Client = (url: string) => Promise<number>;

const CLIENTS: Readonly<Record<string, Client>> = {
  ky: async (url) => (await ky.get(url, { retry: { limit: 3 } })).status,

  got: async (url) => (await got(url, { retry: { limit: 3 } })).statusCode,

  'axios with axios-retry': async (url) => {
    const client = axios.create();
    axiosRetry(client, { retries: 3 });
    return (await client.get(url)).status;
  },

  'the RetryAgent of undici': async (url) => {
    const dispatcher = new RetryAgent(new Agent(), { maxRetries: 3, statusCodes: [429] });
    const { statusCode, body } = await undiciRequest(url, { dispatcher });
    await body.dump();
    await dispatcher.close();
    return statusCode;
  },
};

const OF_OLDER_FIELDS: Readonly<Record<string, Client>> = {
  'octokit with plugin-throttling, which only understands the older fields': async (url) => {
    const Throttled = Octokit.plugin(throttling);
    const octokit = new Throttled({
      baseUrl: url,
      log: { debug() {}, info() {}, warn() {}, error() {} },
      throttle: {
        onRateLimit: (_retryAfter, _options, _octokit, retryCount) => retryCount < 3,
        onSecondaryRateLimit: (_retryAfter, _options, _octokit, retryCount) => retryCount < 3,
      },
    });
    return (await octokit.request('GET /')).status;
  },
};

let clients = 0;

describe.each([
  ['ietf, the default', 'clients.yaml', CLIENTS],
  ['both', 'clients-both.yaml', { ...CLIENTS, ...OF_OLDER_FIELDS }],
])('headers: %s', (_, rules, all) => {
  let served: ServeChild;
  let port: number;

  beforeAll(async () => {
    port = await freePorts(1);
    served = await startServe('--port', String(port), '--rules', join(import.meta.dirname, rules));
  }, START_MS_MAX);

  afterAll(() => served?.stop());

  // They mostly wait, so they do it together.
  it.concurrent.each(Object.entries(all))('%s', async (_, get) => {
    clients += 1;
    const recorder = await startRecorder(`http://127.0.0.1:${port}`, `192.0.2.${clients}`);
    try {
      expect(await get(recorder.url)).toBe(200);
      expect(await get(recorder.url)).toBe(200);
    } finally {
      await recorder.close();
    }
    const denied = recorder.attempts.filter(({ status }) => status === 429);
    expect(denied.length).toBeGreaterThan(0);
    for (const [at, { status, atMs, retryAfterMs }] of recorder.attempts.entries()) {
      if (status !== 429) continue;
      expect(retryAfterMs).toBeGreaterThanOrEqual(1_000);
      const next = recorder.attempts[at + 1];
      expect(next?.atMs).toBeGreaterThanOrEqual(atMs + (retryAfterMs ?? 0) - TIMER_SLACK_MS);
    }
  });
});
