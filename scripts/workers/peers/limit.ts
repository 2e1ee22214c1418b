/** What every peer is given to do: a limit for each API key that no bench can reach, so that all requests are admitted. */

export const QUOTA = 60_000_000;
export const WINDOW_MS = 60_000;

export interface PeerEnv {
  readonly ORIGIN: Fetcher;
}

export function callerOf(request: Request): string {
  return request.headers.get('x-api-key') ?? 'anyone';
}

export function tooMany(): Response {
  return new Response('Too Many Requests\n', { status: 429 });
}
