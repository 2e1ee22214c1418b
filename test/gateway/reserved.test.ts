/** The limiter's own paths are told from others however they are spelt, and others never are. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isReserved } from '../../src/gateway/reserved.ts';

describe('is one of ours', () => {
  test.each([
    '/_limiter/v1/keys',
    '/_limiter',
    '//_limiter/v1/keys',
    '/./_limiter/v1/keys',
    '/x/../_limiter/v1/keys',
    '/_LIMITER/v1/keys',
    '/%5flimiter/v1/keys',
    '/%5Flim%69ter/v1/keys',
    '/%255flimiter/v1',
    '/_limiter%2fv1/keys',
    '/_limiter;a/v1/keys',
    '/_limiter%00/x',
    '/_limiter%00x',
    '/%2e/_limiter/x',
    '/\\_limiter/x',
    '/_limiter?x=1',
    '/%20/_limiter/x',
    '/_limiter//../v1/keys',
    '/_limiter//..',
    '/_limiter/%2f..',
    '/x\\..\\_limiter/v1/keys',
    '/_limiter#?/x',
  ])('%s', (path) => {
    expect(isReserved(`https://api.example.com${path}`)).toBe(true);
  });
});

describe('is none', () => {
  test.each([
    '/',
    '/v1/items',
    '/v1/_limiter',
    '/limiter',
    '/a/../b',
    '/rate_limiter/x',
    '/x?y=/_limiter',
    '/%5flimit',
    '/_limiterfoo',
    '/_limiters/v1',
    '/_limiter-stats',
    '/_limiter/../v1',
  ])('%s', (path) => {
    expect(isReserved(`https://api.example.com${path}`)).toBe(false);
  });
});

test('any encoding of any part of it is seen', () => {
  const spelt = fc.array(fc.constantFrom('plain', 'encoded', 'twice', 'upper'), {
    minLength: 8,
    maxLength: 8,
  });
  fc.assert(
    fc.property(spelt, fc.constantFrom('/', '//', '/./', '/a/../'), (ways, before) => {
      const text = [...'limiter'].map((letter, at) => {
        const hex = letter.charCodeAt(0).toString(16);
        const way = ways[at];
        if (way === 'encoded') return `%${hex}`;
        if (way === 'twice') return `%25${hex}`;
        return way === 'upper' ? letter.toUpperCase() : letter;
      });
      expect(isReserved(`http://h${before}_${text.join('')}/v1/check`)).toBe(true);
    }),
  );
});
