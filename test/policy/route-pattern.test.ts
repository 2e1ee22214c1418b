/** One spelling for a path, and patterns that match by whole segments (D07 E07 E09). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mustParse, normalisePath, parseRoutePattern, routeTable } from '../../src/policy/route-pattern.ts';

describe('the one spelling of a path', () => {
  test.each([
    ['/login', '/login'],
    ['/%6Cogin', '/login'],
    ['/%6cogin', '/login'],
    ['//login', '/login'],
    ['///a////b', '/a/b'],
    ['/login/', '/login'],
    ['/./login', '/login'],
    ['/a/../login', '/login'],
    ['/%2e%2E/login', '/login'],
    ['/../../login/.', '/login'],
    ['/login?x=1', '/login'],
    ['/login?x=/../y', '/login'],
    ['/login#top', '/login'],
    ['login', '/login'],
    ['', '/'],
    ['/', '/'],
    ['/..', '/'],
    ['/.well-known/x', '/.well-known/x'],
    ['/a/...', '/a/...'],
    ['/a%2fb', '/a%2Fb'],
    ['/a%2Fb', '/a%2Fb'],
    ['/%7Euser', '/~user'],
    ['/%', '/%25'],
    ['/%zz', '/%25zz'],
    ['/%6', '/%256'],
    ['/%%36%31', '/%2561'],
    ['/a b', '/a%20b'],
    ['/é', '/%C3%A9'],
    ['/%c3%a9', '/%C3%A9'],
    ['/😀', '/%F0%9F%98%80'],
    // What folds to a letter without regard to case is no letter.
    ['/\u017f', '/%C5%BF'],
    ['/\u212a', '/%E2%84%AA'],
    ['/\ud800', '/%EF%BF%BD'],
    ['/a\\b', '/a/b'],
    ['/x\\..\\login', '/login'],
    ['/login//..', '/login'],
    ['/login//%2e%2e', '/login'],
    ['/login/x//../..', '/login'],
    ['//../login', '/login'],
    ['/a;v=1,2', '/a;v=1,2'],
    ['/Login', '/Login'],
  ])('%j is %j (E07 E09)', (path, expected) => {
    expect(normalisePath(path)).toBe(expected);
  });

  test('is stable, starts with a slash, and is there for any text', () => {
    const soup = fc.string({
      unit: fc.constantFrom('/', '.', '%', '2', 'e', 'F', 'a', '?', 'é', ' ', '\ud800'),
    });
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), soup), (path) => {
        const normal = normalisePath(path);
        expect(normal).toMatch(/^\/([A-Za-z0-9\-._~!$&'()*+,;=:@%]+(\/(?=[^/])|$))*$/);
        expect(normalisePath(normal)).toBe(normal);
      }),
      { numRuns: 2000 },
    );
  });

  test('does not change when unreserved characters are escaped, slashes doubled and dots put in (5)', () => {
    const segment = fc.string({ unit: fc.constantFrom(...'abcXYZ019-_~'), minLength: 1, maxLength: 6 });
    const respelling = fc.record({
      escaped: fc.boolean(),
      before: fc.constantFrom('/', '//', '/./', '/x/../'),
    });
    fc.assert(
      fc.property(fc.array(fc.tuple(segment, respelling), { minLength: 1, maxLength: 5 }), (parts) => {
        const plain = `/${parts.map(([text]) => text).join('/')}`;
        const respelt = parts
          .map(([text, { escaped, before }]) => before + (escaped ? escapeAll(text) : text))
          .join('');
        expect(normalisePath(respelt)).toBe(plain);
        expect(normalisePath(`${respelt}/?q`)).toBe(plain);
      }),
    );
  });
});

function escapeAll(text: string): string {
  return [...text].map((character) => `%${character.charCodeAt(0).toString(16)}`).join('');
}

describe('patterns', () => {
  test.each([
    ['/v1/search', '/v1/search'],
    ['/v1/search/', '/v1/search'],
    ['//v1/%73earch', '/v1/search'],
    ['/users/:id', '/users/:id'],
    ['/foo/*', '/foo/*'],
    ['/*', '/*'],
    ['/', '/'],
    ['/v1/items:search', '/v1/items:search'],
  ])('%s is the route %s', (text, expected) => {
    expect(mustParse(text).text).toBe(expected);
  });

  test.each(['/foo*', '/*/foo', '/a/*b', '/a/**', 'foo', '', '/users/:', '/users/:1d', '/a?b', '/a#b'])(
    '%j is none',
    (text) => {
      expect(parseRoutePattern(text)).toHaveProperty('problem');
    },
  );

  test.each([
    ['/foo/*', ['/foo', '/foo/', '/foo/x', '/foo/x/y', '/foo?q=1'], ['/foobar', '/', '/fo', '/x/foo']],
    ['/*', ['/', '/a', '/a/b'], []],
    ['/users/:id', ['/users/1', '/users/%31', '/users/a.b'], ['/users', '/users/', '/users/1/2']],
    ['/users/:id/posts', ['/users/1/posts'], ['/users/posts', '/users/1/posts/2', '/users/1']],
    ['/users/:id/*', ['/users/1', '/users/1/2/3'], ['/users']],
    ['/login', ['/login', '/login/', '//login'], ['/Login', '/login/x', '/logins']],
    ['/', ['/', '//', ''], ['/a']],
  ])('%s (D07)', (pattern, matching, others) => {
    const table = routeTable([pattern]);
    for (const path of matching)
      expect([path, table.matching(normalisePath(path))]).toEqual([path, [pattern]]);
    for (const path of others) expect([path, table.matching(normalisePath(path))]).toEqual([path, []]);
  });

  test('of a pattern that the compiler never lets through, a table is not built', () => {
    expect(() => routeTable(['/a*'])).toThrow(/holds the route/);
  });
});
