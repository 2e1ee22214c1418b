/** What a valid rule file is warned about, and that sound files are not. */
import { describe, expect, test } from 'vitest';
import { boundOf } from '../../src/engine/bound.ts';
import { rulesetFrom, warningsFrom, withDescriptors } from './rules-from.ts';

const LIMIT = 'unit: minute, requests_per_unit: 10';
/** Covers every request, so that only the warning in question is left. */
const COVER = `  - { key: remote_address, rate_limit: { ${LIMIT}, policy: cover } }\n`;

const warned = (descriptors: string, head = '') => warningsFrom(withDescriptors(COVER + descriptors, head));

describe('rules that can never win', () => {
  test.each([
    [
      'the same conditions in another order: the first in the file wins',
      `  - { key: tier, value: a, descriptors: [{ key: org, value: b, rate_limit: { ${LIMIT} } }] }
  - { key: org, value: b, descriptors: [{ key: tier, value: a, rate_limit: { ${LIMIT} } }] }`,
      '',
      /^6:64 .*can never win: another rule of policy "default"/,
    ],
    [
      'a deeper rule that always matches',
      `  - { key: tier, value: a, rate_limit: { ${LIMIT} }, descriptors: [{ key: remote_address, rate_limit: { ${LIMIT} } }] }`,
      '',
      /descriptors\[1\]\.rate_limit: can never win: another/,
    ],
    [
      'two values at once',
      `  - { key: tier, value: a, descriptors: [{ key: tier, value: b, rate_limit: { ${LIMIT} } }] }`,
      '',
      /can never win: tier cannot have two values at once/,
    ],
    [
      'a key that only a directory could hold',
      `  - { key: api_key, value: k_9, rate_limit: { ${LIMIT} } }`,
      '',
      /names an API key that is not in identity\.keys/,
    ],
    [
      'a key of another tier',
      `  - { key: tier, value: a, descriptors: [{ key: api_key, value: k_1, rate_limit: { ${LIMIT} } }] }`,
      'identity: { keys: [{ key: k_1, tier: b }] }',
      /can never win: its API key has the tier "b"/,
    ],
    [
      'routes without a pattern',
      `  - { key: route, rate_limit: { ${LIMIT} } }`,
      '',
      /can never win: the file names no route pattern/,
    ],
  ])('%s', (_, descriptors, head, expected) => {
    expect(warned(descriptors, head)).toEqual([expect.stringMatching(expected)]);
  });

  test.each([
    ['an open pattern under one with a parameter', ['/x/*', '/x/:id']],
    ['a parameter under an exact path', ['/x/:id', '/x/me']],
  ])('but not %s', (_, [wide, narrow]) => {
    const rule = (route?: string) => `  - { key: route, value: "${route}", rate_limit: { ${LIMIT} } }\n`;
    expect(warned(rule(wide) + rule(narrow))).toEqual([]);
  });

  test('nor an open pattern that is left only what lies two levels down', () => {
    const rules = ['/x/*', '/x/:id', '/x'].map(
      (route) => `  - { key: route, value: "${route}", rate_limit: { ${LIMIT} } }`,
    );
    expect(warned(rules.join('\n'))).toEqual([]);
  });

  test('nor patterns, networks and tiers that leave each other something', () => {
    const rules = [
      'key: tier, value: a*',
      'key: tier, value: ab*',
      'key: tier, value: ab',
      'key: tier',
      'key: remote_address, value: 10.0.0.0/8',
      'key: remote_address, value: 10.0.0.0/16',
      'key: remote_address, value: 10.0.0.0',
    ].map((node) => `  - { ${node}, rate_limit: { ${LIMIT} } }`);
    expect(warned(rules.join('\n'))).toEqual([]);
  });
});

describe('requests that no rule covers', () => {
  const uncovered = (descriptors: string) => {
    const head = 'identity: { default: { tier: free }, keys: [{ key: k_1, tier: gold }, { key: k_2 }] }';
    return warningsFrom(withDescriptors(descriptors, head)).map(
      (line) => /cover no request of (.*) outside/.exec(line)?.[1],
    );
  };

  test('by kind of caller', () => {
    expect(uncovered(`  - { key: tier, value: gold, rate_limit: { ${LIMIT} } }`)).toEqual([
      'callers without a known key',
      'known keys without a tier',
    ]);
    expect(uncovered(`  - { key: tier, rate_limit: { ${LIMIT} } }`)).toEqual(['known keys without a tier']);
    expect(uncovered(`  - { key: subject, rate_limit: { ${LIMIT} } }`)).toEqual([]);
  });

  test('a shadow rule covers nothing; an unlimited one does', () => {
    expect(uncovered(`  - { key: subject, rate_limit: { ${LIMIT}, shadow_mode: true } }`)).toHaveLength(3);
    expect(uncovered('  - { key: subject, rate_limit: { unlimited: true } }')).toEqual([]);
  });
});

describe('one counter for everybody', () => {
  test.each(['strict', 'auto'])(
    'with consistency: %s, of so low a limit that isolates never lease it',
    (consistency) => {
      const rule = `  - { key: tier, rate_limit: { ${LIMIT}, per: [], consistency: ${consistency} } }`;
      expect(warned(rule)).toEqual([expect.stringMatching(/^5:18 .*counts all requests in one object/)]);
    },
  );

  test('but not where isolates lease', () => {
    const rule = '  - { key: tier, rate_limit: { unit: second, requests_per_unit: 34, per: [] } }';
    expect(warned(rule)).toEqual([]);
  });

  test('but not in each isolate by itself', () => {
    expect(
      warned(
        '  - { key: tier, rate_limit: { unit: second, requests_per_unit: 900, per: [], scope: local } }',
      ),
    ).toEqual([]);
  });
});

describe('more than the one object can decide that is asked for each request', () => {
  const found = (fields: string, head = '') =>
    warned(`  - { key: tier, rate_limit: { unit: second, ${fields} } }`, head).filter((line) =>
      line.includes('one object'),
    );
  const told = (perSecond: string, why: string, object = 'one object') =>
    `5:18 descriptors[1].rate_limit: allows ${perSecond} units a second, and ${object} decides every request, ` +
    `about 1,000 a second (${why}): past that they fall back`;
  const LEASE = '; "leased" or "auto" can carry it';

  test.each([
    ['requests_per_unit: 1001, consistency: strict', told('1,001', 'strict') + LEASE],
    ['requests_per_unit: 1001, consistency: strict, per: []', told('1,001', 'strict') + LEASE],
    ['requests_per_unit: 1001, consistency: strict, burst: 100', told('1,001', 'strict')],
    ['requests_per_unit: 1001, algorithm: sliding_log', told('1,001', 'sliding_log is never leased')],
    ['requests_per_unit: 1001, algorithm: leaky_bucket', told('1,001', 'leaky_bucket is never leased')],
    ['requests_per_unit: 2000, burst: 199', told('2,000', 'too small a burst to lease')],
    [
      'requests_per_unit: 1001, scope: regional, consistency: strict',
      told('1,001', 'strict', 'one object in each region') + LEASE,
    ],
    [
      'requests_per_unit: 2004, scope: regional, consistency: strict, region_weights: { weur: 0.5, apac: 0.2 }',
      told('1,002', 'strict', 'one object in each region') + LEASE,
    ],
  ])('%s', (fields, warning) => {
    expect(found(fields)).toEqual([warning]);
  });

  test('a request that costs half the burst keeps a rule from leases', () => {
    const costs = 'costs: [{ route: "/x", cost: 501 }]';
    const [line] = found('requests_per_unit: 10000, burst: 1001', costs);
    expect(line).toContain('(a request may cost half the burst): past that they fall back');
  });

  test.each([
    'requests_per_unit: 1000, consistency: strict',
    'requests_per_unit: 1000, algorithm: sliding_log',
    'requests_per_unit: 50000',
    'requests_per_unit: 50000, algorithm: fixed_window, consistency: leased',
    'requests_per_unit: 50000, scope: regional',
    'requests_per_unit: 50000, scope: local',
    'requests_per_unit: 2000, scope: regional, consistency: strict, region_weights: { weur: 0.5 }',
  ])('but not %s', (fields) => {
    expect(found(fields)).toEqual([]);
  });

  test.each([
    'requests_per_unit: 2000',
    'requests_per_unit: 2000, burst: 200',
    'requests_per_unit: 2000, burst: 199',
    'requests_per_unit: 2000, algorithm: fixed_window',
    'requests_per_unit: 2000, algorithm: sliding_window',
    'requests_per_unit: 2000, consistency: strict',
    'requests_per_unit: 2000, consistency: leased, scope: regional',
  ])('as the worst cases say it: %s', (fields) => {
    const { rules } = rulesetFrom(
      withDescriptors(`  - { key: tier, rate_limit: { unit: second, ${fields} } }`),
    );
    const { sentences } = boundOf(rules[0]!, { isolates: 1, blindIsolates: 0, largestCost: 1 })!;
    expect(/decides every request/.test(sentences.join())).toBe(found(fields).length > 0);
  });

  test('nor slots, which have no rate', () => {
    const slots = 'algorithm: concurrency, max_in_flight: 5000, policy: slots';
    expect(warned(`  - { key: tier, rate_limit: { ${slots} } }`)).toEqual([]);
  });
});

describe('a flood tier that is narrower than what it shields', () => {
  const tier = (rate: number) =>
    `  - { key: tier, rate_limit: { unit: minute, requests_per_unit: ${rate}, per: [subject] } }\n`;
  const flood = (rate: number, path = 'key: remote_address') =>
    `  - { ${path}, rate_limit: { policy: flood, unit: minute, requests_per_unit: ${rate}, scope: local } }\n`;

  test('denies callers inside their quota', () => {
    expect(warned(tier(1000) + flood(900))).toEqual([
      expect.stringMatching(/^6:28 .*lower rate than descriptors\[1\]\.rate_limit, which it shields/),
    ]);
  });

  test.each([
    ['a wider one', tier(1000) + flood(1000)],
    ['one that shields something else', tier(1000) + flood(900, 'key: country')],
    [
      'a limit of many callers together',
      `  - { key: org, rate_limit: { unit: second, requests_per_unit: 900 } }\n${flood(3000)}`,
    ],
  ])('but not %s', (_, descriptors) => {
    expect(warned(descriptors)).toEqual([]);
  });
});

test('attributes that a client can write', () => {
  expect(warned('', 'attributes: { plan: { header: X-Plan } }')).toEqual([
    expect.stringMatching(/^2:15 attributes\.plan: comes from the header x-plan, which any client can write/),
  ]);
});

test.each([
  ['burst: 999', 1],
  ['burst: 1000', 0],
  ['burst: 999, consistency: strict', 0],
  ['burst: 999, consistency: leased', 1],
  ['burst: 999, scope: local', 0],
  ['burst: 1000, scope: regional', 0],
  ['burst: 999, scope: regional, consistency: strict', 1],
  ['burst: 999, scope: regional, region_weights: { weur: 1 }, consistency: strict', 0],
])('a burst too small to lease: %s', (fields, count) => {
  const found = warned(
    `  - { key: tier, rate_limit: { unit: second, requests_per_unit: 10000, ${fields} } }`,
  );
  expect(found.filter((line) => line.includes('too little to lease'))).toHaveLength(count);
});

test.each([
  ['blind_share: 0.9', 1],
  ['blind_share: 0.8', 0],
  ['blind_share: 0.9, failure_mode: closed', 0],
])('a fallback that exceeds the limit: %s', (fields, count) => {
  const found = warned(`  - { key: tier, rate_limit: { ${LIMIT}, ${fields} } }`);
  expect(found.filter((line) => line.includes('times the limit'))).toHaveLength(count);
});

test('a concurrency limit has no rate, so nothing is warned of that compares rates', () => {
  const slots = '{ algorithm: concurrency, max_in_flight: 900, policy: slots, blind_share: 1 }';
  const flood = `  - { key: remote_address, rate_limit: { ${LIMIT}, policy: flood, scope: local } }`;
  expect(warned(`  - { key: remote_address, rate_limit: ${slots} }\n${flood}`)).toEqual([]);
});

describe('keys that a request cannot show', () => {
  const keyed = (key: string, places = '') =>
    warned('', `identity: { ${places}keys: [{ key: ${JSON.stringify(key)}, tier: a }] }`);

  test.each(['x'.repeat(513), 'a b', 'a,b', 'ключ'])('%s', (key) => {
    expect(keyed(key)).toEqual([
      expect.stringMatching(/identity\.keys\[0\]\.key: cannot be shown by a request/),
    ]);
  });

  test('as a Bearer token, where that is one of the places', () => {
    expect(keyed('sk:live$1')).toEqual([expect.stringMatching(/cannot be shown as a Bearer token/)]);
    expect(keyed('sk:live$1', 'api_key: [x-api-key], ')).toEqual([]);
    expect(keyed('sk_live-1.2~3+4/5==')).toEqual([]);
  });
});

describe('windows that are no whole seconds', () => {
  const windowed = (window: string, head = '') =>
    warned(`  - { key: tier, value: a, rate_limit: { window: ${window}, requests_per_unit: 5 } }\n`, head);

  test('are told to clients as more', () => {
    expect(windowed('1500ms')).toEqual([
      expect.stringMatching(/rate_limit\.window: is 1500 ms, which clients are told as 2 s/),
    ]);
    expect(windowed('100ms')).toEqual([expect.stringMatching(/told as 1 s/)]);
  });

  test('are nobody’s business where no field says so', () => {
    expect(windowed('2s')).toEqual([]);
    for (const mode of ['legacy', 'none']) expect(windowed('1500ms', `headers: ${mode}`)).toEqual([]);
  });
});
