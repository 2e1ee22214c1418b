/** Single values: `*` patterns, and folding. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { foldValue } from '../../src/policy/attributes.ts';
import { compileGlob } from '../../src/policy/glob.ts';

describe('a * pattern', () => {
  test.each([
    ['foo*', ['foo', 'foobar'], ['fo', 'afoo', '']],
    ['*foo', ['foo', 'barfoo'], ['foob', 'fo']],
    ['*foo*', ['foo', 'afoob'], ['fo', 'f-oo']],
    ['a*b*c', ['abc', 'axbxc', 'abbc', 'abcbc'], ['ab', 'ac', 'acb']],
    ['ab*bc', ['abbc', 'abxbc'], ['abc']],
    ['a*bb*b', ['abbb', 'abbxb'], ['abb', 'ab']],
    ['a**b', ['ab', 'axb'], ['a']],
    ['a.c*', ['a.cx'], ['abcx']],
  ])('%s', (pattern, matching, others) => {
    const glob = compileGlob(pattern);
    for (const value of matching) expect([value, glob(value)]).toEqual([value, true]);
    for (const value of others) expect([value, glob(value)]).toEqual([value, false]);
  });

  test('means what the same regular expression means', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'b', '*'), minLength: 1, maxLength: 8 });
    const plain = fc.string({ unit: fc.constantFrom('a', 'b'), maxLength: 10 });
    fc.assert(
      fc.property(text, plain, (pattern, value) => {
        fc.pre(pattern.includes('*'));
        const same = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(value);
        expect(compileGlob(pattern)(value)).toBe(same);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('folding (E05)', () => {
  test.each([
    ['Nick@x', 'nick@x'],
    [' n ick\t@x\u00a0', 'nick@x'],
    ['Ｎｉｃｋ＠ｘ', 'nick@x'],
    ['e\u0301', '\u00e9'],
    ['e \u0301', '\u00e9'],
    ['\u3392', 'mhz'],
    ['\u212a', 'k'],
  ])('%j is %j', (value, folded) => {
    expect(foldValue(value)).toBe(folded);
  });

  test('twice changes nothing', () => {
    const tricky = fc.string({
      unit: fc.constantFrom('e', ' ', '\u0301', '\u00a8', '\u0130', '\u3392', '\u03a3', 'A'),
    });
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), tricky), (value) => {
        expect(foldValue(foldValue(value))).toBe(foldValue(value));
      }),
      { numRuns: 2000 },
    );
  });
});
