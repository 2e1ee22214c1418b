/** What a rule file may say, and what each mistake in one is answered with. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadRuleFile, loadRules } from '../../scripts/limiter/load.ts';
import { BUILT_AT_MS, errorsFrom, load, rulesetFrom, withDescriptors } from './rules-from.ts';

const FIXTURES = join(import.meta.dirname, 'fixtures');
const RULES = join(import.meta.dirname, '..', '..', 'rules');
const ROWS: Readonly<Record<string, string>> = {
  quota: 'B23',
  unit: 'L17',
  descriptors: 'L19',
  node: 'L17',
  limit: 'L17',
  yaml: 'L05',
  duplicate: 'L07',
  policy: 'H05',
  route: 'D07',
};

describe('one mistake a file, each with its place (B23 D07 H05 L05 L07 L17 L19)', () => {
  for (const file of readdirSync(FIXTURES)) {
    const row = ROWS[file.split('-')[0] as string];
    test(`${file}${row === undefined ? '' : ` (${row})`}`, () => {
      const text = readFileSync(join(FIXTURES, file), 'utf8');
      const expected = [...text.matchAll(/^# expect: (.*)$/gm)].map((found) => `${file}:${found[1]}`);
      expect(expected).not.toEqual([]);
      const rules = loadRules(new TextEncoder().encode(text), { name: file, builtAtMs: BUILT_AT_MS });
      expect(rules).toEqual({ errors: expected });
    });
  }
});

describe('what is no rule file at all (L05)', () => {
  const rule = '  - { key: tier, rate_limit: { unit: minute, requests_per_unit: 1 } }\n';
  test('2 MB', () => {
    expect(errorsFrom(withDescriptors(rule) + '# filler\n'.repeat(250_000))).toEqual([
      expect.stringMatching(/^1:1 \(file\): has \d+ bytes; a rule file has at most 1048576$/),
    ]);
  });

  test('bytes that are not UTF-8', () => {
    const rules = loadRules(new Uint8Array([0x61, 0xff, 0xfe]), { name: 'f', builtAtMs: 0 });
    expect(rules).toEqual({ errors: ['f:1:1 (file): is not UTF-8 text'] });
  });

  test('a tree that is nested too deep', () => {
    let tree: unknown = { key: 'tier', rate_limit: { unit: 'minute', requests_per_unit: 1 } };
    for (let depth = 0; depth < 20; depth += 1) tree = { key: 'tier', descriptors: [tree] };
    expect(errorsFrom(JSON.stringify({ domain: 'd', descriptors: [tree] }))).toEqual([
      expect.stringContaining('is nested more than 16 levels deep'),
    ]);
  });
});

describe('notations that mean the same', () => {
  const limitOf = (fields: string) => {
    return rulesetFrom(withDescriptors(`  - { key: tier, rate_limit: ${fields} }`)).rules[0]?.limit;
  };

  test.each(['minute', 'Minute', 'MINUTE'])('unit: %s (L17)', (unit) => {
    expect(limitOf(`{ unit: ${unit}, requests_per_unit: 10 }`)?.windowMs).toBe(60_000);
  });

  test.each([
    ['second', 1000],
    ['hour', 3_600_000],
    ['day', 86_400_000],
    ['week', 604_800_000],
    ['month', 2_592_000_000],
    ['year', 31_536_000_000],
  ])('unit: %s is one fixed length (C07)', (unit, windowMs) => {
    expect(limitOf(`{ unit: ${unit}, requests_per_unit: 10 }`)?.windowMs).toBe(windowMs);
  });

  test.each([
    ['500ms', 500],
    ['90s', 90_000],
    ['90S', 90_000],
    ['5m', 300_000],
    ['1.5h', 5_400_000],
    ['2h', 7_200_000],
    ['7D', 604_800_000],
    ['2w', 1_209_600_000],
  ])('window: %s', (window, windowMs) => {
    expect(limitOf(`{ window: ${window}, requests_per_unit: 10 }`)?.windowMs).toBe(windowMs);
  });

  test('a quota of 1e3 is 1000, and one of 0 denies everything (B23)', () => {
    expect(limitOf('{ unit: minute, requests_per_unit: 1e3 }')?.quota).toBe(1000);
    expect(limitOf('{ unit: minute, requests_per_unit: 0 }')).toMatchObject({ quota: 0, burst: 0 });
  });

  test('the burst is the quota unless it is said, however small (B17)', () => {
    expect(limitOf('{ unit: day, requests_per_unit: 5 }')?.burst).toBe(5);
    expect(limitOf('{ unit: day, requests_per_unit: 5, burst: 20 }')?.burst).toBe(20);
  });

  test('a leaky bucket waits up to a second unless it is said; nothing else waits', () => {
    expect(limitOf('{ unit: second, requests_per_unit: 5, algorithm: leaky_bucket }')?.maxDelayMs).toBe(1000);
    expect(
      limitOf('{ unit: second, requests_per_unit: 5, algorithm: leaky_bucket, max_delay: 250ms }'),
    ).toMatchObject({
      maxDelayMs: 250,
      burst: 5,
    });
    expect(limitOf('{ unit: second, requests_per_unit: 5 }')?.maxDelayMs).toBe(0);
  });

  test.each([
    [
      'a slot lasts half a minute unless it is said',
      '{ algorithm: concurrency, max_in_flight: 5 }',
      5,
      30_000,
    ],
    ['and as long as it says', '{ algorithm: Concurrency, max_in_flight: 5, slot_seconds: 2 }', 5, 2_000],
    ['none at once denies everything', '{ algorithm: concurrency, max_in_flight: 0 }', 0, 30_000],
  ])('concurrency: %s', (_, fields, quota, windowMs) => {
    expect(limitOf(fields)).toEqual({
      algorithm: 'concurrency',
      quota,
      windowMs,
      burst: quota,
      maxDelayMs: 0,
    });
  });

  test.each([
    ['{ route: /a, reserve: 9 }', { cost: 9, estimate: { defaultCost: 9 } }],
    ['{ route: /a, reserve: 9, default: 0 }', { cost: 9, estimate: { defaultCost: 0 } }],
    [
      '{ route: /a, reserve: 9, cost_header: X-Used }',
      { cost: 9, estimate: { header: 'x-used', defaultCost: 9 } },
    ],
    ['{ route: /a, cost: 9 }', { cost: 9 }],
  ])('costs: [%s]', (entry, expected) => {
    const rule = '  - { key: tier, rate_limit: { unit: minute, requests_per_unit: 10 } }';
    expect(rulesetFrom(withDescriptors(rule, `costs: [${entry}]`)).costs).toEqual([
      { route: '/a', ...expected },
    ]);
  });

  test.each(['leased', 'auto', 'strict'])('consistency: %s is kept', (consistency) => {
    const yaml = withDescriptors(
      `  - { key: org, rate_limit: { unit: second, requests_per_unit: 9, consistency: ${consistency} } }`,
    );
    expect(rulesetFrom(yaml).rules[0]?.consistency).toBe(consistency);
  });

  test.each([
    ['0123', '0123'],
    ['1.10', '1.10'],
    ['12345678901234567890', '12345678901234567890'],
    ['"42"', '42'],
    ['no', 'no'],
  ])('a value of %s is that text', (written, value) => {
    const yaml = withDescriptors(
      `  - { key: org, value: ${written}, rate_limit: { unit: minute, requests_per_unit: 1 } }`,
    );
    expect(rulesetFrom(yaml).rules[0]?.path).toEqual([{ key: 'org', match: 'exact', value }]);
  });

  test('numbers in JSON are taken as text where text is meant', () => {
    const json = {
      domain: 'd',
      descriptors: [{ key: 'org', value: 42, rate_limit: { unit: 'day', requests_per_unit: 1 } }],
    };
    expect(rulesetFrom(JSON.stringify(json)).rules[0]?.path).toEqual([
      { key: 'org', match: 'exact', value: '42' },
    ]);
  });

  test('anchors and aliases may be used', () => {
    const yaml = withDescriptors(
      '  - { key: org, rate_limit: &small { unit: minute, requests_per_unit: 1 } }\n  - { key: tier, rate_limit: *small }',
    );
    expect(rulesetFrom(yaml).rules).toHaveLength(2);
  });
});

describe('limits of regions', () => {
  const regionalOf = (fields: string, head = '') => {
    const limit = `{ unit: second, requests_per_unit: 100, scope: Regional${fields} }`;
    const ruleset = rulesetFrom(withDescriptors(`  - { key: org, rate_limit: ${limit} }`, head));
    expect(ruleset.rules[0]?.scope).toBe('regional');
    return { regions: ruleset.regions, ...ruleset.rules[0]?.regional };
  };

  test.each([
    ['a region starts on a quarter of the limit', '', { startCredit: 0.25 }],
    ['or on what it says', ', start_credit: 1', { startCredit: 1 }],
    ['a region is asked strictly, or lends', ', consistency: strict', { startCredit: 0.25 }],
    [
      'a limit that is split needs no start',
      ', region_weights: { weur: 0.5, enam: 0.25 }',
      { startCredit: 0.25, weights: { weur: 0.5, enam: 0.25 } },
    ],
  ])('%s', (_, fields, expected) => {
    expect(regionalOf(fields)).toEqual({ regions: undefined, ...expected });
  });

  test.each([
    '{ weur: 0.3333333333, enam: 0.3333333333, apac: 0.3333333334 }',
    '{ weur: 0.7, enam: 0.2, me: 0.1 }',
  ])('shares of %s are no more than all', (weights) => {
    expect(regionalOf(`, region_weights: ${weights}`).weights).toBeDefined();
  });

  test('the regions of a file are those it names, in its order', () => {
    expect(regionalOf('', 'regions: [weur, Enam]').regions).toEqual(['weur', 'enam']);
  });

  test('a rule of another scope says nothing of regions', () => {
    const rule = '  - { key: org, rate_limit: { unit: second, requests_per_unit: 100 } }';
    expect(rulesetFrom(withDescriptors(rule)).rules[0]).not.toHaveProperty('regional');
  });
});

describe('where a policy or a key is named', () => {
  test.each(['a b', 'say "hi"', 'back\\\\slash', '~'])(
    'policy %s is a name that a response field can hold (H05)',
    (name) => {
      const policy = JSON.stringify(name);
      const yaml = withDescriptors(
        `  - { key: org, rate_limit: { unit: day, requests_per_unit: 1, policy: ${policy} } }`,
      );
      expect(rulesetFrom(yaml).rules[0]?.policy).toBe(name);
    },
  );

  test('the same key and value may stand twice when policy or mode differ (L07)', () => {
    const rule = (extra: string) =>
      `  - { key: tier, value: free, rate_limit: { unit: minute, requests_per_unit: 15${extra} } }\n`;
    expect(
      load(withDescriptors(rule('') + rule(', policy: other') + rule(', shadow_mode: true'))),
    ).toHaveProperty('ruleset');
    expect(errorsFrom(withDescriptors(rule('') + rule(', burst: 3')))).toHaveLength(1);
  });

  test('no raw key is left in what is compiled', () => {
    const ruleset = rulesetFrom(
      withDescriptors(
        '  - { key: api_key, value: k_secret, rate_limit: { unit: day, requests_per_unit: 1 } }',
        'identity: { keys: [{ key: k_secret, tier: free }] }',
      ),
    );
    expect(JSON.stringify(ruleset)).not.toContain('k_secret');
    const [node] = ruleset.rules[0]?.path ?? [];
    expect(Object.keys(ruleset.identity.keys)).toEqual([
      node !== undefined && node.match === 'exact' ? node.value : '',
    ]);
  });

  test('a rule can name a key of which only the hash is known', () => {
    const hash = 'ab'.repeat(32);
    const head = `identity: { keys: [{ key_sha256: ${hash.toUpperCase()}, tier: free }] }`;
    const rules = rulesetFrom(
      withDescriptors(
        `  - { key: api_key, value: ${hash}, rate_limit: { unit: day, requests_per_unit: 1 } }
  - { key: api_key, value: "sha256:${'cd'.repeat(32)}", rate_limit: { unit: day, requests_per_unit: 1 } }`,
        head,
      ),
    ).rules;
    expect(rules.map(({ path }) => path[0])).toEqual([
      { key: 'api_key', match: 'exact', value: hash },
      { key: 'api_key', match: 'exact', value: 'cd'.repeat(32) },
    ]);
  });

  test('a hash that is cut short is left out, with a warning', () => {
    const rules = load(
      withDescriptors(
        '  - { key: tier, rate_limit: { unit: day, requests_per_unit: 1 } }',
        'identity: { default: { tier: free }, keys: [{ key_sha256: 9f86d081..., tier: free }] }',
      ),
    );
    expect(rules).toMatchObject({ ruleset: { identity: { keys: {} } } });
    expect(rules).toMatchObject({ warnings: [expect.stringContaining('cut short')] });
  });

  test('unknown keys may be subjects where every address is counted beside them', () => {
    const head = 'identity: { unknown_keys: subject, default: { tier: free } }';
    const rule = (path: string, extra = '') =>
      `  - { ${path}, rate_limit: { unit: minute, requests_per_unit: 5${extra} } }`;
    const accepts = (descriptors: string) => 'ruleset' in load(withDescriptors(descriptors, head));
    expect(accepts(rule('key: remote_address'))).toBe(true);
    expect(accepts(rule('key: remote_address', ', scope: local'))).toBe(true);
    expect(accepts(rule('key: tier', ', per: [remote_address]'))).toBe(true);
    expect(accepts(rule('key: remote_address', ', shadow_mode: true'))).toBe(false);
    expect(accepts(rule('key: remote_address', ', per: [subject]'))).toBe(false);
    expect(accepts(rule('key: tier, value: premium', ', per: [remote_address]'))).toBe(false);
    expect(accepts(rule('key: remote_address, value: 10.0.0.0/8'))).toBe(false);
    expect(accepts('  - { key: remote_address, rate_limit: { unlimited: true } }')).toBe(false);
    // So many at once are still any number of keys, one after the other.
    const slots = '{ algorithm: concurrency, max_in_flight: 5 }';
    expect(accepts(`  - { key: remote_address, rate_limit: ${slots} }`)).toBe(false);
  });
});

test('a file that uses every field compiles to what it says', () => {
  const ruleset = rulesetFrom(readFileSync(join(import.meta.dirname, 'every-field.yaml'), 'utf8'));
  expect(ruleset).toMatchSnapshot();
});

test('the files that are shipped are valid', async () => {
  const names = [
    'default.yaml',
    ...readdirSync(join(RULES, 'examples')).map((name) => join('examples', name)),
  ];
  expect(names.length).toBeGreaterThan(3);
  for (const name of names)
    expect(await loadRuleFile(join(RULES, name), BUILT_AT_MS)).toHaveProperty('ruleset');
});
