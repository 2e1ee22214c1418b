/**
 * Where a request goes, as whoever parses its URL will read it: `\` is a slash there, `..` takes a segment away even if that is empty,
 * and `#` ends the path.
 *
 * Promise: the path that rules are matched against is the path that the origin is asked for, however it was spelt.
 */

/** What makes a URL's text differ from what is read out of it, other than in ways that normalising a path undoes; only before the query. */
const RESPELT = /[\\#\s]|\/\.{1,2}(?:\/|$)|%2e|:\/\/\//i;

export function pathOf(url: string): string {
  const parsed = respelt(url);
  if (parsed !== undefined) return parsed.pathname;
  // By hand, since parsing the URL costs more than matching the rules.
  const head = beforeQuery(url);
  const start = head.indexOf('/', head.indexOf('://') + 3);
  return start < 0 ? '/' : head.slice(start);
}

/** Without its port. */
export function hostOf(url: string): string | undefined {
  return parse(url)?.hostname;
}

/** The URL to forward in place of one that its readers may take for different paths; `undefined` for nearly all. */
export function unambiguous(url: string): string | undefined {
  return respelt(url)?.href;
}

function respelt(url: string): URL | undefined {
  return RESPELT.test(beforeQuery(url)) ? parse(url) : undefined;
}

function beforeQuery(url: string): string {
  const end = url.indexOf('?');
  return end < 0 ? url : url.slice(0, end);
}

function parse(url: string): URL | undefined {
  return URL.canParse(url) ? new URL(url) : undefined;
}
