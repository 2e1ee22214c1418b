/** What arrives of rules counts only when it is whole, readable, about the right domain, and newer. */
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  ACTIVATION_FORMAT,
  type ActivationDocument,
  type Head,
  readActivation,
  readHead,
} from '../../src/policy/activation.ts';
import { rulesetFrom, withDescriptors } from './rules-from.ts';

const ruleset = rulesetFrom(
  withDescriptors('  - { key: user, rate_limit: { unit: day, requests_per_unit: 5 } }'),
);
const held = { domain: 'test', version: { activation: 3, builtAtMs: 1 } };
const sha256 = async (text: string) => createHash('sha256').update(text).digest('hex');

const HEAD: Head = {
  format: ACTIVATION_FORMAT,
  domain: 'test',
  activation: 4,
  revision: 2,
  clamps: [{ domain: 'test', pairs: [['org', 'acme']], action: 'deny', untilMs: 5, revision: 2 }],
  hasKeys: true,
};

function documentOf(change: Partial<ActivationDocument> = {}, text = JSON.stringify(ruleset)): string {
  const digest = createHash('sha256').update(text).digest('hex');
  const document: ActivationDocument = {
    format: ACTIVATION_FORMAT,
    domain: 'test',
    activation: 4,
    version: 2,
    activatedAtMs: 9,
    digest,
    ruleset: text,
  };
  return JSON.stringify({ ...document, ...change });
}

describe('a head', () => {
  test('that is as it should be is taken, also one of the activation in hand', () => {
    expect(readHead(JSON.stringify(HEAD), held)).toEqual({ value: HEAD });
    expect(readHead(JSON.stringify({ ...HEAD, activation: 3 }), held)).toHaveProperty('value');
  });

  test.each([
    ['nothing', null, 'missing'],
    ['an empty text', '', 'missing'],
    ['half of one', JSON.stringify(HEAD).slice(0, 60), 'unreadable'],
    ['no object', '7', 'unreadable'],
    ['another format', JSON.stringify({ ...HEAD, format: 99 }), 'format'],
    ['another domain', JSON.stringify({ ...HEAD, domain: 'other' }), 'domain'],
    ['an older one', JSON.stringify({ ...HEAD, activation: 2 }), 'older'],
    ['an activation that is no number', JSON.stringify({ ...HEAD, activation: '4' }), 'unreadable'],
    ['clamps that are no list', JSON.stringify({ ...HEAD, clamps: {} }), 'unreadable'],
    [
      'a clamp of another domain',
      JSON.stringify({ ...HEAD, clamps: [{ ...HEAD.clamps[0], domain: 'b' }] }),
      'unreadable',
    ],
    [
      'a limit without numbers',
      JSON.stringify({ ...HEAD, clamps: [{ ...HEAD.clamps[0], action: 'limit' }] }),
      'unreadable',
    ],
  ])('that is %s is refused', (_, text, refused) => {
    expect(readHead(text, held)).toEqual({ refused });
  });
});

describe('an activation', () => {
  test('that is as it should be is taken', async () => {
    const read = await readActivation(documentOf(), held, sha256);
    const version = { activation: 4, builtAtMs: ruleset.builtAtMs };
    expect(read).toEqual({ value: { ruleset, version, activatedAtMs: 9 } });
  });

  test.each([
    ['nothing', null, 'missing'],
    ['half of one', documentOf().slice(0, 99), 'unreadable'],
    ['of another domain', documentOf({ domain: 'other' }), 'domain'],
    ['of another format', documentOf({ format: 99 as 1 }), 'format'],
    ['with rules of another format', documentOf({}, JSON.stringify({ ...ruleset, format: 99 })), 'format'],
    ['with rules of another domain', documentOf({}, JSON.stringify({ ...ruleset, domain: 'b' })), 'domain'],
    ['the one in hand', documentOf({ activation: 3 }, JSON.stringify({ ...ruleset, builtAtMs: 1 })), 'older'],
    ['older', documentOf({ activation: 2 }), 'older'],
    [
      'with a rule changed on the way',
      documentOf({ ruleset: JSON.stringify(ruleset).replace('5', '6') }),
      'digest',
    ],
  ])('that is %s is refused', async (_, text, refused) => {
    expect(await readActivation(text, held, sha256)).toEqual({ refused });
  });

  test('with one character changed anywhere is refused, or says the same', async () => {
    const whole = documentOf();
    await fc.assert(
      fc.asyncProperty(fc.nat(whole.length - 1), fc.constantFrom('0', '9', '"', ' ', 'a'), async (at, by) => {
        const read = await readActivation(whole.slice(0, at) + by + whole.slice(at + 1), held, sha256);
        if ('value' in read) expect(read.value.ruleset).toEqual(ruleset);
      }),
      { numRuns: 500 },
    );
  });
});
