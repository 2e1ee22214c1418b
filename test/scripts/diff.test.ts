import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, test } from 'vitest';
import { diffCommand, formatDiff, rulesetOfFile } from '../../scripts/limiter/diff.ts';
import { durationText, plainText } from '../../scripts/limiter/text.ts';
import { diffRulesets } from '../../src/policy/diff.ts';
import { rulesetFrom } from '../policy/rules-from.ts';
import { runLimiter } from './rule-commands.ts';

const BEFORE = `
domain: shop
identity:
  keys:
    - { key: key_a, tier: free }
    - { key: key_b, tier: free }
descriptors:
  - key: tier
    value: free
    rate_limit: { unit: minute, requests_per_unit: 100 }
  - key: tier
    value: free
    rate_limit: { policy: daily, unit: day, requests_per_unit: 1000, shadow_mode: true }
  - { key: org, rate_limit: { policy: org, unit: second, requests_per_unit: 10 } }
  - { key: host, rate_limit: { policy: host, unit: second, requests_per_unit: 10 } }
costs:
  - { route: /export, cost: 10 }
`;

const AFTER = `
domain: shop
deadline: 200ms
identity:
  keys:
    - { key: key_a, tier: premium }
    - { key: key_c }
descriptors:
  - key: tier
    value: free
    rate_limit: { window: 90s, requests_per_unit: 60, per: [] }
  - key: tier
    value: free
    rate_limit: { policy: daily, unit: day, requests_per_unit: 1000 }
  - { key: org, rate_limit: { policy: org, unit: second, requests_per_unit: 10, failure_mode: closed } }
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }
costs:
  - { route: /export, cost: 20 }
`;

const TOLD = `rules
  - policy "host", host: 10 per 1s
  + policy "default", user: 5 per 1m
  ~ policy "daily", tier=free: 1000 per 1d: shadow -> enforced
  ~ policy "default", tier=free: 100 per 1m: quota 100 -> 60, window 1m -> 1m 30s, per subject -> (all together)
  ~ policy "org", org: 10 per 1s: failure_mode open -> closed

settings
  ~ deadline: 150ms -> 200ms
  ~ costs /export: 10 -> 20

keys: 1 added, 1 removed, 1 changed
  - a6006dcd tier=free
  + c5dcc2e8 (no attributes)
  ~ 346efdd3 tier=free -> tier=premium

for whom (8 kinds of request were tried)
  other: policy "default", tier=free: 100 per 1m per subject -> tier=free: 60 per 90s per (all together)
      tier=free
  tighter: policy "daily", tier=free: 1000 per 1d (shadow) -> tier=free: 1000 per 1d
      tier=free
  looser: policy "host", host: 10 per 1s -> none
      host=(any)
  tighter: policy "default", none -> user: 5 per 1m
      user=(any)
  looser: policy "default", tier=free: 100 per 1m -> none
      api_key=346efdd3
      api_key=a6006dcd
  other: policy "daily", tier=free: 1000 per 1d (shadow) -> none
      api_key=346efdd3
      api_key=a6006dcd`;

const folder = mkdtempSync(join(tmpdir(), 'edge-limiter-diff-'));
const [before, after] = [join(folder, 'before.yaml'), join(folder, 'after.yaml')];
writeFileSync(before, BEFORE);
writeFileSync(after, AFTER);
writeFileSync(join(folder, 'broken.yaml'), 'domain: d\n');
afterAll(() => rmSync(folder, { recursive: true }));

function diff(...args: string[]) {
  return runLimiter((finish) => diffCommand(finish, rulesetOfFile), ...args);
}

describe('limiter diff', () => {
  it('tells what changes, and for whom', async () => {
    const { code, stdout } = await diff(before, after);
    expect(code).toBe(0);
    expect(stdout).toBe(TOLD);
  });

  it('of a file and itself says that nothing changes', async () => {
    expect(await diff(before, before)).toEqual({ code: 0, stdout: 'nothing changes', stderr: '' });
  });

  it('prints JSON', async () => {
    const { stdout } = await diff(before, after, '--json');
    const [old, young] = [BEFORE, AFTER].map(rulesetFrom);
    expect(JSON.parse(stdout)).toEqual(diffRulesets(old!, young!));
  });

  it.each([
    [1, 'before.yaml broken.yaml', /broken\.yaml:1:1 descriptors: is required/],
    [1, 'broken.yaml broken.yaml', /^.*descriptors: is required.*\n.*descriptors: is required/],
    [2, 'before.yaml none.yaml', /cannot read .*none\.yaml/],
    [2, 'broken.yaml none.yaml', /cannot read .*none\.yaml/],
    [2, 'before.yaml', /missing required argument/],
  ])('ends with %i and a sentence: %s', async (code, args, sentence) => {
    const ended = await diff(...args.split(' ').map((name) => join(folder, name)));
    expect(ended).toMatchObject({ code, stdout: '' });
    expect(ended.stderr).toMatch(sentence);
  });
});

test('requests to which the same happens are told together, and a long list is cut', () => {
  const rulesOf = (quota: number) =>
    rulesetFrom(`domain: d\ndescriptors:
  - { key: remote_address, rate_limit: { unit: minute, requests_per_unit: ${quota} } }
${Array.from({ length: 9 }, (_, at) => `  - { key: org, value: o${at}, rate_limit: { policy: org, unit: minute, requests_per_unit: 1 } }`).join('\n')}
`);
  expect(
    formatDiff(diffRulesets(rulesOf(20), rulesOf(10)))
      .split('\n')
      .slice(-9),
  ).toEqual([
    'for whom (10 kinds of request were tried)',
    '  tighter: policy "default", remote_address: 20 per 1m -> remote_address: 10 per 1m',
    '      any other caller',
    ...[0, 1, 2, 3, 4].map((at) => `      org=o${at}`),
    '      and 4 more',
  ]);
});

test('times are exact, and foreign text moves no cursor', () => {
  expect([0, 500, 1_500, 90_000, 86_400_000 + 1].map(durationText)).toEqual([
    '0s',
    '500ms',
    '1s 500ms',
    '1m 30s',
    '1d 1ms',
  ]);
  expect(plainText('a\u001b[2J\u202eé')).toBe('a\\u{1b}[2J\\u{202e}é');
});
