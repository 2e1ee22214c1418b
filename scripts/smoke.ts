/**
 * The shortest honest proof that a build works: `serve` as a user starts it, a caller inside and beyond its limit, and an end.
 *
 * Three requests a minute are allowed. The fourth must be a 429 that tells when to come back, and must never reach the origin,
 * whose count shows what did.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from './command.ts';
import { startServe } from './serve/child.ts';
import { freePorts } from './serve/ports.ts';

const RULES = `
domain: smoke
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 3 }
`;

await runCommand(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-smoke-'));
  try {
    const rules = join(folder, 'rules.yaml');
    await writeFile(rules, RULES);
    const port = await freePorts(1);
    const server = await startServe('--port', String(port), '--rules', rules);
    await expectLimit(`http://127.0.0.1:${port}`).finally(async () => {
      assert.equal(await server.stop(), 0, 'serve ends with 0 on SIGTERM');
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  console.log('smoke: serve forwards, denies and stops as it should');
  return 0;
});

async function expectLimit(url: string): Promise<void> {
  const asCaller = (address: string) =>
    fetch(`${url}/v1/items`, { headers: { 'cf-connecting-ip': address } });
  for (const count of ['1', '2', '3']) {
    const response = await asCaller('192.0.2.1');
    assert.equal(response.status, 200, `request ${count} is inside the limit`);
    assert.equal(response.headers.get('x-origin-count'), count, `request ${count} reaches the origin`);
    assert.deepEqual(await response.json(), { method: 'GET', path: '/v1/items', n: Number(count) });
  }
  const denied = await asCaller('192.0.2.1');
  assert.equal(denied.status, 429, 'the fourth is beyond the limit');
  assert.match(denied.headers.get('retry-after') ?? '', /^[1-9]\d*$/, 'a denial says when to come back');
  assert.equal(denied.headers.get('x-origin-count'), null, 'a denied request has no answer of the origin');
  const other = await asCaller('192.0.2.2');
  assert.equal(other.status, 200, 'another caller is not concerned');
  assert.equal(other.headers.get('x-origin-count'), '4', 'the denied request never reached the origin');
}
