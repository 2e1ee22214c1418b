/**
 * To the origin and back: by service binding, to `ORIGIN_URL`, or to where the request was going anyway (a route's own origin).
 *
 * Bodies stream both ways and are never held. An origin that fails is a 502; how long it may take to begin its answer is the
 * platform's to say, since a limit of ours would cut off whoever waits for a slow answer on purpose.
 */
import { logEvent } from '../telemetry/log.ts';
import { problemResponse } from './respond.ts';
import { unambiguous } from './target.ts';

export interface OriginBindings {
  readonly ORIGIN?: Fetcher;
  readonly ORIGIN_URL?: string;
}

export async function forward(request: Request, bindings: OriginBindings): Promise<Response> {
  try {
    const response = await send(request, bindings);
    // What `fetch` answers has immutable headers, and the limit fields are still to come.
    return new Response(response.body, response);
  } catch (error) {
    if (!isWellFormed(request)) return malformed();
    logEvent({ event: 'origin_failed', reason: String(error) });
    return originFailed();
  }
}

/** The request goes as it is: with options of any kind it would be copied, which costs a sixth of the throughput. */
function send(request: Request, { ORIGIN, ORIGIN_URL }: OriginBindings): Promise<Response> {
  if (ORIGIN === undefined && ORIGIN_URL !== undefined)
    return fetch(new Request(rebase(request.url, ORIGIN_URL), request));
  const url = unambiguous(request.url);
  const asked = url === undefined ? request : new Request(url, request);
  return ORIGIN === undefined ? fetch(asked) : ORIGIN.fetch(asked);
}

/** The same path and query at another origin, under whatever path that origin's address has. */
function rebase(url: string, originUrl: string): string {
  const from = new URL(url);
  const to = new URL(originUrl);
  to.pathname = to.pathname.replace(/\/$/, '') + from.pathname;
  to.search = from.search;
  return to.href;
}

/** A `Host` that is none makes an address that no origin has; and where clients write what the platform says of them, it need not be JSON. */
function isWellFormed(request: Request): boolean {
  try {
    return request.cf !== null && URL.canParse(request.url);
  } catch {
    return false;
  }
}

function malformed(): Response {
  return problemResponse({
    type: 'about:blank',
    title: 'Bad Request',
    status: 400,
    error: 'malformed_request',
    message: 'The address of this request cannot be read. Check its Host header and its path.',
  });
}

function originFailed(): Response {
  return problemResponse({
    type: 'about:blank',
    title: 'Bad Gateway',
    status: 502,
    error: 'origin_failed',
    message: 'The origin could not be reached. The request was admitted by the rate limiter.',
  });
}
