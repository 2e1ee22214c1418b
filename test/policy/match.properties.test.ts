/** The quick search of the matcher against the order of precedence as it reads, and what no request can do to it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Matcher } from '../../src/policy/match.ts';
import type { Rule, RuleNode, Ruleset } from '../../src/policy/ruleset.ts';
import { factsOf, matcherFrom, rulesetFrom, SEED, withDescriptors } from './rules-from.ts';

const KEYS = ['api_key', 'user', 'org', 'tier'] as const;
const VALUES = ['a', 'ab', 'abc', 'b', 'bc'] as const;
const PATTERNS = ['a*', 'ab*', '*c', 'a*c', 'b*'] as const;

const node: fc.Arbitrary<RuleNode> = fc.oneof(
  fc.record({ key: fc.constantFrom(...KEYS), match: fc.constant('any' as const) }),
  fc.record({
    key: fc.constantFrom(...KEYS),
    match: fc.constant('exact' as const),
    value: fc.constantFrom(...VALUES),
  }),
  fc.record({
    key: fc.constantFrom('org', 'tier'),
    match: fc.constant('pattern' as const),
    value: fc.constantFrom(...PATTERNS),
  }),
);

const TEMPLATE = rulesetFrom(
  withDescriptors('  - { key: tier, rate_limit: { unit: minute, requests_per_unit: 10 } }'),
);

const rule: fc.Arbitrary<Rule> = fc
  .record({
    path: fc.array(node, { minLength: 1, maxLength: 3 }),
    policy: fc.constantFrom('default', 'other'),
    shadow: fc.boolean(),
  })
  .map((fields) => ({ ...(TEMPLATE.rules[0] as Rule), per: ['subject'], ...fields }));

const attributes = fc.record(
  {
    api_key: fc.constantFrom(...VALUES),
    user: fc.constantFrom(...VALUES),
    org: fc.constantFrom(...VALUES),
    tier: fc.constantFrom(...VALUES),
  },
  { requiredKeys: [] },
);

function rulesetOf(rules: readonly Rule[]): Ruleset {
  return { ...TEMPLATE, rules };
}

describe('the winner of a policy', () => {
  test('is the one that the order of precedence names, stage by stage', () => {
    fc.assert(
      fc.property(fc.array(rule, { minLength: 1, maxLength: 12 }), attributes, (rules, given) => {
        const { enforced, shadow } = new Matcher(rulesetOf(rules), { seed: SEED }).match(factsOf(given));
        for (const policy of ['default', 'other']) {
          for (const [winners, isShadow] of [
            [enforced, false],
            [shadow, true],
          ] as const) {
            const rivals = rules.filter((item) => item.policy === policy && item.shadow === isShadow);
            const expected = precedence(rivals.filter((item) => matchesAll(item, given)));
            expect(winners.find(({ rule }) => rule.policy === policy)?.rule).toBe(expected);
          }
        }
      }),
      { numRuns: 500 },
    );
  });

  test('does not depend on the order of the file where nothing but that order would be left to decide (5)', () => {
    fc.assert(
      fc.property(fc.array(rule, { minLength: 2, maxLength: 8 }), attributes, (rules, given) => {
        const matching = rules.filter(
          (item) => matchesAll(item, given) && item.policy === 'default' && !item.shadow,
        );
        fc.pre(beforeFileOrder(matching).length === 1);
        const forwards = new Matcher(rulesetOf(matching), { seed: SEED }).match(factsOf(given)).enforced;
        const backwards = new Matcher(rulesetOf(matching.toReversed()), { seed: SEED }).match(
          factsOf(given),
        ).enforced;
        expect(backwards).toEqual(forwards);
      }),
      { numRuns: 500 },
    );
  });
});

/** The order of precedence written as it reads: each stage keeps those that it prefers. Slow, and plainly right. */
function precedence(matching: readonly Rule[]): Rule | undefined {
  return beforeFileOrder(matching)[0];
}

function beforeFileOrder(matching: readonly Rule[]): readonly Rule[] {
  let left = keepMost(matching, ({ path }) =>
    Number(path.some((n) => n.match === 'exact' && ['api_key', 'user'].includes(n.key))),
  );
  left = keepMost(left, ({ path }) => path.length);
  for (let up = 1; up <= (left[0]?.path.length ?? 0); up += 1) {
    left = keepMost(left, ({ path }) => ['any', 'pattern', 'exact'].indexOf(path.at(-up)?.match ?? ''));
  }
  for (let up = 1; up <= (left[0]?.path.length ?? 0); up += 1) {
    const rivals = left;
    left = rivals.filter((item) => {
      const sameKey = rivals.filter((other) => other.path.at(-up)?.key === item.path.at(-up)?.key);
      return keepMost(sameKey, ({ path }) => literalLength(path.at(-up))).includes(item);
    });
  }
  return left;
}

function keepMost(rules: readonly Rule[], score: (rule: Rule) => number): readonly Rule[] {
  const most = Math.max(...rules.map(score));
  return rules.filter((item) => score(item) === most);
}

function literalLength(node: RuleNode | undefined): number {
  return node === undefined || node.match === 'any' ? 0 : node.value.replaceAll('*', '').length;
}

function matchesAll({ path }: Rule, given: Readonly<Record<string, string | undefined>>): boolean {
  return path.every((node) => {
    const value = given[node.key];
    if (value === undefined) return false;
    if (node.match === 'any') return true;
    return node.match === 'exact'
      ? value === node.value
      : new RegExp(`^${node.value.replaceAll('*', '.*')}$`).test(value);
  });
}

test('whatever a request holds, matching it does not throw (E03 E19)', () => {
  const matcher = matcherFrom(
    withDescriptors(
      `
  - { key: route, value: "/a/:b/*", rate_limit: { unit: minute, requests_per_unit: 1 } }
  - { key: plan, value: "x*y*z", rate_limit: { unit: minute, requests_per_unit: 1, policy: plan } }
  - { key: plan, rate_limit: { unit: minute, requests_per_unit: 1, policy: any, per: [plan, host, asn] } }
  - { key: remote_address, value: 10.0.0.0/8, rate_limit: { unit: minute, requests_per_unit: 1, policy: net } }
  - { key: subject, rate_limit: { unit: minute, requests_per_unit: 1, policy: all } }`,
      'attributes: { plan: { header: x-plan, fold: true } }',
    ),
  );
  const text = fc.string({ unit: 'binary', maxLength: 40 });
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom('plan', 'host', 'route', 'remote_address', 'user', 'method'), text),
      text,
      (given, path) => {
        const { enforced } = matcher.match({
          attributes: given,
          path: given.route === undefined ? `/${path}` : undefined,
        });
        expect(enforced.map(({ rule }) => rule.policy)).toContain('all');
      },
    ),
    { numRuns: 500 },
  );
});
