/** `rate-limiter-flexible` in the isolate's memory, in front of the origin; it writes no response fields. */
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { QUOTA, WINDOW_MS } from './limit.ts';
import { callerOf, type PeerEnv, tooMany } from './peer.ts';

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
