/** A request is limited by the path that its origin reads, whatever the text of its URL looks like. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hostOf, pathOf, unambiguous } from '../../src/gateway/target.ts';
import { normalisePath } from '../../src/policy/route-pattern.ts';

const HOSTS = ['h', 'x\\login#', 'x\\..', 'x?', 'x#', 'a.b:80', 'u@h', 'x/y', ''];
const PIECES = [
  '/',
  '//',
  '\\',
  '.',
  '..',
  '%2e',
  '%2E.',
  'login',
  'x',
  '?',
  '#',
  ';',
  '%5c',
  '%2f',
  'é',
  '%',
  '\t',
];

/** As workerd makes it of a `Host` and a target, both of which a client may write as it likes. */
const url = fc
  .tuple(fc.constantFrom(...HOSTS), fc.array(fc.constantFrom(...PIECES), { maxLength: 9 }))
  .map(([host, pieces]) => `http://${host}/${pieces.join('')}`)
  .filter((text) => URL.canParse(text));

/** What nginx makes of a path: one slash for several, then the dots. */
function mergedFirst(path: string): string {
  return normalisePath(path.replaceAll('\\', '/').replace(/\/+/g, '/'));
}

test('property: the path is that of the parsed URL', () => {
  fc.assert(
    fc.property(url, (text) => {
      expect(normalisePath(pathOf(text))).toBe(normalisePath(new URL(text).pathname));
    }),
    { numRuns: 5_000 },
  );
});

test('property: what is forwarded is one path to all readers, and the one that rules are matched against', () => {
  fc.assert(
    fc.property(url, (text) => {
      const { pathname } = new URL(unambiguous(text) ?? text);
      expect(normalisePath(pathname)).toBe(normalisePath(pathOf(text)));
      expect(mergedFirst(pathname)).toBe(normalisePath(pathOf(text)));
    }),
    { numRuns: 5_000 },
  );
});

describe('an ordinary URL', () => {
  test.each([
    'https://api.example.com/v1/items/42?next=/a/../b#c',
    'https://api.example.com/.well-known/acme-challenge/x',
    'https://api.example.com//v1//items/',
    'https://api.example.com/a%2fb;c=d/...',
    'https://api.example.com/',
  ])('%s goes on as it is', (text) => {
    expect(unambiguous(text)).toBeUndefined();
  });
});

test.each([
  ['http://api.example.com/x', 'api.example.com'],
  ['http://api.example.com:8443/x', 'api.example.com'],
  ['http://API.example.com:/x', 'api.example.com'],
  ['http://api%2eexample.com/x', 'api.example.com'],
  ['http://[2001:db8::1]:80/x', '[2001:db8::1]'],
  ['http://][/x', undefined],
])('the host of %s is %s', (text, host) => {
  expect(hostOf(text)).toBe(host);
});
