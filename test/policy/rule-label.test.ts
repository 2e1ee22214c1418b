/** Rules’ names in metrics: the same when numbers change, and never a caller’s. */
import { expect, test } from 'vitest';
import { ruleLabel } from '../../src/policy/rule-label.ts';
import { rulesetFrom } from './rules-from.ts';

test('D09 are stable for every kind of rule, and hold no caller', () => {
  const rules = (quota: number) =>
    rulesetFrom(`
domain: test
identity: { keys: [{ key: k_1, tier: gold }] }
attributes: { plan: { header: x-plan } }
descriptors:
  - key: tier
    value: gold
    rate_limit: { unit: minute, requests_per_unit: ${quota} }
    descriptors:
      - { key: route, value: "/users/:id", rate_limit: { unit: minute, requests_per_unit: ${quota} } }
  - { key: plan, value: "free*", rate_limit: { policy: a, unit: minute, requests_per_unit: ${quota} } }
  - { key: plan, rate_limit: { policy: b, unit: minute, requests_per_unit: ${quota} } }
  - { key: api_key, value: k_1, rate_limit: { policy: c, unit: minute, requests_per_unit: ${quota} } }
  - { key: user, value: anne, rate_limit: { policy: d, unit: minute, requests_per_unit: ${quota} } }
  - { key: remote_address, value: 192.0.2.1, rate_limit: { policy: e, unit: minute, requests_per_unit: ${quota} } }
  - { key: remote_address, value: 192.0.2.0/24, rate_limit: { policy: f, unit: minute, requests_per_unit: ${quota} } }
`).rules.map(ruleLabel);
  expect(rules(5)).toEqual([
    'tier=gold',
    'tier=gold > route=/users/:id',
    'plan=free*',
    'plan',
    'api_key=(one)',
    'user=(one)',
    'remote_address=(one)',
    'remote_address=192.0.2.0/24',
  ]);
  expect(rules(6)).toEqual(rules(5));
});
