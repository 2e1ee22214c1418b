/**
 * What a request costs without a limiter. As it stands it forwards, by the same ways as the limiter does, and nothing else; a binding
 * adds one part of what a limiter cannot do without.
 *
 * NOTHING: one object call that does nothing, callers being spread over objects as a limiter spreads them, by API key.
 * FIELDS: the caller's headers are read and the response carries a limiter's fields, whose text never changes.
 * DENIES: the fields go with a constant 429, and nothing is forwarded.
 */
import { DurableObject } from 'cloudflare:workers';

interface BaselineEnv {
  readonly ORIGIN?: Fetcher;
  readonly ORIGIN_URL?: string;
  readonly NOTHING?: DurableObjectNamespace<Nothing>;
  readonly FIELDS?: 'true';
  readonly DENIES?: 'true';
}

export class Nothing extends DurableObject {
  call(): boolean {
    return true;
  }
}

/** As long as the limiter's own, so that as many bytes are written. */
const RATE_LIMIT = '"default";r=999999;t=1';
const RATE_LIMIT_POLICY = '"default";q=60000000;w=60';
const SERVER_TIMING = 'limiter;desc="local";dur=0.02';

const DENIAL = JSON.stringify({
  type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
  title: 'Too Many Requests',
  status: 429,
  error: 'rate_limited',
  message: 'API rate limit exceeded for this key.',
  'violated-policies': ['default'],
  retry_after: 1,
});

export default {
  async fetch(request: Request, env: BaselineEnv): Promise<Response> {
    if (env.DENIES !== undefined) return denial(request);
    await env.NOTHING?.getByName(request.headers.get('x-api-key') ?? 'anyone').call();
    return env.FIELDS === undefined ? forward(request, env) : forwardWithFields(request, env);
  },
};

function forward(request: Request, env: BaselineEnv): Promise<Response> {
  if (env.ORIGIN !== undefined) return env.ORIGIN.fetch(request);
  const { pathname, search } = new URL(request.url);
  const base = (env.ORIGIN_URL ?? '').replace(/\/$/, '');
  return fetch(new Request(base + pathname + search, request));
}

async function forwardWithFields(request: Request, env: BaselineEnv): Promise<Response> {
  readCaller(request);
  const answer = await forward(request, env);
  const response = new Response(answer.body, answer);
  response.headers.set('RateLimit', RATE_LIMIT);
  response.headers.set('RateLimit-Policy', RATE_LIMIT_POLICY);
  response.headers.append('Server-Timing', SERVER_TIMING);
  return response;
}

function denial(request: Request): Response {
  readCaller(request);
  return new Response(DENIAL, {
    status: 429,
    headers: {
      'Content-Type': 'application/problem+json',
      'Cache-Control': 'no-store',
      'Retry-After': '1',
      RateLimit: RATE_LIMIT,
      'RateLimit-Policy': RATE_LIMIT_POLICY,
      'Server-Timing': SERVER_TIMING,
    },
  });
}

/** Asks the runtime for the two fields that say who calls. Each is a trip out of the script, which nothing can leave out. */
function readCaller({ headers }: Request): void {
  headers.get('x-api-key');
  headers.get('cf-connecting-ip');
}
