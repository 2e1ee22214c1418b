/** Distinct callers and rules have distinct counters; what clients invent shares a fixed number of owners (E01 E03 E15 E17). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { counterId, ownerOf, type Pairs, rulePrefix, SHARED_OWNERS } from '../../src/policy/counter.ts';
import type { Rule, RuleNode } from '../../src/policy/ruleset.ts';
import { factsOf, matcherFrom, rulesetFrom, withDescriptors } from './rules-from.ts';

const TEMPLATE = rulesetFrom(
  withDescriptors('  - { key: tier, rate_limit: { unit: minute, requests_per_unit: 10 } }'),
).rules[0] as Rule;

/** Short texts over what encodings trip on: delimiters, digits and the marks of this encoding itself. */
const text = fc.string({
  unit: fc.constantFrom(...['a', 'b', '1', '2', ':', '_', '|', '/', '%', '*', '#', '\0', 'é']),
  maxLength: 4,
});
const node: fc.Arbitrary<RuleNode> = fc.oneof(
  fc.record({ key: text, match: fc.constant('any' as const) }),
  fc.record({ key: text, match: fc.constant('exact' as const), value: text }),
);
const pairs: fc.Arbitrary<Pairs> = fc.array(fc.tuple(text, text), { maxLength: 3 });
const identity = fc.record({
  domain: text,
  policy: text,
  shadow: fc.boolean(),
  path: fc.array(node, { minLength: 1, maxLength: 3 }),
  pairs,
});

type Identity = Readonly<{
  domain: string;
  policy: string;
  shadow: boolean;
  path: readonly RuleNode[];
  pairs: Pairs;
}>;

function idOf({ domain, policy, shadow, path, pairs }: Identity): string {
  return counterId(rulePrefix(domain, { ...TEMPLATE, policy, shadow, path }), pairs);
}

/** Reads an identity by the lengths in it; it never looks for a delimiter. */
function readBack(id: string) {
  let at = 0;
  const number = () => {
    const digits = /^\d+/.exec(id.slice(at))?.[0] ?? '';
    at += digits.length + 1;
    return Number(digits);
  };
  const part = () => {
    const length = number();
    at += length;
    return id.slice(at - length, at);
  };
  const skip = (mark: string) => {
    const isThere = id[at] === mark;
    if (isThere) at += 1;
    return isThere;
  };
  const [domain, policy] = [part(), part()];
  const shadow = skip('s') || !skip('e');
  const path = Array.from({ length: number() }, () => {
    const key = part();
    return skip('*') ? [key] : [key, part()];
  });
  skip('|');
  const pairs: [string, string][] = [];
  while (at < id.length) pairs.push([part(), part()]);
  return { domain, policy, shadow, path, pairs };
}

describe('the identity of a counter', () => {
  test('can be read back to all that it was made of, so no two tuples share one (E01 E03 E15)', () => {
    fc.assert(
      fc.property(identity, (made) => {
        expect(readBack(idOf(made))).toEqual({
          domain: made.domain,
          policy: made.policy,
          shadow: made.shadow,
          path: made.path.map((node) => (node.match === 'any' ? [node.key] : [node.key, node.value])),
          pairs: made.pairs,
        });
      }),
      { numRuns: 1000 },
    );
  });

  test.each<[string, Pairs, Pairs]>([
    ['a name that ends where a value begins (E01)', [['a', 'b_c']], [['a_b', 'c']]],
    [
      'a value that spells a boundary',
      [['a', '1|1:b1:c']],
      [
        ['a', '1'],
        ['b', 'c'],
      ],
    ],
    ['NFC and NFD (E03)', [['a', '\u00e9']], [['a', 'e\u0301']]],
    ['a lone surrogate (E03)', [['a', '\ud800']], [['a', '\ud801']]],
    ['an escape and what it stands for (E03)', [['a', '%25']], [['a', '%']]],
    ['the subject by what it resolved to', [['api_key', '192.0.2.1']], [['remote_address', '192.0.2.1']]],
    ['values too long to write out', [['a', `${'x'.repeat(5000)}1`]], [['a', `${'x'.repeat(5000)}2`]]],
  ])('tells apart %s', (_, a, b) => {
    expect(counterId('', a)).not.toBe(counterId('', b));
    expect(ownerOf('d', a, 1).name === ownerOf('d', b, 1).name && !ownerOf('d', a, 1).shared).toBe(false);
  });

  test('holds no number of the limit and no place in the list, so what was counted is kept (L09)', () => {
    const rule = (extra: string) => `  - { key: tier, rate_limit: { requests_per_unit: ${extra} } }\n`;
    const idsUnder = (descriptors: string) => {
      const { enforced } = matcherFrom(withDescriptors(descriptors)).match(factsOf({ tier: 't' }));
      return enforced.map((winner) => winner.counterId).sort();
    };
    const before = idsUnder(`${rule('5, unit: minute')}${rule('9, unit: day, policy: daily')}`);
    expect(before).toHaveLength(2);
    expect(idsUnder(`${rule('7, unit: hour, policy: daily')}${rule('500, window: 10s, burst: 20')}`)).toEqual(
      before,
    );
  });

  test('is short, whatever a client sends (E19)', () => {
    expect(counterId('', [['a', 'x'.repeat(16_384)]]).length).toBeLessThan(100);
  });
});

describe('owners', () => {
  test('of what the operator and the platform write: one for each tuple, and no two tuples the same', () => {
    const ours = fc.constantFrom('api_key', 'user', 'org', 'tier', 'route', 'country', 'asn');
    fc.assert(
      fc.property(text, fc.array(fc.tuple(ours, text), { maxLength: 3 }), (domain, tuple) => {
        const owner = ownerOf(domain, tuple, 1);
        expect(owner.shared).toBe(false);
        const expected = ['own/', domain, ...tuple.flat()];
        // The name is its parts with their lengths, and nothing else.
        expect(owner.name).toBe(expected.reduce((name, item) => `${name}${item.length}:${item}`));
      }),
      { numRuns: 1000 },
    );
  });

  test.each(['remote_address', 'host', 'method', 'plan'])(
    'of a %s: one of a fixed number, also beside an attribute of ours',
    (attribute) => {
      const names = new Set<string>();
      for (let count = 0; count < 20_000; count += 1) {
        const owner = ownerOf(
          'd',
          [
            ['api_key', 'k'],
            [attribute, `invented ${count}`],
          ],
          1,
        );
        expect(owner.shared).toBe(true);
        names.add(owner.name);
      }
      expect(names.size).toBe(SHARED_OWNERS);
    },
  );

  test('are picked by the seed, evenly', () => {
    const load = new Map<string, number>();
    let moved = 0;
    for (let count = 0; count < 256_000; count += 1) {
      const invented: Pairs = [['remote_address', `10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`]];
      const { name } = ownerOf('d', invented, 1);
      load.set(name, (load.get(name) ?? 0) + 1);
      if (ownerOf('d', invented, 2).name !== name) moved += 1;
    }
    // 1,000 each on average; a fair draw stays within five standard deviations (5 x 31.6) of it.
    for (const share of load.values()) expect(Math.abs(share - 1000)).toBeLessThan(158);
    expect(moved).toBeGreaterThan(250_000);
  });

  test('of a caller are the same for all its policies, so that they are decided together', () => {
    const { enforced } = matcherFrom(
      withDescriptors(
        '  - { key: tier, rate_limit: [{ unit: minute, requests_per_unit: 5, per: [subject] }, { unit: day, requests_per_unit: 9, policy: daily, per: [subject] }] }',
      ),
    ).match(factsOf({ tier: 't' }));
    expect(enforced).toHaveLength(2);
    expect(enforced[0]?.owner).toEqual(enforced[1]?.owner);
    expect(enforced[0]?.counterId).not.toBe(enforced[1]?.counterId);
  });
});
