/**
 * The admin API below `/_limiter/`: who may use it, what each path takes, and errors that say what was wrong.
 *
 * It is never counted against a caller's limits, answers nothing to a browser of another origin, and without a configured token it is
 * not there at all.
 */
import type { Context } from 'hono';
import { Hono } from 'hono/tiny';
import { cfOf, regionOf } from '../policy/region.ts';
import { logEvent } from '../telemetry/log.ts';
import type { Endpoint } from './call.ts';
import { ENDPOINTS } from './endpoints.ts';
import { Guard } from './guard.ts';
import { parse, queryOf, readJson } from './input.ts';
import { openApi } from './openapi.ts';
import type { AdminPorts } from './ports.ts';
import { NO_API, notFound, ProblemError, problem, UNAVAILABLE } from './problems.ts';
import { author as authorSchema } from './schemas.ts';

/** Far more than any body but rules and keys. */
const BYTES_MAX = 65_536;

const DEFAULT_AUTHOR = 'admin';

export interface AdminEnv<Bindings> {
  Bindings: Bindings;
}

/** `ports` are those of the isolate; they are asked for once a request has come. */
export function adminApi<Bindings extends object>(
  ports: (bindings: Bindings) => AdminPorts,
): Hono<AdminEnv<Bindings>> {
  const app = new Hono<AdminEnv<Bindings>>();
  let guard: Guard | undefined;
  app.use('*', async (context, next) => {
    const { token, nowMs } = ports(context.env);
    if (token === undefined || token === '') return problem(NO_API);
    guard ??= new Guard(crypto.getRandomValues(new Uint32Array(1))[0]!);
    const refusal = guard.refuse(context.req.raw, token, nowMs());
    return refusal === undefined ? next() : problem(refusal);
  });
  for (const endpoint of ENDPOINTS) {
    app.on(endpoint.method.toUpperCase(), endpoint.path, (context) =>
      answer(context, endpoint, ports(context.env)),
    );
  }
  app.get('/openapi.json', () => Response.json(openApi()));
  for (const path of new Set(ENDPOINTS.map((endpoint) => endpoint.path)))
    app.all(path, () => notAllowed(path));
  app.all('*', () => problem(NO_API));
  return app;
}

async function answer<Bindings extends object>(
  context: Context<AdminEnv<Bindings>>,
  endpoint: Endpoint,
  ports: AdminPorts,
): Promise<Response> {
  try {
    const request = context.req.raw;
    const { body, bodyOf = () => body, query, bytesMax = BYTES_MAX } = endpoint;
    const input = body && (await readJson(request, bytesMax));
    const schema = bodyOf(input);
    const done = await endpoint.handle({
      ports,
      background: (work) => context.executionCtx.waitUntil(work),
      body: schema && parse(schema, input, 'body'),
      query: query && parse(query, queryOf(request), 'query'),
      region: regionOf(cfOf(request)),
      parameters: context.req.param() as Record<string, string>,
      author: parse(
        authorSchema,
        request.headers.get('x-limiter-author') ?? DEFAULT_AUTHOR,
        'header X-Limiter-Author',
      ),
    });
    if (done instanceof Response) return done;
    return Response.json(done.body, { status: done.status ?? 200, headers: { 'Cache-Control': 'no-store' } });
  } catch (error) {
    if (error instanceof ProblemError) return problem(error.details);
    // Handlers reject with nothing else but what a call to an object rejects with.
    logEvent({ event: 'admin_failed', path: endpoint.path, reason: String(error) });
    return problem(UNAVAILABLE);
  }
}

function notAllowed(path: string): Response {
  const methods = ENDPOINTS.filter((endpoint) => endpoint.path === path).map(({ method }) =>
    method.toUpperCase(),
  );
  return problem({
    ...notFound(`This path takes ${methods.join(', ')}.`),
    status: 405,
    error: 'method_not_allowed',
    headers: { Allow: methods.join(', ') },
  });
}
