/**
 * The commands of the control plane against a real server, one story after the other: what a chapter leaves behind, the next may use.
 */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ServeChild, startServe } from '../../scripts/serve/child.ts';
import { freePorts } from '../../scripts/serve/ports.ts';
import { Operator, type Relay, type RunOptions, startRelay } from './admin-commands.ts';

/** A start bundles the Worker and takes seconds, and each command starts a Node; a busy machine may take several times that. */
const MS_MAX = 60_000;

/** What isolates take up in the background is there long before this. */
const SOON = { timeout: 15_000, interval: 50 };

const TOKEN = 'token-canary-5d1f';
const CANARY = 'key_canary_77e2';
const canary = (name: string | number) => `${CANARY}_${name}`;
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex');

const folder = mkdtempSync(join(tmpdir(), 'edge-limiter-admin-'));
const fileOf = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

const rules = (quota: number) => `domain: demo-api
identity:
  keys:
    - { key: ${canary('listed')}, tier: gold }
    - { key: ${canary('ruled')}, tier: silver }
  default: { tier: anonymous }
descriptors:
  - key: tier
    rate_limit: { unit: hour, requests_per_unit: ${quota} }
  - key: api_key
    value: ${canary('ruled')}
    rate_limit: { unit: hour, requests_per_unit: 7 }
`;
const first = fileOf('first.yaml', rules(41));
const second = fileOf('second.yaml', rules(42));
const unknownDomain = fileOf(
  'warn.yaml',
  `${rules(5).replace('demo-api', 'a/b c')}attributes: { tenant: { header: x-tenant } }\n`,
);
const bad = fileOf(
  'bad.yaml',
  `${rules(1)}  - key: ""\n    rate_limit: { unit: fortnight, requests_per_unit: 1 }\n`,
);

let server: ServeChild;
let url: string;
/** Stands between the commands and the server, and sees what leaves the operator's machine. */
let wire: Relay;
let operator: Operator;
const limiter = (args: string, options?: RunOptions) => operator.run(args.split(' '), options);

beforeAll(async () => {
  const port = await freePorts(1);
  server = await startServe('--port', String(port), '--admin-token', TOKEN, '--quiet');
  url = `http://127.0.0.1:${port}`;
  // Dozens of commands start: what one has compiled the next may use.
  const NODE_COMPILE_CACHE = join(folder, 'compiled');
  wire = await startRelay(url, () => false);
  operator = new Operator({ LIMITER_URL: wire.url, LIMITER_ADMIN_TOKEN: TOKEN, NODE_COMPILE_CACHE });
}, MS_MAX);

afterAll(async () => {
  wire?.close();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

/** The status and the quotas of a request that shows this key. */
async function ask(key: string): Promise<string> {
  const response = await fetch(`${url}/v1/items`, {
    headers: { authorization: `Bearer ${key}`, 'cf-connecting-ip': '192.0.2.1' },
  });
  return `${response.status} ${response.headers.get('ratelimit-policy')}`;
}

/** What the server itself says that it has. */
async function held(path: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/_limiter/v1/${path}`, {
    headers: { authorization: `Bearer ${TOKEN}` },
  });
  return (await response.json()) as Record<string, unknown>;
}

describe('rules', { timeout: MS_MAX }, () => {
  it('with a mistake go nowhere, and each mistake has its line', async () => {
    const { code, stderr } = await limiter(`publish ${bad} --message m`);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /bad\.yaml:13:5 descriptors\[2\]\.key: .*\n.*bad\.yaml:14:19 descriptors\[2\]\.rate_limit\.unit: /,
    );
    expect(await held('rulesets/demo-api')).toMatchObject({ active: null, versions: [] });
  });

  it('are published, and requests meet them', async () => {
    const { code, stdout, stderr } = await operator.run([
      'publish',
      first,
      '--message',
      'one',
      '--author',
      'Zoë ☃',
    ]);
    expect({ code, stdout, stderr }).toEqual({
      code: 0,
      stdout: 'published version 1 of "demo-api", in force (activation 1)\n',
      stderr: '',
    });
    await expect.poll(() => ask('nobody'), SOON).toBe('200 "default";q=41;w=3600');
  });

  it('hold hashes where the file has keys', async () => {
    const { stdout } = await limiter(`publish ${second} --message two --no-activate`);
    expect(stdout).toBe('published version 2 of "demo-api", not in force (npm run limiter -- activate 2)\n');
    const sent = wire.requests.at(-1);
    expect(sent).toContain(hashOf(canary('listed')));
    expect(sent).toContain(`sha256:${hashOf(canary('ruled'))}`);
  });

  it('are listed with who published them', async () => {
    const { stdout } = await limiter('versions');
    expect(stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' | '))).toEqual([
      expect.stringMatching(
        /^version 1 of "demo-api" is in force since \d{4}-\d\d-\d\d .*Z \(publish by Zoe\)$/,
      ),
      '',
      'VERSION | CREATED | AUTHOR | MESSAGE',
      expect.stringMatching(/^2 \| 2.*Z \| .* \| two$/),
      expect.stringMatching(/^1 \| in force \| 2.*Z \| Zoe \| one$/),
      '',
    ]);
  });

  it('are compared: versions with each other, and with a file', async () => {
    const [versions, withFile] = await Promise.all([limiter('diff 1 2'), limiter(`diff active ${first}`)]);
    expect(versions.stdout).toContain('quota 41 -> 42');
    expect(withFile).toMatchObject({ code: 0, stdout: 'nothing changes\n' });
  });

  it('are put in force by their number, and taken back', async () => {
    expect((await limiter('activate 2')).stdout).toBe('version 2 of "demo-api" is in force (activation 2)\n');
    await expect.poll(() => ask('nobody'), SOON).toBe('200 "default";q=42;w=3600');
    expect((await limiter('rollback')).stdout).toBe('version 1 of "demo-api" is in force (activation 3)\n');
    await expect.poll(() => ask('nobody'), SOON).toBe('200 "default";q=41;w=3600');
  });

  it('may be of a domain whose name is no plain word, and warnings have their line', async () => {
    const { code, stderr } = await limiter(`publish ${unknownDomain} --message w --no-activate`);
    expect({ code, stderr }).toEqual({
      code: 0,
      stderr: expect.stringMatching(
        /^\S+warn\.yaml:13:15 attributes\.tenant: warning: comes from the header/,
      ),
    });
    const { stdout } = await operator.run(['versions', '--domain', 'a/b c', '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ active: null, versions: [{ version: 1, message: 'w' }] });
  });

  it('that only the server finds mistaken are told by the lines of the file', async () => {
    const relay = await startRelay(url, (_, response) =>
      refuse(response, {
        status: 422,
        error: 'invalid_rules',
        errors: [
          {
            path: 'descriptors[1].rate_limit',
            at: ['descriptors', 1, 'rate_limit'],
            message: 'is new to me',
          },
          {
            path: 'identity.keys[0].key_sha256',
            at: ['identity', 'keys', 0, 'key_sha256'],
            message: 'is odd',
          },
        ],
      }),
    );
    const { code, stderr } = await limiter(`publish ${first} --message m --url ${relay.url}`);
    relay.close();
    expect(code).toBe(1);
    expect(stderr).toBe(
      `${first}:4:7 identity.keys[0].key_sha256: is odd\n${first}:12:5 descriptors[1].rate_limit: is new to me\n`,
    );
  });
});

function refuse(
  response: ServerResponse,
  { status, ...body }: { status: number; error: string; errors?: readonly object[] },
): true {
  response.writeHead(status, { 'content-type': 'application/problem+json', 'retry-after': '0' });
  response.end(JSON.stringify({ message: `The relay says ${body.error}.`, ...body }));
  return true;
}

describe('a caller', { timeout: MS_MAX }, () => {
  const caller = `--attr api_key=${canary('listed')}`;

  it('is clamped, and let go', async () => {
    await expect.poll(() => ask(canary('listed')), SOON).toMatch(/^200/);
    const clamped = await limiter(`clamp ${caller} --deny --for 10m`);
    expect(clamped.stdout).toMatch(new RegExp(`^api_key_sha256=${hashOf(canary('listed'))}: deny until 2`));
    await expect.poll(() => ask(canary('listed')), SOON).toMatch(/^429/);
    const [clamps, check] = await Promise.all([limiter('clamps'), limiter(`check ${caller} --peek`)]);
    expect(clamps.stdout).toContain(hashOf(canary('listed')));
    expect(check.stdout).toMatch(/^denied \(clamped\), cost 1/);
    expect((await limiter(`unclamp ${caller}`)).code).toBe(0);
    await expect.poll(() => ask(canary('listed')), SOON).toMatch(/^200/);
    expect(await limiter(`unclamp ${caller}`)).toMatchObject({
      code: 1,
      stderr: 'There is no clamp on this caller.\n',
    });
  });

  it('has counters that are charged, looked at and set back', async () => {
    const all = `${caller} --attr route=/anything`;
    expect((await limiter(`check ${all} --cost 9`)).stdout).toMatch(
      /^allowed, cost 9, .*\n {2}policy "default": allowed, /,
    );
    expect((await limiter(`check ${all} --peek --bound`)).stdout).toMatch(
      /\n {2}policy "default": allowed, .*\n {4}\S.* 41 units/,
    );
    const { stdout } = await limiter(`inspect ${all} --json`);
    const { counters } = JSON.parse(stdout) as { counters: { remaining: number }[] };
    expect(counters[0]!.remaining).toBeLessThan(33);
    expect((await limiter(`reset ${all}`)).stdout).toBe('set back 1 counter\n');
    expect((await limiter(`inspect ${all}`)).stdout).toMatch(
      /^policy "default", tier: 41 left\n {2}token_bucket, 41 per 1h, burst 41/,
    );
  });
});

describe('keys', { timeout: MS_MAX }, () => {
  const keysFile = fileOf(
    'keys.jsonl',
    Array.from(
      { length: 3_200 },
      (_, index) => `{"key":"${canary(index)}","tier":"gold","labels":{"plan":"p"}}\n`,
    ).join(''),
  );

  it('are added from stdin, listed and revoked', async () => {
    const added = await limiter(
      'keys add --key - --tier gold --label plan=big --expires 2999-01-01T00:00:00Z',
      {
        stdin: `${canary('stdin')}\n`,
      },
    );
    const line = `${hashOf(canary('stdin'))}: tier=gold label_plan=big, expires 2999-01-01T00:00:00Z`;
    expect(added).toEqual({ code: 0, stderr: '', stdout: `stored ${line}\n` });
    expect(JSON.parse((await limiter('keys list --json')).stdout)).toEqual({
      keySha256: hashOf(canary('stdin')),
      tier: 'gold',
      labels: { plan: 'big' },
      expiresAt: '2999-01-01T00:00:00.000Z',
    });
    const key = `--key-sha256 ${hashOf(canary('stdin'))}`;
    expect((await limiter(`keys revoke ${key}`)).stdout).toBe(`revoked ${hashOf(canary('stdin'))}\n`);
    expect(await limiter(`keys revoke ${key}`)).toMatchObject({ code: 1, stdout: '' });
    expect((await limiter('keys list')).stdout).toBe('no keys\n');
  });

  it('of a file with a mistake are not sent at all', async () => {
    const lines = [
      `{"key":"${canary(1)}","tier":"gold"}`,
      `${canary(2)} no JSON`,
      `{"key":"${canary('with space')} "}`,
      `{"key":"${canary(1)}"}`,
      `{"key":"${canary(3)}","${canary('field')}":"gold"}`,
    ];
    const file = fileOf('bad.jsonl', lines.join('\n'));
    const { code, stderr } = await limiter(`keys import ${file}`);
    expect(code).toBe(1);
    expect(stderr.split('\n')).toEqual([
      `${file}:2: is no JSON`,
      `${file}:3: key: wants 1 to 512 visible ASCII characters without a comma`,
      `${file}:4: is the same key as in line 1`,
      expect.stringContaining(`${file}:5: has a field that no key has; there are key, `),
      '4 lines are wrong. Nothing was sent.',
      '',
    ]);
    const headless = fileOf('headless.csv', `${canary(4)},gold\n`);
    expect((await limiter(`keys import ${headless}`)).stderr).toContain(
      `${headless}:1: is no header: column 1 is none of`,
    );
    expect(await held('keys')).toEqual({ keys: [], next: null });
  });

  it('are imported through a moment of trouble, and a failure says how to go on', async () => {
    // The first batch is taken at the second attempt, the second at once, the third never.
    const relay = await startRelay(url, (turn, response) =>
      turn === 0 || turn > 2 ? refuse(response, { status: turn === 0 ? 503 : 422, error: 'trouble' }) : false,
    );
    const { code, stderr } = await limiter(`keys import ${keysFile} --url ${relay.url}`);
    relay.close();
    expect(code).toBe(1);
    expect(stderr).toContain('The relay says trouble. Trying again in 0s.\n');
    expect(stderr).toContain(
      `2,000 of 3,200 keys are stored. To go on:\n  npm run limiter -- keys import ${keysFile} --url ${relay.url} --from 2001\n`,
    );
    expect(relay.requests[0]).toContain(hashOf(canary(0)));
    expect(relay.requests.join()).not.toContain(CANARY);
    const rest = await limiter(`keys import ${keysFile} --from 2001`);
    expect(rest.stdout).toBe('imported 1,200 keys\n');
    expect(rest.stderr).toMatch(/1,200 of 1,200 keys, 100%, [\d,]+\/s\n$/);
    const lists = await Promise.all([limiter('keys list --json'), limiter('keys list --limit 1500')]);
    expect(lists.map(({ stdout }) => stdout.split('\n').length - 1)).toEqual([3_200, 1_500]);
  });

  it('say how to go on when they are interrupted', async () => {
    let isInterrupted = false;
    // The first batch is refused for long, and while the command waits it is interrupted.
    const relay = await startRelay(url, (_, response) => {
      response.writeHead(429, { 'retry-after': '29' });
      response.end();
      return true;
    });
    const { code, stderr } = await limiter(`keys import ${keysFile} --from 5 --url ${relay.url}`, {
      onStderr(soFar, kill) {
        if (isInterrupted || !soFar.includes('Trying again in 29s')) return;
        isInterrupted = true;
        kill('SIGINT');
      },
    });
    relay.close();
    expect(code).toBe(1);
    expect(stderr).toContain('Interrupted.\n0 of 3,196 keys are stored. To go on:\n');
    expect(stderr).toContain('--from 5\n');
  });

  it('are read from CSV', async () => {
    const file = fileOf(
      'keys.csv',
      `\ufeffkey_sha256,tier,label_plan,disabled\r\n${hashOf('of a table')},"a ""b"", c",p,true\r\n\r\n${hashOf('other')},,,\r\n`,
    );
    expect((await limiter(`keys import ${file}`)).stdout).toBe('imported 2 keys\n');
    expect((await limiter(`keys list --key-sha256 ${hashOf('of a table')}`)).stdout).toBe(
      `${hashOf('of a table')}  tier=a "b", c label_plan=p, disabled\n`,
    );
  });
});

describe('who changed what', { timeout: MS_MAX }, () => {
  it('is in the audit, the newest first', async () => {
    const { stdout } = await limiter('audit --limit 100');
    const actions = stdout.split('\n').map((line) => line.split(/ {2,}/)[3]);
    expect(actions.filter((action) => action !== 'put_keys')).toEqual(
      expect.arrayContaining(['publish', 'activate', 'clamp', 'unclamp', 'revoke_keys']),
    );
    expect(stdout).toMatch(/Zoe +publish +domain=demo-api version=1 message=one/);
  });
});

describe('what cannot be done', { timeout: MS_MAX, concurrent: true }, () => {
  it.each<[string, RunOptions['env'], number, string | RegExp]>([
    [
      'versions',
      { LIMITER_ADMIN_TOKEN: `${TOKEN}x` },
      1,
      /^This path needs .* is not the token of this server\.\n$/,
    ],
    ['versions', { LIMITER_ADMIN_TOKEN: undefined }, 2, 'LIMITER_ADMIN_TOKEN is not set: '],
    ['activate 99', {}, 1, 'There is no version 99 of "demo-api".\n'],
    ['clamp --attr method=GET --deny --for 1h', {}, 1, /\n {2}attributes\.method: cannot be clamped/],
  ])('%s with %j ends with %i and a sentence', async (args, env, code, sentence) => {
    const { stderr, ...ended } = await limiter(args, env && { env });
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(ended).toEqual({ code, stdout: '' });
  });

  it('is told of a place where nobody listens, without what was to be sent', async () => {
    const nowhere = `http://127.0.0.1:${await freePorts(1)}`;
    expect(await limiter(`publish ${first} --message m --url ${nowhere}`)).toEqual({
      code: 1,
      stdout: '',
      stderr: `Cannot reach ${nowhere} (ECONNREFUSED): start the limiter there, or say where it is with --url or LIMITER_URL.\n`,
    });
  });

  it('is told of a server that is no limiter, and of one that redirects', async () => {
    const relay = await startRelay(url, (turn, response) => {
      response.writeHead(turn === 0 ? 200 : 301, { location: 'https://elsewhere.example/' });
      response.end('<html>');
      return true;
    });
    const outcomes = [await limiter(`clamps --url ${relay.url}`), await limiter(`clamps --url ${relay.url}`)];
    relay.close();
    expect(outcomes).toEqual([
      {
        code: 1,
        stdout: '',
        stderr: expect.stringContaining('does not answer as this limiter does (it is no JSON)'),
      },
      {
        code: 1,
        stdout: '',
        stderr: `${relay.url} redirects to https://elsewhere.example/: give that address as --url.\n`,
      },
    ]);
  });
});

describe('the token and the keys', () => {
  it('are in nothing that a command ever wrote', () => {
    expect(operator.said).toContain(hashOf(canary('listed')));
    expect(operator.said).not.toContain(TOKEN);
    expect(operator.said).not.toContain(CANARY);
  });

  it('stay here: no key was ever sent', () => {
    const sent = wire.requests.join('\n');
    for (const name of ['listed', 'ruled', 'stdin', 3_199]) expect(sent).toContain(hashOf(canary(name)));
    expect(sent).not.toContain(CANARY);
  });
});
