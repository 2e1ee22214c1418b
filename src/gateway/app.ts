/**
 * The gateway: reserved paths, then the limits, then the origin.
 */
import { Hono } from 'hono/tiny';
import { servedRegion } from '../policy/place.ts';
import { cfOf, regionOf } from '../policy/region.ts';
import { logEvent } from '../telemetry/log.ts';
import { forward, type OriginBindings } from './forward.ts';
import {
  type LimiterBindings,
  type LimiterServices,
  type LimiterVariables,
  type RateLimitOptions,
  rateLimit,
} from './rate-limit.ts';
import { isReserved } from './reserved.ts';
import { notFound, unavailable } from './respond.ts';
import type { Snapshot } from './snapshot.ts';
import { pathOf } from './target.ts';

export type GatewayBindings = LimiterBindings & OriginBindings;

export interface GatewayOptions extends Pick<RateLimitOptions<GatewayEnv>, 'identify' | 'cost'> {
  readonly rules: (bindings: GatewayBindings) => Snapshot;
  /** Where there is a control plane: its part in the way of a request. */
  readonly services?: (bindings: GatewayBindings) => LimiterServices;
  /** What answers below `/_limiter/`, but for health. */
  readonly admin?: Hono<{ Bindings: GatewayBindings }>;
}

interface GatewayEnv {
  Bindings: GatewayBindings;
  Variables: LimiterVariables;
}

export interface Gateway {
  fetch(request: Request, bindings: GatewayBindings, context: ExecutionContext): Promise<Response>;
}

/**
 * The one catch at the top: a fault of the limiter's own goes on to the origin, unless a closed rule is about the request's route. It is
 * logged as a fault, apart from outages.
 */
export function createGateway(options: GatewayOptions): Gateway {
  const reserved = reservedPaths(options);
  const limited = limitedPaths(options);
  return {
    async fetch(request, bindings, context) {
      try {
        const app = isReserved(request.url) ? reserved : limited;
        return await app.fetch(request, bindings, context);
      } catch (error) {
        logEvent({
          event: 'limiter_fault',
          reason: error instanceof Error ? `${error.stack}` : String(error),
        });
        return !isReserved(request.url) && isOpen(request, bindings, options)
          ? forward(request, bindings)
          : unavailable();
      }
    },
  };
}

/** What a fault of ours comes to is decided in one place. */
function newApp(): Hono<GatewayEnv> {
  return new Hono<GatewayEnv>().onError((error) => {
    throw error;
  });
}

function reservedPaths({ services, admin, rules }: GatewayOptions): Hono<GatewayEnv> {
  const app = newApp();
  // Whatever is asked here, the isolate hears of news and hands on its counts, as it does beside a caller's request.
  app.use('/_limiter/*', async (context, next) => {
    await next();
    services?.(context.env).attend((work) => context.executionCtx.waitUntil(work));
  });
  app.get('/_limiter/health', (context) => health(context.req.raw, () => rules(context.env)));
  if (admin !== undefined) app.route('/_limiter', admin);
  return app.notFound(() => notFound());
}

/** An app of its own, since a router takes the longer for each request the more routes it has. */
function limitedPaths({ services, rules, ...options }: GatewayOptions): Hono<GatewayEnv> {
  const limit = rateLimit<GatewayEnv>({
    ...options,
    rules: (context) => rules(context.env),
    ...(services && { services: (context) => services(context.env) }),
  });
  // Mounted by hand: one handler for a path is called directly, two are composed anew for each request.
  return newApp().all('*', async (context) => {
    const refusal = await limit(context, async () => {
      context.res = await forward(context.req.raw, context.env);
    });
    return refusal ?? context.res;
  });
}

/**
 * Answered here whatever is broken: a health check that the origin answers would say nothing about the limiter. `region` is the one that
 * whoever asks is counted in.
 */
function health(request: Request, rules: () => Snapshot): Response {
  const from = regionOf(cfOf(request));
  try {
    const { version, source, ruleset } = rules();
    const region = servedRegion(ruleset, from);
    const { activation } = version;
    return Response.json({ status: 'ok', activation, rulesSource: source, region });
  } catch (error) {
    logEvent({ event: 'limiter_fault', reason: String(error) });
    return Response.json(
      { status: 'broken', activation: null, rulesSource: null, region: from },
      { status: 503 },
    );
  }
}

function isOpen(request: Request, bindings: GatewayBindings, options: GatewayOptions): boolean {
  try {
    return options.rules(bindings).isOpen(pathOf(request.url));
  } catch {
    // Without rules nothing says closed.
    return true;
  }
}
