/**
 * Paths in one spelling, and the route patterns that they match.
 *
 * A pattern is exact (`/v1/search`), has parameters that each stand for one segment (`/users/:id`), or ends in `/*`, which
 * covers the path before it and everything below. Matching goes by whole segments, so `/foo/*` never covers `/foobar`.
 * Paths are compared after normalising (RFC 3986, section 6.2.2), so respelling a path does not change its route.
 */

export interface RoutePattern {
  /** Normalised; it names the route in counters, so two spellings of one pattern are one route. */
  readonly text: string;
  readonly segments: readonly string[];
  /** Ends in `/*`; the `*` is not among `segments`. */
  readonly open: boolean;
  /** Neither a parameter nor `/*`: it matches one path. */
  readonly exact: boolean;
  /** Characters that are spelt out. The slash of a trailing `/*` is not, since the pattern also covers the path without it. */
  readonly literalLength: number;
}

export type RouteParse = { readonly pattern: RoutePattern } | { readonly problem: string };

/** Characters that stand for themselves in a path segment, and the slash; whatever else is there is percent-encoded. */
const NEEDS_WORK = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/]|\/\/|\/\.|.\/$|^(?!\/)/;
const ESCAPE_OR_FOREIGN = /%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/gu;
const UNRESERVED = /[A-Za-z0-9\-._~]/;

/**
 * One spelling of a path: escapes of unreserved characters decoded, `\` a slash, dot segments folded as a URL's are, then one slash for
 * several and none at the end. A query is dropped. A percent sign that starts no escape becomes `%25`, so that the result is stable and nothing
 * throws.
 */
export function normalisePath(path: string): string {
  if (!NEEDS_WORK.test(path)) return path;
  const withoutQuery = path
    .replace(/[?#].*$/s, '')
    .replaceAll('\\', '/')
    .toWellFormed();
  const folded: string[] = [];
  for (const segment of withoutQuery.replace(ESCAPE_OR_FOREIGN, respell).replace(/^\//, '').split('/')) {
    if (segment === '..') folded.pop();
    else if (segment !== '.') folded.push(segment);
  }
  return `/${folded.filter((segment) => segment !== '').join('/')}`;
}

function respell(found: string): string {
  if (found.length !== 3 || !found.startsWith('%')) return encodeURIComponent(found);
  const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
  return UNRESERVED.test(character) ? character : found.toUpperCase();
}

export function parseRoutePattern(text: string): RouteParse {
  if (!text.startsWith('/')) return { problem: 'a route starts with "/"' };
  if (/[?#]/.test(text)) return { problem: 'a route is a path, without a query or fragment' };
  const open = text.endsWith('/*');
  const normal = normalisePath(open ? text.slice(0, -1) : text);
  const segments = normal === '/' ? [] : normal.slice(1).split('/');
  const starred = segments.find((segment) => segment.includes('*'));
  if (starred !== undefined) return { problem: misplacedStar(starred) };
  if (segments.some((segment) => segment.startsWith(':') && !/^:[A-Za-z_]\w*$/.test(segment))) {
    return {
      problem: 'a parameter is ":" and a name of letters, digits and underscores, such as /users/:id',
    };
  }
  return { pattern: patternOf(segments, open) };
}

function misplacedStar(segment: string): string {
  const stem = segment.replaceAll('*', '');
  const instead = stem === '' ? '":name" for one segment' : `"/${stem}/*" for what lies below /${stem}`;
  return `"*" stands only at the end, as a segment of its own ("/*"); write ${instead}`;
}

function patternOf(segments: readonly string[], open: boolean): RoutePattern {
  const literals = segments.map((segment) => (isParameter(segment) ? 1 : segment.length + 1));
  const literalLength = literals.reduce((sum, length) => sum + length, 0);
  const text = open ? `/${[...segments, '*'].join('/')}` : `/${segments.join('/')}`;
  return { text, segments, open, exact: !open && !segments.some(isParameter), literalLength };
}

export function matchesRoute(pattern: RoutePattern, segments: readonly string[]): boolean {
  const { segments: wanted, open } = pattern;
  if (open ? segments.length < wanted.length : segments.length !== wanted.length) return false;
  return wanted.every((want, index) => isParameter(want) || want === segments[index]);
}

function isParameter(segment: string): boolean {
  return segment.startsWith(':');
}

/** Most specific first: one path before many, then the longer literal, then a fixed number of segments before `/*`. */
export function compareRoutes(a: RoutePattern, b: RoutePattern): number {
  if (a.exact !== b.exact) return a.exact ? -1 : 1;
  if (a.literalLength !== b.literalLength) return b.literalLength - a.literalLength;
  return Number(a.open) - Number(b.open);
}

/** All the patterns of a ruleset, ready to be asked which of them a path matches. */
export interface RouteTable {
  /** The patterns that a normalised path matches, the most specific first. */
  matching(path: string): readonly string[];
}

/** `patterns` as in `Ruleset.routes`: valid, normalised, the most specific first. */
export function routeTable(patterns: readonly string[]): RouteTable {
  const parsed = patterns.map(mustParse);
  const exact = new Set(parsed.filter((pattern) => pattern.exact).map((pattern) => pattern.text));
  const others = parsed.filter((pattern) => !pattern.exact);
  return {
    matching(path) {
      const found = exact.has(path) ? [path] : [];
      if (others.length === 0) return found;
      const segments = path === '/' ? [] : path.slice(1).split('/');
      for (const pattern of others) if (matchesRoute(pattern, segments)) found.push(pattern.text);
      return found;
    },
  };
}

/** For patterns that the compiler has accepted: anything else here is a broken ruleset. */
export function mustParse(text: string): RoutePattern {
  const result = parseRoutePattern(text);
  if ('problem' in result)
    throw new Error(`The ruleset holds the route ${JSON.stringify(text)}: ${result.problem}.`);
  return result.pattern;
}
