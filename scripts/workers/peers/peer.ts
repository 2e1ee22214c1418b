/** What the peers that are Workers share: an origin, who calls, and how a caller is refused. */

export interface PeerEnv {
  readonly ORIGIN: Fetcher;
}

export function callerOf(request: Request): string {
  return request.headers.get('x-api-key') ?? 'anyone';
}

export function tooMany(): Response {
  return new Response('Too Many Requests\n', { status: 429 });
}
