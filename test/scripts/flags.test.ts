import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { run } from './run.ts';

const folder = mkdtempSync(join(tmpdir(), 'edge-limiter-test-'));
const badRules = join(folder, 'bad.yaml');
writeFileSync(badRules, 'domain: bad\ndescriptors:\n  - key: ""\n    nonsense: true\n');
afterAll(() => rmSync(folder, { recursive: true }));

describe('--help', () => {
  it.each([
    ['serve.ts', '--gateways'],
    ['dev.ts', '--rules'],
    ['bench.ts', '--only'],
    ['check.ts', '--fix'],
    ['deploy.ts', '--check'],
  ])('of %s shows its flags and exits 0', async (script, flag) => {
    const { code, stdout } = await run(script, '--help');
    expect(code).toBe(0);
    expect(stdout).toContain(flag);
  });
});

describe('a wrong flag', () => {
  it.each([
    ['serve.ts', ['--port', 'abc'], 'a whole number from 1 to 65535'],
    ['serve.ts', ['--port', '0'], 'a whole number from 1 to 65535'],
    ['serve.ts', ['--port', '65535', '--gateways', '2'], 'port 65536 is beyond 65535'],
    ['serve.ts', ['--port', '8787', '--baseline', '8787'], 'port 8787 is asked for twice'],
    ['serve.ts', ['--beside', 'baseline=8787'], 'port 8787 is asked for twice'],
    ['serve.ts', ['--beside', 'nonsense=8788'], 'NAME=PORT, NAME being baseline, '],
    ['serve.ts', ['--beside', 'baseline'], 'a whole number from 1 to 65535'],
    ['serve.ts', ['--gateways', '0'], 'a whole number from 1 to 64'],
    ['serve.ts', ['--region-latency', '-1'], 'a whole number of milliseconds from 0 to 10000'],
    ['serve.ts', ['--region-latency', '10001'], 'a whole number of milliseconds from 0 to 10000'],
    ['serve.ts', ['--region-latency', '1.5'], 'a whole number of milliseconds from 0 to 10000'],
    ['serve.ts', ['--origin', 'ftp://example.com'], 'an http:// or https:// URL'],
    ['serve.ts', ['--nonsense'], "unknown option '--nonsense'"],
    ['serve.ts', ['stray'], 'too many arguments'],
    ['serve.ts', ['--state', badRules], 'is not a folder'],
    ['serve.ts', ['--state', join(badRules, 'below')], `${badRules} is not a folder`],
    ['serve.ts', ['--state', ''], '--state needs the name of a folder'],
    ['serve.ts', ['--state', '/proc/none/below'], 'cannot be made: ENOENT'],
    ['serve.ts', ['--record', folder], `cannot write to ${folder}`],
    ['serve.ts', ['--rules', join(folder, 'missing.yaml')], 'cannot read the rule file'],
    ['dev.ts', ['--rules', join(folder, 'missing.yaml')], 'cannot read the rule file'],
    ['dev.ts', ['--port', '-1'], 'a whole number from 1 to 65535'],
    ['bench.ts', ['--only', 'nonsense'], 'there is no measurement nonsense'],
    ['bench.ts', ['--json', join(folder, 'none', 'out.json')], `there is no folder ${join(folder, 'none')}`],
    ['sim.ts', ['--json', folder], `--json ${folder} is a folder`],
  ])('of %s %j is a sentence on stderr, and exit 2', async (script, flags, sentence) => {
    const { code, stdout, stderr } = await run(script, ...flags);
    expect(stderr).toContain(sentence);
    expect(stderr).not.toMatch(/^\s+at /m);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });
});

describe('an invalid rule file', () => {
  it('is refused with every mistake in it and its place', async () => {
    const { code, stderr } = await run('serve.ts', '--rules', badRules);
    expect(code).toBe(2);
    expect(stderr).toContain(`${badRules}:3:`);
    expect(stderr).toContain(`${badRules}:4:`);
  });
});

describe('a port in use', () => {
  let holder: Server;
  let port: number;

  beforeAll(async () => {
    holder = createServer();
    await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
    const address = holder.address();
    port = typeof address === 'object' && address !== null ? address.port : 0;
  });
  afterAll(() => holder.close());

  it.each([['--port'], ['--baseline'], ['--fields-baseline'], ['--faults']])(
    'for %s of serve exits 2',
    async (flag) => {
      const { code, stderr } = await run('serve.ts', flag, String(port));
      expect(stderr).toContain(`port ${port} is in use`);
      expect(code).toBe(2);
    },
  );
});
