/** `rate-limiter-flexible` in the isolate's memory, in front of the origin; it writes no response fields. */
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { callerOf, type PeerEnv, QUOTA, tooMany, WINDOW_MS } from './limit.ts';

const limiter = new RateLimiterMemory({ points: QUOTA, duration: WINDOW_MS / 1_000 });

export default {
  async fetch(request: Request, env: PeerEnv): Promise<Response> {
    try {
      await limiter.consume(callerOf(request));
    } catch {
      return tooMany();
    }
    return env.ORIGIN.fetch(request);
  },
};
