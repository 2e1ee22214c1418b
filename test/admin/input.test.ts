/** Every mistake of an admin request is told at its place, in words that say what was wanted. */
import { expect, test } from 'vitest';
import type * as z from 'zod/mini';
import { parse } from '../../src/admin/input.ts';
import type { ProblemError } from '../../src/admin/problems.ts';
import { checkBody, clampBody, keyBody, pageQuery } from '../../src/admin/schemas.ts';

function outcomeOf(schema: z.ZodMiniType, input: unknown) {
  try {
    return parse(schema, input, 'body');
  } catch (error) {
    return (error as ProblemError).details.errors;
  }
}

test('what zod words is in English', () => {
  const input = { domain: 5, attributes: { path: null }, cost: -1, region: 'moon', pek: true };
  expect(outcomeOf(checkBody, input)).toEqual([
    { path: ['domain'], message: 'Invalid input: expected string, received number' },
    {
      path: ['attributes', 'path'],
      message: 'expected text of at most 4096 characters, a number, true or false',
    },
    { path: ['cost'], message: 'Too small: expected number to be >=0' },
    { path: ['region'], message: expect.stringMatching(/^Invalid option: expected one of "/) },
    { path: [], message: 'Unrecognized key: "pek"' },
  ]);
});

test('what the schemas word themselves is as they word it', () => {
  const clamp = { attributes: {}, action: 'limit', forSeconds: 60 };
  expect(outcomeOf(clampBody, clamp)).toEqual([
    { path: ['rpm'], message: 'belongs to the action "limit", which needs it' },
  ]);
  expect(outcomeOf(keyBody, {})).toEqual([{ path: [], message: 'wants one of "key" and "keySha256"' }]);
});

test('numbers of a query are read from its text', () => {
  expect(outcomeOf(pageQuery, { limit: '7' })).toEqual({ before: Number.MAX_SAFE_INTEGER, limit: 7 });
  expect(outcomeOf(pageQuery, { limit: 'all' })).toEqual([
    { path: ['limit'], message: 'expected a whole number' },
  ]);
  for (const limit of ['1.5', '0', '', '100000'])
    expect(outcomeOf(pageQuery, { limit })).toEqual([{ path: ['limit'], message: expect.any(String) }]);
});
