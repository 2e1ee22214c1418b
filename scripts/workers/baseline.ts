/**
 * What a request costs without a limiter: it forwards, by the same ways as the limiter does, and nothing else.
 *
 * With the binding NOTHING it first makes one object call that does nothing: the least that a limiter with an owner can cost.
 * Callers are spread over objects as a limiter spreads them, by API key.
 */
import { DurableObject } from 'cloudflare:workers';

interface BaselineEnv {
  readonly ORIGIN?: Fetcher;
  readonly ORIGIN_URL?: string;
  readonly NOTHING?: DurableObjectNamespace<Nothing>;
}

export class Nothing extends DurableObject {
  call(): boolean {
    return true;
  }
}

export default {
  async fetch(request: Request, env: BaselineEnv): Promise<Response> {
    await env.NOTHING?.getByName(request.headers.get('x-api-key') ?? 'anyone').call();
    if (env.ORIGIN !== undefined) return env.ORIGIN.fetch(request);
    const { pathname, search } = new URL(request.url);
    const base = (env.ORIGIN_URL ?? '').replace(/\/$/, '');
    return fetch(new Request(base + pathname + search, request));
  },
};
