/**
 * To the origin and back: by service binding, to `ORIGIN_URL`, or to where the request was going anyway (a route's own origin).
 *
 * Bodies stream both ways and are never held. An origin that fails or does not answer in time is a 502, not a hang.
 */
import { logEvent } from '../telemetry/log.ts';
import { problemResponse } from './respond.ts';

export interface OriginBindings {
  readonly ORIGIN?: Fetcher;
  readonly ORIGIN_URL?: string;
}

/** How long an origin may take to begin its answer: as long as Cloudflare itself waits for one. */
const ORIGIN_TIMEOUT_MS = 100_000;

export async function forward(request: Request, bindings: OriginBindings): Promise<Response> {
  const timeout = new AbortController();
  const timer = setTimeout(() => timeout.abort(), ORIGIN_TIMEOUT_MS);
  try {
    const response = await send(request, bindings, timeout.signal);
    // What `fetch` answers has immutable headers, and the limit fields are still to come.
    return new Response(response.body, response);
  } catch (error) {
    if (!URL.canParse(request.url)) return malformed();
    logEvent({ event: 'origin_failed', reason: String(error) });
    return originFailed(timeout.signal.aborted ? 'did not answer in time' : 'could not be reached');
  } finally {
    clearTimeout(timer);
  }
}

function send(
  request: Request,
  { ORIGIN, ORIGIN_URL }: OriginBindings,
  signal: AbortSignal,
): Promise<Response> {
  if (ORIGIN !== undefined) return ORIGIN.fetch(request, { signal });
  if (ORIGIN_URL !== undefined)
    return fetch(new Request(rebase(request.url, ORIGIN_URL), request), { signal });
  return fetch(request, { signal });
}

/** The same path and query at another origin, under whatever path that origin's address has. */
function rebase(url: string, originUrl: string): string {
  const from = new URL(url);
  const to = new URL(originUrl);
  to.pathname = to.pathname.replace(/\/$/, '') + from.pathname;
  to.search = from.search;
  return to.href;
}

/** A `Host` that is none makes an address that no origin has. */
function malformed(): Response {
  return problemResponse({
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    error: 'malformed_request',
    message: 'The address of this request cannot be read. Check its Host header and its path.',
  });
}

function originFailed(what: string): Response {
  return problemResponse({
    type: 'about:blank',
    title: 'Bad Gateway',
    status: 502,
    error: 'origin_failed',
    message: `The origin ${what}. The request was admitted by the rate limiter.`,
  });
}
