/** What a terminal and a script see of the rule commands: the lines and the exit codes. */
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compileRuleFile } from '../../scripts/compile-rules.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const DEFAULT = 'rules/default.yaml';
const BROKEN = 'test/policy/fixtures/several-mistakes.yaml';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rules-'));
});
afterAll(() => rm(folder, { recursive: true }));

interface Run {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

function limiter(...args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [join(ROOT, 'scripts', 'limiter.ts'), ...args], { cwd: ROOT });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (chunk) => {
      stdout += chunk;
    });
    child.stderr.on('data', (chunk) => {
      stderr += chunk;
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

describe('limiter validate', () => {
  test('a valid file ends with 0', async () => {
    expect(await limiter('validate', DEFAULT)).toMatchObject({ code: 0, stderr: '' });
  });

  test('warnings are told and do not fail', async () => {
    const run = await limiter('validate', 'rules/examples/shadow-rollout.yaml');
    expect(run.code).toBe(0);
    expect(run.stderr).toMatch(
      /^rules\/examples\/shadow-rollout\.yaml:\d+:\d+ attributes\.client: warning: /,
    );
  });

  test('an invalid file beside a valid one ends with 1, every error on a line of its own', async () => {
    const { code, stdout, stderr } = await limiter('validate', BROKEN, DEFAULT);
    expect(code).toBe(1);
    expect(stdout).toContain(`${DEFAULT}: valid`);
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(8);
    for (const line of lines)
      expect(line).toMatch(/^test\/policy\/fixtures\/several-mistakes\.yaml:\d+:\d+ \S+: \S/);
  });

  test('a file that cannot be read ends with 2, and the others are judged all the same', async () => {
    const { code, stdout, stderr } = await limiter(
      'validate',
      'no/such.yaml',
      DEFAULT,
      BROKEN,
      'nor/that.yaml',
    );
    expect(code).toBe(2);
    expect(stdout).toContain(`${DEFAULT}: valid`);
    const lines = stderr.trimEnd().split('\n');
    expect(lines).toHaveLength(8 + 2);
    expect(lines.at(-2)).toMatch(/^cannot read no\/such\.yaml: /);
    expect(lines.at(-1)).toMatch(/^cannot read nor\/that\.yaml: /);
  });
});

test.each([
  [['validate', 'no/such/file.yaml'], /^cannot read no\/such\/file\.yaml: /],
  [['validate'], /missing required argument/],
  [['validate', '--strict', DEFAULT], /unknown option '--strict'/],
  [['explain', 'no/such/file.yaml'], /^cannot read/],
  [['explain', DEFAULT, '--attr', 'tier'], /wants key=value/],
  [['explain', DEFAULT, '--attr', 'tier=a', '--attr', 'tier=b'], /names tier twice/],
  [['explain', DEFAULT, '--attr', 'colour=red'], /no request has this attribute/],
  [['explain', DEFAULT, '--attr', 'path=/a', '--attr', 'route=/b'], /give one of them/],
  [['explain', DEFAULT, '--cost', '-1'], /wants a whole number/],
  [['explain', DEFAULT, '--cost', '1.5'], /wants a whole number/],
  [['explain', DEFAULT, '--region', 'mars'], /wants one of wnam, enam/],
  [['explain', DEFAULT, '--regions', '0'], /wants a whole number from 1 to 9/],
  [['explain', DEFAULT, '--regions', '10'], /wants a whole number from 1 to 9/],
  [['explain', DEFAULT, '--isolates', '0'], /wants a whole number from 1/],
  [['no-such-command'], /unknown command/],
])('limiter %j ends with 2 and a sentence', async (args, sentence) => {
  const { code, stdout, stderr } = await limiter(...args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(sentence);
  expect(stderr).not.toMatch(/^ {4}at /m);
});

test.each([[['--help']], [['validate', '--help']], [['explain', '--help']]])('limiter %j', async (args) => {
  const { code, stdout } = await limiter(...args);
  expect(code).toBe(0);
  expect(stdout).toContain('Usage: limiter');
});

describe('limiter explain', () => {
  test('resolves a key as the gateway would, and never prints it', async () => {
    const attributes = [
      '--attr',
      'api_key=demo_free_key',
      '--attr',
      'path=//v1/%73earch/?q=1',
      '--attr',
      'method=HEAD',
    ];
    const { code, stdout } = await limiter('explain', DEFAULT, ...attributes, '--json');
    expect(code).toBe(0);
    expect(stdout).not.toContain('demo_free_key');
    const explanation = JSON.parse(stdout);
    expect(explanation).toMatchObject({ route: '/v1/search', cost: 1, unmatched: false });
    expect(explanation.policies.map(({ policy, title }: Record<string, unknown>) => [policy, title])).toEqual(
      [
        ['default', 'tier=free > route=/v1/search: 30 per 1m, burst 10'],
        ['daily', 'tier=free > route=/v1/search: 5000 per 1d'],
        ['flood', 'remote_address: 6000 per 1m, burst 1000'],
      ],
    );
    expect(explanation.policies[0].beaten).toEqual([
      expect.objectContaining({ title: 'tier=free: 100 per 1m', because: 'is deeper' }),
    ]);
    expect(explanation.policies[0].counted.pairs).toEqual([
      ['api_key', expect.stringMatching(/^[0-9a-f]{64}$/)],
    ]);
  });

  test('a key that is not in the directory leaves the caller to its address', async () => {
    const asked = ['explain', DEFAULT, '--attr', 'api_key=made_up', '--cost', '3'];
    const { cost, policies } = JSON.parse((await limiter(...asked, '--json')).stdout);
    expect(cost).toBe(3);
    expect(policies).toMatchObject([
      {
        policy: 'default',
        title: 'tier=anonymous: 30 per 1m',
        counted: { pairs: [['remote_address', '203.0.113.1']] },
      },
      { policy: 'flood', counted: { pairs: [['remote_address', '203.0.113.1']] } },
    ]);
    expect((await limiter(...asked)).stdout).toContain('cost 3');
  });

  test('prices what each winner could admit above its limit, and shadow rules not at all', async () => {
    const asked = ['--attr', 'api_key=demo_free_key', '--isolates', '2', '--blind-isolates', '0'];
    const { stdout } = await limiter('explain', DEFAULT, ...asked);
    expect(stdout).toMatch(
      /^ {4}owner silent, with 2 isolates that it told their shares: at most \d+ units/m,
    );
    const { policies, topology } = JSON.parse((await limiter('explain', DEFAULT, ...asked, '--json')).stdout);
    expect(topology).toMatchObject({ isolates: 2, blindIsolates: 0 });
    for (const { shadow, bound } of policies) expect(bound !== undefined).toBe(!shadow);
    expect(policies[0].bound.fallback.rateFactor).toBe(1.2);
  });

  test.each([
    [['--region', 'weur'], 'weur', 'weur', '180 per 1m'],
    [['--region', 'oc'], 'apac', 'apac', '120 per 1m'],
    [[], 'wnam', 'enam', '300 per 1m'],
  ])(
    '%j tells what is counted in %s, and what the whole or the part is',
    async (flags, region, part, numbers) => {
      const asked = ['rules/examples/regional.yaml', '--attr', 'api_key=acme_1', '--attr', 'path=/v1/render'];
      const { stdout } = await limiter('explain', ...asked, ...flags);
      expect(stdout).toContain(`, from ${region}\n`);
      expect(stdout).toMatch(
        new RegExp(`^  held by: owner region/${region}/own/\\S+\n  which borrows from: owner own/`, 'm'),
      );
      expect(stdout).toMatch(
        new RegExp(
          `^  held by: owner part/${part}/own/\\S+\n  with the part of ${part} for itself: ${numbers}$`,
          'm',
        ),
      );
    },
  );

  test.each([
    [[], 4],
    [['--regions', '9'], 9],
    [['--regions', '1'], 1],
  ])('%j: worst cases of rules of regions are for %i of them', async (flags, regions) => {
    const asked = ['rules/examples/regional.yaml', '--attr', 'api_key=acme_1', '--attr', 'path=/v1/render'];
    const { stdout } = await limiter('explain', ...asked, ...flags);
    expect(stdout).toMatch(
      new RegExp(`^ {4}${regions} regions? at a cold start: ${regions}000 units above`, 'm'),
    );
    expect(stdout).toMatch(/^ {4}each region has its own part, and nothing is shared/m);
    expect(stdout).toMatch(
      /^ {2}default, borrowed by a region in at most 1\.4 calls a second: .* of owner own\//m,
    );
    const { policies, topology } = JSON.parse(
      (await limiter('explain', ...asked, ...flags, '--json')).stdout,
    );
    expect(topology.regions).toBe(regions);
    // Of 600 a minute the part of eastern North America is half.
    expect(policies).toMatchObject([
      { bound: { regional: { regions } } },
      { bound: { limit: { burstUnits: 300 } } },
      {},
    ]);
  });

  test('prices a million requests at each owner, and says so where no owner is asked', async () => {
    const { stdout } = await limiter(
      'explain',
      DEFAULT,
      '--attr',
      'api_key=demo_free_key',
      '--attr',
      'path=/v1/search',
    );
    expect(stdout).toMatch(
      /^ {2}default, daily, asked for each: about \$1\.32: 1,000,000 calls, 1,000,000 rows and 107,870 s of owner own\/\S+$/m,
    );
    const local = join(folder, 'local.yaml');
    await writeFile(
      local,
      'domain: d\ndescriptors:\n  - key: remote_address\n    rate_limit: { unit: second, requests_per_unit: 5, scope: local }\n',
    );
    expect((await limiter('explain', local)).stdout).toContain('price: no owner is asked');
    const tooDear = await limiter('explain', DEFAULT, '--attr', 'api_key=demo_free_key', '--cost', '100000');
    expect(tooDear.stdout).toContain('price: no such request is ever admitted');
  });

  test('an invalid file ends with 1', async () => {
    expect((await limiter('explain', BROKEN)).code).toBe(1);
  });
});

describe('compileRuleFile', () => {
  test('gives the ruleset, or the errors with their places', async () => {
    expect(await compileRuleFile(join(ROOT, DEFAULT))).toHaveProperty('ruleset.domain', 'demo-api');
    const broken = join(folder, 'broken.yaml');
    await writeFile(broken, 'domain: d\n');
    expect(await compileRuleFile(broken)).toEqual({
      errors: [`${broken}:1:1 descriptors: is required: a list`],
    });
  });

  test('rejects when there is no such file', async () => {
    await expect(compileRuleFile(join(folder, 'absent.yaml'))).rejects.toThrow('ENOENT');
  });
});

describe('compile-rules', () => {
  const compileTo = async (output: string, rules: string): Promise<number | null> => {
    const child = spawn(process.execPath, [join(ROOT, 'scripts', 'compile-rules.ts'), '--out', output], {
      env: { ...process.env, RULES_FILE: rules },
    });
    return new Promise((resolve) => child.on('close', resolve));
  };

  test('writes once, and again only when the rules have changed', async () => {
    const output = join(folder, 'generated', 'ruleset.json');
    const rules = join(folder, 'rules.yaml');
    const text = await readFile(join(ROOT, DEFAULT), 'utf8');
    await writeFile(rules, text);
    expect(await compileTo(output, rules)).toBe(0);
    const first = await readFile(output, 'utf8');
    const { ino, mtimeMs } = await stat(output);

    expect(await compileTo(output, rules)).toBe(0);
    expect(await stat(output)).toMatchObject({ ino, mtimeMs });

    await writeFile(rules, text.replace('requests_per_unit: 100 ', 'requests_per_unit: 101 '));
    expect(await compileTo(output, rules)).toBe(0);
    expect(await readFile(output, 'utf8')).not.toBe(first);

    await writeFile(rules, 'domain: [');
    const before = await readFile(output, 'utf8');
    expect(await compileTo(output, rules)).toBe(1);
    expect(await readFile(output, 'utf8')).toBe(before);
  });
});
