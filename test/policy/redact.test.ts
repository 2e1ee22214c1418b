/** A rule file without its keys compiles to the same rules, and holds no key. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { compile } from '../../src/policy/compile.ts';
import { withoutRawKeys } from '../../src/policy/redact.ts';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const HASH = sha256('another');

const FILE = {
  domain: 'test',
  identity: {
    keys: [
      { key: 'k_canary_1', tier: 'gold' },
      { key_sha256: HASH, tier: 'free' },
      { key: 12345, tier: 'free' },
    ],
  },
  descriptors: [
    { key: 'api_key', value: 'k_canary_1', rate_limit: { unit: 'day', requests_per_unit: 5 } },
    { key: 'api_key', value: HASH, rate_limit: { unit: 'day', requests_per_unit: 6 } },
    {
      key: 'api_key',
      value: sha256('k_canary_1'),
      rate_limit: { policy: 'y', unit: 'day', requests_per_unit: 4 },
    },
    { key: 'api_key', value: HASH.replace('a', 'b'), rate_limit: { unit: 'day', requests_per_unit: 7 } },
    {
      key: 'api_key',
      value: `sha256:${HASH.toUpperCase()}`,
      rate_limit: { policy: 'x', unit: 'day', requests_per_unit: 8 },
    },
    {
      key: 'tier',
      value: 'gold',
      descriptors: [
        { key: 'api_key', value: 'k_canary_2', rate_limit: { unit: 'day', requests_per_unit: 9 } },
      ],
    },
    { key: 'remote_address', rate_limit: { unit: 'day', requests_per_unit: 9 } },
  ],
};

describe('without raw keys', () => {
  const redacted = withoutRawKeys(FILE, sha256);

  test('the rules are the same', () => {
    const options = { sha256, builtAtMs: 1 };
    const before = compile(FILE, options);
    const after = compile(redacted, options);
    if (!before.ok || !after.ok) throw new Error(JSON.stringify([before, after]));
    expect(after.ruleset).toEqual(before.ruleset);
  });

  test('no key is left, and what was given is not changed', () => {
    expect(JSON.stringify(redacted)).not.toMatch(/canary|12345/);
    expect(JSON.stringify(FILE)).toMatch(/canary/);
  });

  test('doing it twice changes nothing', () => {
    expect(withoutRawKeys(redacted, sha256)).toEqual(redacted);
  });
});
