import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { diffRulesets, isEmptyDiff, type RulesetDiff } from '../../src/policy/diff.ts';
import type { Rule, RuleNode, Ruleset } from '../../src/policy/ruleset.ts';
import { rulesetFrom, withDescriptors } from './rules-from.ts';

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** One rule, written on one line. */
function rule(path: string, limit: string): string {
  return `  - { ${path}, rate_limit: { ${limit} } }`;
}

const PER_MINUTE = 'unit: minute, requests_per_unit: 100';

function diffOf(before: readonly string[], after: readonly string[], heads: [string?, string?] = []) {
  return diffRulesets(
    rulesetFrom(withDescriptors(before.join('\n'), heads[0])),
    rulesetFrom(withDescriptors(after.join('\n'), heads[1])),
  );
}

function diffOfHeads(before: string, after: string): RulesetDiff {
  const rules = [rule('key: tier', PER_MINUTE)];
  return diffOf(rules, rules, [before, after]);
}

/** `effect policy: before -> after`, for each affected request. */
function tell({ affected }: RulesetDiff): Record<string, readonly string[]> {
  const side = (decider: { title: string; shadow: boolean } | undefined) =>
    decider === undefined ? 'none' : `${decider.title}${decider.shadow ? ' (shadow)' : ''}`;
  return Object.fromEntries(
    affected.map(({ request, policies }) => [
      request,
      policies.map(({ policy, before, after, effect }) => {
        return `${effect} ${policy}: ${side(before)} -> ${side(after)}`;
      }),
    ]),
  );
}

describe('rules', () => {
  const free = rule('key: tier, value: free', PER_MINUTE);

  test('that one of the rulesets has not', () => {
    const org = rule('key: org', 'policy: org, unit: second, requests_per_unit: 5');
    const title = { policy: 'org', shadow: false, title: 'org: 5 per 1s' };
    expect(diffOf([free], [free, org]).rules).toMatchObject({ added: [title], removed: [], changed: [] });
    expect(diffOf([free, org], [free]).rules).toMatchObject({ added: [], removed: [title], changed: [] });
  });

  test.each([
    ['requests_per_unit: 100', 'requests_per_unit: 60', [['quota', 100, 60]]],
    ['requests_per_unit: 100', 'requests_per_unit: 100, burst: 10', [['burst', 100, 10]]],
    [
      'requests_per_unit: 100, burst: 10',
      'requests_per_unit: 60',
      [
        ['quota', 100, 60],
        ['burst', 10, 60],
      ],
    ],
    [
      'requests_per_unit: 100',
      'requests_per_unit: 100, algorithm: fixed_window',
      [['algorithm', 'token_bucket', 'fixed_window']],
    ],
    ['requests_per_unit: 100', 'requests_per_unit: 100, per: []', [['per', 'subject', '']]],
    ['requests_per_unit: 100', 'requests_per_unit: 100, scope: local', [['scope', 'global', 'local']]],
    [
      'requests_per_unit: 100',
      'requests_per_unit: 100, consistency: strict, failure_mode: closed, blind_share: 0.5',
      [
        ['consistency', 'auto', 'strict'],
        ['failureMode', 'open', 'closed'],
        ['blindShare', 0.05, 0.5],
      ],
    ],
    ['requests_per_unit: 100', 'requests_per_unit: 100, scope: regional', [['scope', 'global', 'regional']]],
    [
      'requests_per_unit: 100, scope: regional',
      'requests_per_unit: 100, scope: regional, start_credit: 0.5',
      [['startCredit', 0.25, 0.5]],
    ],
    [
      'requests_per_unit: 100, scope: regional, start_credit: 0.5',
      'requests_per_unit: 100, scope: regional, region_weights: { weur: 0.5, enam: 0.25 }',
      [['regionWeights', 'none', 'enam 0.25, weur 0.5']],
    ],
    [
      'requests_per_unit: 100, scope: regional, region_weights: { weur: 0.5, enam: 0.25 }',
      'requests_per_unit: 100, scope: regional, region_weights: { enam: 0.25, weur: 0.75 }',
      [['regionWeights', 'enam 0.25, weur 0.5', 'enam 0.25, weur 0.75']],
    ],
  ])('%s that becomes %s', (before, after, expected) => {
    const [old, young] = [before, after].map((numbers) =>
      rule('key: tier, value: free', `unit: minute, ${numbers}`),
    );
    const { added, removed, changed, moved } = diffOf([old!], [young!]).rules;
    expect([added, removed, moved]).toEqual([[], [], []]);
    expect(
      changed.flatMap(({ fields }) => fields.map(({ field, before, after }) => [field, before, after])),
    ).toEqual(expected);
  });

  test('that become unlimited', () => {
    const { rules } = diffOf([free], [rule('key: tier, value: free', 'unlimited: true')]);
    expect(rules.changed[0]?.fields).toEqual([{ field: 'unlimited', before: false, after: true }]);
  });

  test('that move from shadow to enforced, with other numbers or without', () => {
    const shadow = rule('key: tier, value: free', `${PER_MINUTE}, shadow_mode: true`);
    const narrower = rule('key: tier, value: free', 'unit: minute, requests_per_unit: 50');
    expect(diffOf([shadow], [free]).rules).toMatchObject({
      added: [],
      removed: [],
      changed: [],
      moved: [{ before: { shadow: true }, after: { shadow: false }, fields: [] }],
    });
    expect(diffOf([shadow], [narrower]).rules.moved[0]?.fields.map(({ field }) => field)).toEqual(['quota']);
    expect(diffOf([free], [shadow]).rules.moved).toHaveLength(1);
    // The enforced rule was there before: it changes, and the shadow rule goes.
    const { moved, changed, removed } = diffOf([free, shadow], [narrower]).rules;
    expect([moved.length, changed.length, removed.length]).toEqual([0, 1, 1]);
  });

  test('in another order', () => {
    const other = rule('key: org', PER_MINUTE);
    expect(diffOf([free, other], [other, free]).rules.isReordered).toBe(true);
    expect(diffOf([free, other], [other]).rules.isReordered).toBe(false);
  });

  test('of another domain are the same rules', () => {
    const [before, after] = ['one', 'two'].map((domain) =>
      rulesetFrom(`domain: ${domain}\ndescriptors:\n${free}\n`),
    );
    const diff = diffRulesets(before!, after!);
    expect(diff.domain).toEqual({ before: 'one', after: 'two' });
    expect(diff.rules).toMatchObject({ added: [], removed: [], changed: [] });
    expect(isEmptyDiff(diff)).toBe(false);
  });
});

test.each([
  ['headers: ietf', 'headers: both', [{ setting: 'headers', before: 'ietf', after: 'both' }]],
  ['deadline: 100ms', '', [{ setting: 'deadline', before: '100ms', after: '150ms' }]],
  [
    '',
    'regions: [weur, enam]',
    [{ setting: 'regions', before: 'afr, apac, eeur, enam, me, oc, sam, weur, wnam', after: 'enam, weur' }],
  ],
  ['regions: [weur, enam]', 'regions: [enam, weur]', []],
  [
    '',
    'cors: { allow_origins: ["https://a.example"] }',
    [{ setting: 'cors.allow_origins', after: 'https://a.example' }],
  ],
  [
    'costs: [{ route: /a, method: GET, cost: 2 }]',
    'costs: [{ route: /a, method: GET, reserve: 5, cost_header: x-cost, default: 7 }]',
    [{ setting: 'costs GET /a', before: '2', after: 'reserve 5, then x-cost, else 7' }],
  ],
  [
    'costs: [{ cost: 3 }]',
    'costs: [{ route: /a, cost: 3 }]',
    [
      { setting: 'costs of all requests', before: '3' },
      { setting: 'routes', after: '/a' },
      { setting: 'costs /a', after: '3' },
    ],
  ],
  [
    'attributes: { plan: { header: x-plan } }',
    'attributes: { plan: { header: x-plan, fold: true } }',
    [{ setting: 'attributes.plan', before: 'x-plan', after: 'x-plan, folded' }],
  ],
  [
    'identity: { api_key: [authorization] }',
    'identity: { api_key: [x-key, "query:k"] }',
    [{ setting: 'identity.api_key', before: 'authorization', after: 'x-key, query:k' }],
  ],
  [
    'identity: { default: { tier: none } }',
    'identity: { trusted_hops: 1, ipv6_prefix: 48 }',
    [
      { setting: 'identity.trusted_hops', before: '0', after: '1' },
      { setting: 'identity.ipv6_prefix', before: '64', after: '48' },
      { setting: 'identity.default.tier', before: 'none' },
    ],
  ],
])('the setting %s that becomes %s', (before, after, expected) => {
  expect(diffOfHeads(before, after).settings).toEqual(expected);
});

test('the key directory is told by the first digits of hashes, and by attributes', () => {
  const keysOf = (...keys: string[]) => `identity: { keys: [${keys.join(', ')}] }`;
  const diff = diffOf(
    [rule('key: api_key, value: key_c', PER_MINUTE)],
    [rule('key: api_key, value: key_c', 'unit: minute, requests_per_unit: 7')],
    [
      keysOf('{ key: key_a, tier: free }', '{ key: key_b, tier: free }', '{ key: key_c }'),
      keysOf('{ key: key_b, tier: premium }', '{ key: key_c }', '{ key: key_d, org: acme }'),
    ],
  );
  const short = (key: string) => sha256(key).slice(0, 8);
  expect(diff.keys).toEqual({
    added: [{ key: short('key_d'), after: { org: 'acme' } }],
    removed: [{ key: short('key_a'), before: { tier: 'free' } }],
    changed: [{ key: short('key_b'), before: { tier: 'free' }, after: { tier: 'premium' } }],
  });
  expect(Object.keys(tell(diff))).toEqual([`api_key=${short('key_c')}`]);
  expect(JSON.stringify(diff)).not.toMatch(/[0-9a-f]{9}/);
});

describe('whoever is decided otherwise', () => {
  test.each([
    ['requests_per_unit: 100', 'requests_per_unit: 60', 'tighter'],
    ['requests_per_unit: 100', 'requests_per_unit: 200', 'looser'],
    ['requests_per_unit: 100', 'requests_per_unit: 100, burst: 10', 'tighter'],
    ['requests_per_unit: 100, burst: 10', 'requests_per_unit: 60, burst: 20', 'other'],
    ['requests_per_unit: 100', 'requests_per_unit: 0', 'tighter'],
    ['requests_per_unit: 100', 'requests_per_unit: 100, algorithm: sliding_log', 'other'],
    ['requests_per_unit: 100', 'requests_per_unit: 60, scope: local', 'other'],
    ['requests_per_unit: 100', 'requests_per_unit: 60, per: []', 'other'],
    ['requests_per_unit: 100', 'requests_per_unit: 60, scope: regional', 'other'],
    [
      'requests_per_unit: 100, scope: regional',
      'requests_per_unit: 100, scope: regional, region_weights: { weur: 1 }',
      'other',
    ],
    [
      'requests_per_unit: 100, scope: regional, region_weights: { weur: 1 }',
      'requests_per_unit: 90, scope: regional, region_weights: { weur: 1 }',
      'tighter',
    ],
    ['requests_per_unit: 100', 'requests_per_unit: 60, shadow_mode: true', 'looser'],
    ['requests_per_unit: 100, shadow_mode: true', 'requests_per_unit: 600', 'tighter'],
    ['requests_per_unit: 100, shadow_mode: true', 'requests_per_unit: 60, shadow_mode: true', 'tighter'],
  ])('%s -> %s is %s', (before, after, effect) => {
    const of = (numbers: string) => rule('key: tier, value: free', `unit: minute, ${numbers}`);
    const diff = diffOf([of(before)], [of(after)]);
    expect(diff.affected).toMatchObject([
      { request: 'tier=free', policies: [{ policy: 'default', effect }] },
    ]);
  });

  it('loses a limit, or gets one', () => {
    const org = rule('key: org', 'policy: org, unit: second, requests_per_unit: 5');
    const free = rule('key: tier, value: free', PER_MINUTE);
    const none = rule('key: tier, value: free', 'unlimited: true');
    expect(tell(diffOf([free], [free, org]))).toEqual({
      'org=(any)': ['tighter org: none -> org: 5 per 1s'],
    });
    expect(tell(diffOf([free, org], [free]))).toEqual({ 'org=(any)': ['looser org: org: 5 per 1s -> none'] });
    expect(tell(diffOf([free], [none]))).toEqual({
      'tier=free': ['looser default: tier=free: 100 per 1m -> tier=free: unlimited'],
    });
  });

  it('is met by another rule, though that one has not changed', () => {
    const free = rule('key: tier, value: free', PER_MINUTE);
    const any = rule('key: tier', 'unit: minute, requests_per_unit: 10, per: [subject]');
    expect(tell(diffOf([any, free], [any]))).toEqual({
      'tier=free': ['tighter default: tier=free: 100 per 1m -> tier: 10 per 1m'],
    });
  });

  it('is anybody whom the defaults are about', () => {
    const rules = [
      rule('key: tier, value: a', PER_MINUTE),
      rule('key: tier, value: b', 'unit: minute, requests_per_unit: 10'),
      rule('key: method, value: POST', 'policy: writes, unit: minute, requests_per_unit: 10'),
      rule('key: user', 'policy: user, unit: minute, requests_per_unit: 10'),
    ];
    const diff = diffOf(rules, rules, [
      'identity: { default: { tier: a } }',
      'identity: { default: { tier: b } }',
    ]);
    const change = ['tighter default: tier=a: 100 per 1m -> tier=b: 10 per 1m'];
    expect(tell(diff)).toEqual({ 'any other caller': change, 'method=POST': change });
  });

  it('is a key by what its directory says, not by what a rule would like it to be', () => {
    const nested = (quota: number) => `
  - key: tier
    value: premium
    descriptors:
      - { key: api_key, value: key_a, rate_limit: { unit: minute, requests_per_unit: ${quota} } }`;
    const heads = (tier: string) => `identity: { keys: [{ key: key_a, tier: ${tier} }] }`;
    const request = `tier=premium, api_key=${sha256('key_a').slice(0, 8)}`;
    expect(Object.keys(tell(diffOf([nested(5)], [nested(6)], [heads('premium'), heads('premium')])))).toEqual(
      [request],
    );
    expect(diffOf([nested(5)], [nested(6)], [heads('free'), heads('free')]).affected).toEqual([]);
  });

  test.each([
    ['key: route, value: "/users/:id"', 'route=/users/1'],
    ['key: route, value: "/files/*"', 'route=/files/x'],
    ['key: route, value: /v1/search', 'route=/v1/search'],
    ['key: remote_address, value: 10.0.0.0/8', 'remote_address=10.1.1.1'],
    ['key: remote_address, value: 198.51.100.7', 'remote_address=198.51.100.7'],
    ['key: remote_address, value: "2001:db8::/32"', 'remote_address=2001:db8:101:101:101:101:101:101'],
    ['key: remote_address', 'any other caller'],
    ['key: subject', 'any other caller'],
    ['key: org, value: "ac*e"', 'org=acxe'],
    ['key: host, value: "*.example.com"', 'host=x.example.com'],
    ['key: country, value: de', 'country=DE'],
    ['key: api_key', 'api_key=(any)'],
    ['key: method', 'method=(any)'],
  ])('of a rule about %s is asked as %s', (path, request) => {
    const of = (quota: number) => [rule(path, `unit: minute, requests_per_unit: ${quota}`)];
    expect(Object.keys(tell(diffOf(of(10), of(9))))).toContain(request);
  });

  test('of a rule about any route is asked by a route of the file', () => {
    const nested = (quota: number) => [
      rule('key: route, value: "/a/:b"', `${PER_MINUTE}, policy: other`),
      rule('key: route', `unit: minute, requests_per_unit: ${quota}`),
    ];
    expect(Object.keys(tell(diffOf(nested(10), nested(9))))).toEqual(['route=/a/1']);
  });

  it('is looked for in a bounded number of requests, those of changed rules first', () => {
    const many = Array.from({ length: 1_500 }, (_, at) => rule(`key: user, value: u${at}`, PER_MINUTE));
    const last = rule('key: user, value: u1499', 'unit: minute, requests_per_unit: 5');
    const diff = diffOf(many, [...many.slice(0, -1), last]);
    expect([diff.probes, diff.probesLeftOut]).toEqual([1_000, 501]);
    expect(diff.affected.map(({ request }) => request)).toEqual(['user=u1499']);
  });
});

const NODE: fc.Arbitrary<RuleNode> = fc.oneof(
  fc.record({
    key: fc.constantFrom('api_key', 'user', 'org', 'tier', 'remote_address'),
    match: fc.constant('any' as const),
  }),
  fc.record({
    key: fc.constantFrom('api_key', 'user', 'org', 'tier'),
    match: fc.constant('exact' as const),
    value: fc.constantFrom('a', 'ab', 'b'),
  }),
  fc.record({
    key: fc.constantFrom('org', 'tier'),
    match: fc.constant('pattern' as const),
    value: fc.constantFrom('a*', '*b'),
  }),
);

const TEMPLATE = rulesetFrom(withDescriptors(rule('key: tier', PER_MINUTE)));

const RULE: fc.Arbitrary<Rule> = fc
  .record({
    path: fc.array(NODE, { minLength: 1, maxLength: 3 }),
    policy: fc.constantFrom('default', 'other'),
    shadow: fc.boolean(),
    quota: fc.integer({ min: 0, max: 3 }),
  })
  .map(({ quota, ...fields }) => {
    const [{ limit, ...others }] = TEMPLATE.rules as [Rule];
    return { ...others, ...fields, limit: { ...limit!, quota, burst: Math.max(1, quota) } };
  });

const RULESET: fc.Arbitrary<Ruleset> = fc
  .record({
    rules: fc.uniqueArray(RULE, {
      maxLength: 10,
      selector: ({ path, policy, shadow }) => JSON.stringify([path, policy, shadow]),
    }),
    keys: fc.dictionary(fc.constantFrom('a', 'ab', 'b'), fc.record({ tier: fc.constantFrom('a', 'b') })),
    deadlineMs: fc.constantFrom(100, 150),
  })
  .map(({ rules, keys, deadlineMs }) => ({
    ...TEMPLATE,
    deadlineMs,
    rules,
    identity: { ...TEMPLATE.identity, keys },
  }));

describe('of any two rulesets', () => {
  test('one and itself differ in nothing, whenever they were built', () => {
    fc.assert(
      fc.property(RULESET, (ruleset) => {
        const diff = diffRulesets(ruleset, { ...structuredClone(ruleset), builtAtMs: 1 });
        expect(isEmptyDiff(diff)).toBe(true);
      }),
    );
  });

  test('what changes one way changes back the other way', () => {
    const REVERSE = { tighter: 'looser', looser: 'tighter', other: 'other' } as const;
    const byName = (one: { request: string }, other: { request: string }) =>
      one.request < other.request ? -1 : 1;
    fc.assert(
      fc.property(RULESET, RULESET, (one, two) => {
        const [there, back] = [diffRulesets(one, two), diffRulesets(two, one)];
        expect(isEmptyDiff(back)).toBe(isEmptyDiff(there));
        expect(back.rules.added).toEqual(there.rules.removed);
        expect(back.rules.moved.length).toBe(there.rules.moved.length);
        const effects = ({ affected }: RulesetDiff, of = (effect: keyof typeof REVERSE): string => effect) =>
          affected
            .toSorted(byName)
            .map(({ request, policies }) => [
              request,
              policies.map(({ policy, effect }) => policy + of(effect)).sort(),
            ]);
        expect(effects(back)).toEqual(effects(there, (effect) => REVERSE[effect]));
      }),
      { numRuns: 300 },
    );
  });

  test('the difference is plain JSON', () => {
    fc.assert(
      fc.property(RULESET, RULESET, (one, two) => {
        const diff = diffRulesets(one, two);
        expect(JSON.parse(JSON.stringify(diff))).toEqual(diff);
      }),
    );
  });

  test('whoever is affected meets something that changed', () => {
    fc.assert(
      fc.property(RULESET, RULESET, (one, two) => {
        const { affected, rules, keys } = diffRulesets(one, two);
        const isSame = [rules.added, rules.removed, rules.changed, rules.moved].every(
          ({ length }) => length === 0,
        );
        const isSameDirectory = [keys.added, keys.removed, keys.changed].every(({ length }) => length === 0);
        if (isSame && isSameDirectory && !rules.isReordered) expect(affected).toEqual([]);
      }),
    );
  });
});
