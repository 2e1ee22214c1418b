/**
 * Which paths are the limiter's own, however they are spelt. They are never forwarded: a request for one may bear the admin token, and an
 * origin that folds `//_limiter` or `/%5Flimiter%2Fkeys` would be shown it.
 */

import { pathOf } from './target.ts';

/** What a spelling of a reserved path has to hold; nearly no other path does, so nearly none is looked at closely. */
const SUSPICIOUS = /limiter|[%;\\]|\/\/|\/\.|[^\x21-\x7e]/i;

/** Encodings within encodings; whoever writes more of them means no good, and reaches nothing here. */
const DECODINGS_MAX = 5;

export function isReserved(url: string): boolean {
  const path = pathOf(url);
  return SUSPICIOUS.test(path) && firstSegments(decoded(path)).includes('_limiter');
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
  // Whoever keeps texts as C does reads none of what comes after a NUL.
  return text.replaceAll('\\', '/').replaceAll('\0', ';').toLowerCase();
}

/** The first segment as readers of paths find it: some count empty segments when they fold dots, others leave them out before. */
function firstSegments(path: string): readonly (string | undefined)[] {
  const bare = path
    .split('/')
    .map((segment) => segment.replace(/[;?#].*$/s, '').replace(/[^\x21-\x7e]/g, ''));
  return [foldedFirst(bare.slice(1)), foldedFirst(bare.filter((segment) => segment !== ''))];
}

function foldedFirst(segments: readonly string[]): string | undefined {
  const folded: string[] = [];
  for (const segment of segments) {
    if (segment === '..') folded.pop();
    else if (segment !== '.') folded.push(segment);
  }
  return folded.find((segment) => segment !== '');
}
