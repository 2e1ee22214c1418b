/** What an API key may look like for a request to show it. */
import type { KeyLocation } from './ruleset.ts';

/** Longer than any key in use; what is longer is not hashed but dropped. */
export const KEY_LENGTH_MAX = 512;

/** RFC 6750's `b64token`. */
const BEARER_TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Visible ASCII, without the comma that joins repeated headers. */
const VISIBLE = /^[!-+\--~]+$/;

/** The token of an `Authorization` header; `undefined` when there is none that is one. */
export function bearerTokenOf(authorization: string | null): string | undefined {
  const shown = /^bearer +(\S+)$/i.exec(authorization ?? '')?.[1];
  return shown !== undefined && isKeyIn('authorization', shown) ? shown : undefined;
}

/** Whether a request can show this key in such a place. */
export function isKeyIn(place: KeyLocation['in'], key: string): boolean {
  return key.length <= KEY_LENGTH_MAX && (place === 'authorization' ? BEARER_TOKEN : VISIBLE).test(key);
}
