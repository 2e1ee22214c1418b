/** Commands of the control plane that are asked wrongly: they say so before any server is asked. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { checkCommand } from '../../scripts/limiter/admin/check.ts';
import { clampCommand } from '../../scripts/limiter/admin/clamps.ts';
import { keysCommand } from '../../scripts/limiter/admin/keys.ts';
import { publishCommand } from '../../scripts/limiter/admin/publish.ts';
import { publishedDiffCommand } from '../../scripts/limiter/admin/published.ts';
import { activateCommand, versionsCommand } from '../../scripts/limiter/admin/versions.ts';
import { runLimiter } from './rule-commands.ts';

const CANARY = 'key_canary_77e2';

const folder = mkdtempSync(join(tmpdir(), 'edge-limiter-admin-usage-'));
const fileOf = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const rules = fileOf(
  'rules.yaml',
  'domain: d\ndescriptors:\n  - { key: org, rate_limit: { unit: day, requests_per_unit: 1 } }\n',
);
afterAll(() => rmSync(folder, { recursive: true }));

const asked = vi.fn(() => Promise.reject(new TypeError('no server is to be asked')));
beforeEach(() => {
  vi.stubEnv('LIMITER_ADMIN_TOKEN', 'token');
  vi.stubGlobal('fetch', asked);
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
});

type Make = (finish: (exitCode: number) => void) => Command;

describe('a wrong argument', () => {
  it.each<[Make, string, string]>([
    [activateCommand, 'nine', 'a version is a whole number from 1'],
    [activateCommand, '0', 'a version is a whole number from 1'],
    [versionsCommand, '--limit none', '--limit wants a whole number from 1.'],
    [versionsCommand, '--domain é', '--domain wants 1 to 128 characters of printable ASCII.'],
    [
      versionsCommand,
      `--url http://me:${CANARY}@127.0.0.1`,
      '--url (or LIMITER_URL) wants an http:// or https:// URL',
    ],
    [versionsCommand, '--url nonsense', '--url (or LIMITER_URL) wants an http:// or https:// URL'],
    [publishCommand, rules, "required option '--message <text>' not specified"],
    [publishCommand, `${folder}/none.yaml --message m`, 'cannot read '],
    [checkCommand, `--attr ${CANARY}`, '--attr wants key=value.'],
    [checkCommand, `--attr api_key=${CANARY} --attr api_key=${CANARY}`, '--attr names api_key twice.'],
    [checkCommand, '--attr api_key=', '--attr api_key has no value.'],
    [checkCommand, '--attr org=a --cost 1.5', '--cost wants a whole number from 0.'],
    [clampCommand, '--attr org=acme --for 1h', 'clamp wants one of --rpm N, --deny and --unlimited.'],
    [clampCommand, '--attr org=acme --deny --rpm 5 --for 1h', 'clamp wants one of --rpm N, --deny and'],
    [clampCommand, '--attr org=acme --rpm 0 --for 1h', 'wants a whole number from 1.'],
    [clampCommand, '--attr org=acme --deny --for 1w', 'wants a number and a unit: 30s, 5m, 2h or 7d.'],
    [clampCommand, '--deny --for 1h', "required option '--attr <key=value>' not specified"],
    [keysCommand, 'add', 'Name the key: '],
    [keysCommand, `add --key ${CANARY} --key-sha256 ${'a'.repeat(64)}`, 'Name the key: '],
    [keysCommand, `add --key ${CANARY},x`, '--key: wants 1 to 512 visible ASCII characters without a comma'],
    [
      keysCommand,
      `revoke --key-sha256 ${CANARY}`,
      '--key-sha256: wants the 64 hexadecimal digits of a SHA-256',
    ],
    [
      keysCommand,
      `add --key ${CANARY} --expires tomorrow`,
      '--expires: wants a time such as 2027-01-31T00:00:00Z',
    ],
    [keysCommand, `add --key ${CANARY} --label Plan=x`, 'labels.Plan: wants a name of lower-case letters'],
    [keysCommand, `import ${rules} --from 0`, '--from wants a whole number from 1.'],
    [keysCommand, `import ${folder}/none`, 'cannot read '],
    [keysCommand, `import ${fileOf('one.jsonl', '{"key":"k"}\n')} --from 2`, 'one.jsonl has 1 line.'],
  ])('%o %s ends with 2 and a sentence', async (make, args, sentence) => {
    const { stderr, ...ended } = await runLimiter(make, ...args.split(' '));
    expect(stderr).toContain(sentence);
    expect(stderr).not.toContain(CANARY);
    expect(ended).toEqual({ code: 2, stdout: '' });
    expect(asked).not.toHaveBeenCalled();
  });
});

describe('a file of keys with a mistake', () => {
  it.each<[string, string, RegExp]>([
    [
      'a.csv',
      `${CANARY},gold`,
      /a\.csv:1: is no header: column 1 is none of key, keySha256, .*, label_NAME$/m,
    ],
    ['b.csv', 'key,teir', /b\.csv:1: is no header: column 2 .* \(did you mean "tier"\?\)$/m],
    ['c.csv', 'key,tier,tier', /c\.csv:1: names the column tier twice$/m],
    ['d.csv', `key,tier\n${CANARY},"a"b`, /d\.csv:2: has a quotation mark where none can be, in cell 2$/m],
    ['e.csv', `key,tier\n${CANARY},a,b`, /e\.csv:2: has 3 cells; its header has 2$/m],
    ['f.csv', `key,disabled\n${CANARY},yes`, /f\.csv:2: disabled: wants true or false$/m],
    ['g.jsonl', `{"key":"${CANARY}","tier":7}`, /g\.jsonl:1: tier: .*expected string, received number$/m],
    ['h.jsonl', `["${CANARY}"]`, /h\.jsonl:1: .*expected object, received array$/m],
    ['i.jsonl', `\n\n{"key":"${CANARY}"}x`, /i\.jsonl:3: is no JSON$/m],
    [
      'j',
      `{"key":"${CANARY}","keySha256":"sha256:${'a'.repeat(64)}"}`,
      /j:1: wants one of "key" and "keySha256"$/m,
    ],
    [
      'k.jsonl',
      `{"key":"${CANARY}","labels":{"Plan":"x"}}`,
      /k\.jsonl:1: labels\.Plan: wants a name of lower-case/,
    ],
    ['l.jsonl', '\n', /l\.jsonl holds no keys\.$/],
  ])('%s ends with 1, and nothing is sent', async (name, text, sentence) => {
    const { stderr, ...ended } = await runLimiter(keysCommand, 'import', fileOf(name, text));
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toContain(CANARY);
    expect(ended).toEqual({ code: 1, stdout: '' });
    expect(asked).not.toHaveBeenCalled();
  });
});

it.each(['', 'two words', `${CANARY}\n`])('a token of %j is no token', async (token) => {
  vi.stubEnv('LIMITER_ADMIN_TOKEN', token);
  const { stderr, code } = await runLimiter(versionsCommand);
  expect({ stderr, code }).toEqual({
    stderr: expect.stringMatching(/^LIMITER_ADMIN_TOKEN (?:is not|holds a)/),
    code: 2,
  });
  expect(stderr).not.toContain(CANARY);
});

it('two files are compared without a token or a server', async () => {
  vi.stubEnv('LIMITER_ADMIN_TOKEN', undefined);
  expect(await runLimiter(publishedDiffCommand, rules, rules)).toEqual({
    code: 0,
    stdout: 'nothing changes',
    stderr: '',
  });
  expect(asked).not.toHaveBeenCalled();
  expect(await runLimiter(publishedDiffCommand, rules, 'active')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('LIMITER_ADMIN_TOKEN is not set'),
  });
});
