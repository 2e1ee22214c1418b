/**
 * What a browser needs so that its script can read a denial and the limit fields: without these headers a 429 from another origin shows
 * as a network error and nothing else.
 */
import type { HeaderMode } from '../policy/ruleset.ts';
import { type Fields, fieldNames } from './fields.ts';

/** A preflight is the browser's own question, not the caller's request. */
export function isPreflight({ headers }: Request, method: string): boolean {
  return method === 'OPTIONS' && headers.has('origin') && headers.has('access-control-request-method');
}

export interface CorsOptions {
  readonly origins: readonly string[];
  readonly mode: HeaderMode;
}

/** For an answer of the limiter's own: the headers that let the origins which the rule file names read it. */
export function readableBy(request: Request, options: CorsOptions): Fields {
  const origin = allowedOrigin(request, options.origins);
  if (origin === undefined) return {};
  return {
    'Access-Control-Allow-Origin': origin,
    // A script that sends credentials may read an answer only if it says so, and then not for `*`.
    ...(origin !== '*' && { 'Access-Control-Allow-Credentials': 'true' }),
    'Access-Control-Expose-Headers': fieldNames(options.mode).join(', '),
    Vary: 'Origin',
  };
}

/** For an answer of the origin's: it has its own CORS headers, but does not know of the limit fields. */
export function exposeFields(headers: Headers, request: Request, { origins, mode }: CorsOptions): void {
  if (origins.length === 0) return;
  headers.append('Vary', 'Origin');
  if (allowedOrigin(request, origins) === undefined) return;
  headers.append('Access-Control-Expose-Headers', fieldNames(mode).join(', '));
}

function allowedOrigin(request: Request, origins: readonly string[]): string | undefined {
  const origin = origins.length === 0 ? null : request.headers.get('origin');
  if (origin === null) return undefined;
  if (origins.includes(origin)) return origin;
  return origins.includes('*') ? '*' : undefined;
}
