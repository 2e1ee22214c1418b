/**
 * Which paths are the limiter's own, however they are spelt. They are never forwarded: a request for one may bear the admin token, and an
 * origin that folds `//_limiter` or `/%5Flimiter%2Fkeys` would be shown it.
 */

/** What a spelling of a reserved path has to hold; nearly no other path does, so nearly none is looked at closely. */
const SUSPICIOUS = /limiter|[%;\\]|\/\/|\/\.|[^\x21-\x7e]/i;

/** Encodings within encodings; whoever writes more of them means no good, and reaches nothing here. */
const DECODINGS_MAX = 5;

export function isReserved(url: string): boolean {
  const start = url.indexOf('/', url.indexOf('://') + 3);
  if (start < 0) return false;
  const end = url.slice(start).search(/[?#]/);
  const path = end < 0 ? url.slice(start) : url.slice(start, start + end);
  return SUSPICIOUS.test(path) && firstSegment(decoded(path)).startsWith('_limiter');
}

function decoded(path: string): string {
  let text = path;
  for (let times = 0; times < DECODINGS_MAX; times += 1) {
    const next = text.replace(/%([0-9a-f]{2})/gi, (_, digits: string) =>
      String.fromCharCode(Number.parseInt(digits, 16)),
    );
    if (next === text) break;
    text = next;
  }
  return text.replaceAll('\\', '/').toLowerCase();
}

/** Dot segments folded, empty ones left out, parameters and what nobody sees cut off. */
function firstSegment(path: string): string {
  const segments: string[] = [];
  for (const written of path.split('/')) {
    const segment = written.replace(/;.*$/s, '').replace(/[^\x21-\x7e]/g, '');
    if (segment === '..') segments.pop();
    else if (segment !== '' && segment !== '.') segments.push(segment);
  }
  return segments[0] ?? '';
}
