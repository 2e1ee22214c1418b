/** `hono-rate-limiter` with its own memory store, in front of the origin. */
import { Hono, type MiddlewareHandler } from 'hono';
import { rateLimiter } from 'hono-rate-limiter';
import { QUOTA, WINDOW_MS } from './limit.ts';
import { callerOf, type PeerEnv } from './peer.ts';

/** Made by the first request: the store starts a timer, which a Worker may only do inside a handler. */
let limit: MiddlewareHandler<{ Bindings: PeerEnv }> | undefined;

const app = new Hono<{ Bindings: PeerEnv }>();
app.use((context, next) => {
  limit ??= rateLimiter({
    windowMs: WINDOW_MS,
    limit: QUOTA,
    keyGenerator: ({ req }) => callerOf(req.raw),
  });
  return limit(context, next);
});
app.all('*', async (context) => {
  const answer = await context.env.ORIGIN.fetch(context.req.raw);
  // Made anew by Hono: the limiter's response fields are lost on one that it did not make.
  return context.newResponse(answer.body, answer);
});

export default app;
