/**
 * What a browser needs so that its script can read a denial and the limit fields: without these headers a 429 from another origin shows
 * as a network error and nothing else.
 */
import type { HeaderMode } from '../policy/ruleset.ts';
import { fieldNames } from './fields.ts';

/** A preflight is the browser's own question, not the caller's request. */
export function isPreflight(request: Request): boolean {
  const { headers } = request;
  return (
    request.method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method')
  );
}

export interface CorsOptions {
  readonly origins: readonly string[];
  readonly mode: HeaderMode;
}

/** For an answer of the limiter's own: lets the origins that the rule file names read it. */
export function allowReading(headers: Headers, request: Request, options: CorsOptions): void {
  const origin = allowedOrigin(request, options.origins);
  if (origin === undefined) return;
  headers.set('Access-Control-Allow-Origin', origin);
  // A script that sends credentials may read an answer only if it says so, and then not for `*`.
  if (origin !== '*') headers.set('Access-Control-Allow-Credentials', 'true');
  headers.append('Vary', 'Origin');
  exposeFields(headers, request, options);
}

/** For an answer of the origin's: it has its own CORS headers, but does not know of the limit fields. */
export function exposeFields(headers: Headers, request: Request, { origins, mode }: CorsOptions): void {
  if (allowedOrigin(request, origins) === undefined) return;
  headers.append('Access-Control-Expose-Headers', fieldNames(mode).join(', '));
}

function allowedOrigin(request: Request, origins: readonly string[]): string | undefined {
  const origin = request.headers.get('origin');
  if (origin === null) return undefined;
  if (origins.includes(origin)) return origin;
  return origins.includes('*') ? '*' : undefined;
}
