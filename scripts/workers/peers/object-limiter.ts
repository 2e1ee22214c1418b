/**
 * A limiter in the style of Cloudflare's own example for Durable Objects: one object for each key, one call for each request, a
 * token bucket in the object's memory, and no response fields.
 */
import { DurableObject } from 'cloudflare:workers';
import { QUOTA, WINDOW_MS } from './limit.ts';
import { callerOf, type PeerEnv, tooMany } from './peer.ts';

interface Env extends PeerEnv {
  readonly LIMITERS: DurableObjectNamespace<ObjectLimiter>;
}

const TOKENS_PER_MS = QUOTA / WINDOW_MS;

export class ObjectLimiter extends DurableObject {
  #tokens = QUOTA;
  #updatedAtMs = Date.now();

  /** Takes a token; answers how long to wait when there is none. */
  millisecondsToNextRequest(): number {
    const nowMs = Date.now();
    this.#tokens = Math.min(QUOTA, this.#tokens + (nowMs - this.#updatedAtMs) * TOKENS_PER_MS);
    this.#updatedAtMs = nowMs;
    if (this.#tokens < 1) return (1 - this.#tokens) / TOKENS_PER_MS;
    this.#tokens -= 1;
    return 0;
  }
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const waitMs = await env.LIMITERS.getByName(callerOf(request)).millisecondsToNextRequest();
    return waitMs > 0 ? tooMany() : env.ORIGIN.fetch(request);
  },
};
