/** Requests that hold slots, and costs that a response tells: the gateway in workerd, with real owners and real bodies. */
import { createExecutionContext, env, reset, waitOnExecutionContext } from 'cloudflare:test';
import { Hono } from 'hono';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type LimiterEnv, rateLimit } from '../../src/gateway/rate-limit.ts';
import { bundledSnapshot } from '../../src/gateway/snapshot.ts';
import { GatewayWorld, isolateOf, rulesetOf } from './gateway-world.ts';

afterEach(() => reset());

const atOnce = (max: number, more: Record<string, unknown> = {}) => ({
  domain: 'test',
  descriptors: [
    {
      key: 'remote_address',
      rate_limit: { algorithm: 'concurrency', max_in_flight: max, policy: 'in-progress', ...more },
    },
  ],
});

/** An origin whose answers the test writes piece by piece. */
class Tap {
  readonly #encoder = new TextEncoder();
  readonly #writers: WritableStreamDefaultWriter<Uint8Array>[] = [];

  readonly origin = (): Response => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    this.#writers.push(writable.getWriter());
    return new Response(readable);
  };

  write(answer: number, text: string): void {
    this.#writers[answer]!.write(this.#encoder.encode(text)).catch(() => {});
  }

  close(answer: number): Promise<void> {
    return this.#writers[answer]!.close();
  }

  fail(answer: number): Promise<void> {
    return this.#writers[answer]!.abort(new Error('the origin broke off'));
  }
}

/** Sends a request, and leaves what it does in the background to go on. */
function start(world: GatewayWorld, path = '/') {
  const request = new Request(`https://api.example.com${path}`, {
    headers: { 'CF-Connecting-IP': '192.0.2.1' },
  });
  return world.begin(request);
}

describe('a slot', () => {
  it('is held until the body has gone out', async () => {
    const tap = new Tap();
    const world = new GatewayWorld(atOnce(1), { origin: tap.origin });
    const first = await start(world);
    expect(first.response.status).toBe(200);
    tap.write(0, 'some ');
    const second = await start(world);
    expect(second.response.status).toBe(429);
    const text = first.response.text();
    tap.write(0, 'text');
    await tap.close(0);
    expect(await text).toBe('some text');
    await first.done();
    expect((await start(world)).response.status).toBe(200);
  });

  it('I01 is free when the client goes away in the middle of the body', async () => {
    const tap = new Tap();
    const world = new GatewayWorld(atOnce(1), { origin: tap.origin });
    const first = await start(world);
    tap.write(0, 'some');
    await first.response.body!.cancel();
    await first.done();
    expect((await start(world)).response.status).toBe(200);
  });

  it('is free when the body fails', async () => {
    const tap = new Tap();
    const world = new GatewayWorld(atOnce(1), { origin: tap.origin });
    const first = await start(world);
    const text = first.response.text();
    await tap.fail(0);
    await expect(text).rejects.toThrow();
    await first.done();
    expect((await start(world)).response.status).toBe(200);
  });

  it('is free when the client goes away before the answer, where the platform tells of it', async () => {
    const { promise: never } = Promise.withResolvers<Response>();
    let isFirst = true;
    const world = new GatewayWorld(atOnce(1), {
      origin: () => {
        if (!isFirst) return new Response('second');
        isFirst = false;
        return never;
      },
    });
    const client = new AbortController();
    const headers = { 'CF-Connecting-IP': '192.0.2.1' };
    const request = new Request('https://api.example.com/', { headers, signal: client.signal });
    void world.begin(request);
    await vi.waitFor(() => expect(world.seen).toHaveLength(1));
    expect((await start(world)).response.status).toBe(429);
    client.abort();
    await vi.waitFor(async () => expect((await start(world)).response.status).toBe(200));
  });

  it.each([
    ['no body', () => new Response(null, { status: 204 })],
    ['an error', () => new Response('no', { status: 500 })],
    ['no answer at all', () => Promise.reject(new Error('refused'))],
  ])('is free after %s', async (_, origin) => {
    const world = new GatewayWorld(atOnce(1), { origin });
    for (let request = 0; request < 5; request += 1) {
      const { response, done } = await start(world);
      expect(response.status).not.toBe(429);
      await response.text();
      await done();
    }
  });

  it('is free after HEAD, whose answer has a length and no body', async () => {
    const world = new GatewayWorld(atOnce(1), {
      origin: () => new Response(null, { headers: { 'content-length': '5' } }),
    });
    for (let request = 0; request < 3; request += 1)
      expect((await world.send('/', { method: 'HEAD' })).status).toBe(200);
  });

  it('is none for a WebSocket once it is open', async () => {
    const world = new GatewayWorld(atOnce(1), {
      origin: () => {
        const { 0: client, 1: server } = new WebSocketPair();
        server.accept();
        return new Response(null, { status: 101, webSocket: client });
      },
    });
    for (let request = 0; request < 3; request += 1) {
      const response = await world.send('/', { headers: { Upgrade: 'websocket' } });
      expect(response.status).toBe(101);
      response.webSocket!.accept();
      response.webSocket!.close();
    }
  });

  it('leaves the response as it is', async () => {
    const body = 'x'.repeat(100_000);
    const headers = { 'content-length': String(body.length), 'content-type': 'text/x-own', 'x-own': 'yes' };
    const world = new GatewayWorld(atOnce(1), { origin: () => new Response(body, { status: 203, headers }) });
    const { response } = await start(world);
    expect([response.status, await response.text()]).toEqual([203, body]);
    expect(Object.fromEntries(response.headers)).toMatchObject(headers);
  });
});

describe('a denial', () => {
  it('of the caller’s own limit is a 429 that says so', async () => {
    const world = new GatewayWorld(atOnce(1), { origin: new Tap().origin });
    await start(world);
    const { response } = await start(world);
    expect([response.status, response.headers.get('Retry-After')]).toEqual([429, '1']);
    expect(response.headers.get('RateLimit-Policy')).toBe('"in-progress";q=1;qu="concurrent-requests"');
    expect(response.headers.get('RateLimit')).toBe('"in-progress";r=0;t=1');
    expect(await response.json()).toMatchObject({
      error: 'too_many_in_progress',
      message: 'Too many requests for this address are in progress. Wait for one of them to end.',
      'violated-policies': ['in-progress'],
      retry_after: 1,
    });
  });

  it('of a limit that is everybody’s is a 503', async () => {
    const world = new GatewayWorld(atOnce(1, { per: [] }), { origin: new Tap().origin });
    await start(world);
    const { response } = await start(world);
    expect([response.status, response.headers.get('Retry-After')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      error: 'at_capacity',
      'violated-policies': ['in-progress'],
    });
  });

  it('by a rate beside a full limit is the rate’s', async () => {
    const world = new GatewayWorld(
      {
        domain: 'test',
        descriptors: [
          {
            key: 'remote_address',
            rate_limit: [
              { algorithm: 'concurrency', max_in_flight: 1, policy: 'in-progress', per: [] },
              { unit: 'minute', requests_per_unit: 1 },
            ],
          },
        ],
      },
      { origin: new Tap().origin },
    );
    await start(world);
    const { response } = await start(world);
    expect(response.status).toBe(429);
    expect(await response.json()).toMatchObject({ error: 'rate_limited' });
  });
});

describe('a cost that the response tells', () => {
  const file = (costs: Record<string, unknown>, quota = 100) => ({
    domain: 'test',
    costs: [{ route: '/tokens', ...costs }],
    descriptors: [{ key: 'remote_address', rate_limit: { unit: 'day', requests_per_unit: quota } }],
  });
  const reserve = { reserve: 10, cost_header: 'x-tokens', default: 7 };
  const tellsOf = (header?: string) => () =>
    new Response('said', { headers: header === undefined ? {} : { 'x-tokens': header } });

  /** What is left after a request, as the next one is told; the next one costs one. */
  async function leftAfter(world: GatewayWorld): Promise<number> {
    await world.send('/tokens');
    const next = await world.send('/');
    return Number(/r=(\d+)/.exec(next.headers.get('RateLimit') ?? '')?.[1]) + 1;
  }

  it.each([
    ['less', '3', 97],
    ['nothing', '0', 100],
    ['as much', '10', 90],
    ['more', '42', 58],
  ])('%s than was reserved', async (_, header, left) => {
    expect(await leftAfter(new GatewayWorld(file(reserve), { origin: tellsOf(header) }))).toBe(left);
  });

  it.each([
    ['absent (X05)', undefined],
    ['negative', '-5'],
    ['huge', '99999999999999999999'],
    ['above what a request may cost', '1000001'],
    ['text', 'many'],
    ['empty', ''],
    ['a fraction', '2.5'],
    ['an exponent', '1e3'],
    ['repeated', '5, 6'],
    ['infinite', 'Infinity'],
    ['hexadecimal', '0x10'],
  ])('%s is the default', async (_, header) => {
    expect(await leftAfter(new GatewayWorld(file(reserve), { origin: tellsOf(header) }))).toBe(93);
  });

  it('stands in the response as the origin wrote it', async () => {
    const world = new GatewayWorld(file(reserve), { origin: tellsOf('3') });
    expect((await world.send('/tokens')).headers.get('x-tokens')).toBe('3');
  });

  it('is nobody’s business on other routes', async () => {
    const world = new GatewayWorld(file(reserve), { origin: tellsOf('42') });
    await world.send('/else');
    expect((await world.send('/else')).headers.get('RateLimit')).toMatch(/r=98;/);
  });

  it('X07 a stream that crosses the limit finishes, and the next request is denied', async () => {
    const tap = new Tap();
    const world = new GatewayWorld(file({ ...reserve, reserve: 1 }, 15), {
      origin: () => {
        const response = tap.origin();
        response.headers.set('x-tokens', '40');
        return response;
      },
    });
    const first = await start(world, '/tokens');
    const text = first.response.text();
    tap.write(0, 'a long ');
    expect((await start(world)).response.status).toBe(429);
    tap.write(0, 'story');
    await tap.close(0);
    expect(await text).toBe('a long story');
  });

  it('of an origin that does not answer is the default', async () => {
    const world = new GatewayWorld(file(reserve), { origin: () => Promise.reject(new Error('refused')) });
    expect(await leftAfter(world)).toBe(93);
  });
});

describe('settle() in an app of one’s own', () => {
  interface Env extends LimiterEnv {
    Bindings: LimiterEnv['Bindings'];
  }

  const rules = rulesetOf({
    domain: 'test',
    costs: [
      { route: '/tokens', reserve: 10, default: 7 },
      { route: '/header', reserve: 10, default: 7, cost_header: 'x-tokens' },
    ],
    descriptors: [{ key: 'remote_address', rate_limit: { unit: 'day', requests_per_unit: 100 } }],
  });

  function appOf(handler: (settle: ((units: number) => void) | undefined) => Response | Promise<Response>) {
    const snapshot = bundledSnapshot(rules);
    const app = new Hono<Env>();
    const bindings = { OWNER: isolateOf(env.OWNER) };
    app.use('*', rateLimit<Env>({ rules: () => snapshot }));
    app.get('/left', (context) => context.text(''));
    app.get('*', (context) => handler(context.get('settle')));
    return async (path: string) => {
      const context = createExecutionContext();
      const response = await app.request(
        path,
        { headers: { 'CF-Connecting-IP': '192.0.2.1' } },
        bindings,
        context,
      );
      return { response, done: () => waitOnExecutionContext(context) };
    };
  }

  async function left(ask: ReturnType<typeof appOf>): Promise<number> {
    const { response } = await ask('/left');
    return Number(/r=(\d+)/.exec(response.headers.get('RateLimit') ?? '')?.[1]) + 1;
  }

  async function leftAfter(ask: ReturnType<typeof appOf>, path = '/tokens'): Promise<number> {
    const { response, done } = await ask(path);
    await response.text().catch(() => {});
    await done();
    return left(ask);
  }

  it.each([
    ['once', [4], 96],
    ['again and again, and the last word counts', [4, 9, 30], 70],
    ['never: the default', [], 93],
    ['nonsense: the default', [-1, 2.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_001], 93],
    ['nonsense after sense: what was said before', [4, -1], 96],
  ])('is told %s', async (_, told, expected) => {
    const ask = appOf((settle) => {
      for (const units of told) settle?.(units);
      return new Response('done');
    });
    expect(await leftAfter(ask)).toBe(expected);
  });

  it('is told while the body streams, and counts when it has ended', async () => {
    const ask = appOf((settle) => {
      let sent = 0;
      const body = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (sent === 3) return controller.close();
          sent += 1;
          settle?.(sent * 10);
          controller.enqueue(new TextEncoder().encode('token '));
        },
      });
      return new Response(body);
    });
    expect(await leftAfter(ask)).toBe(70);
  });

  it('a stream that is broken off costs what was known by then', async () => {
    const ask = appOf((settle) => {
      settle?.(20);
      return new Response(
        new ReadableStream({ pull: (controller) => controller.error(new Error('broken off')) }),
      );
    });
    expect(await leftAfter(ask)).toBe(80);
  });

  it('with a header, what was said before the answer counts more, and later words nothing', async () => {
    let late: ((units: number) => void) | undefined;
    const answer = () => new Response('done', { headers: { 'x-tokens': '30' } });
    expect(await leftAfter(appOf(answer), '/header')).toBe(70);
    await reset();
    const ask = appOf((settle) => {
      late = settle;
      settle?.(4);
      return answer();
    });
    const { response, done } = await ask('/header');
    await response.text();
    late?.(50);
    await done();
    expect(await left(ask)).toBe(96);
  });

  it('a handler that throws costs the default, and holds nothing', async () => {
    const ask = appOf(() => {
      throw new Error('a bug');
    });
    expect(await leftAfter(ask)).toBe(93);
  });

  it('is not offered where the cost is known beforehand', async () => {
    const offered: unknown[] = [];
    const ask = appOf((settle) => {
      offered.push(settle);
      return new Response('done');
    });
    await (await ask('/else')).done();
    expect(offered).toEqual([undefined]);
  });
});
