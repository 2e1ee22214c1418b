/** The check API as other Workers call it, on the Worker's own export. */
import { reset } from 'cloudflare:test';
import { exports } from 'cloudflare:workers';
import { afterEach, expect, it } from 'vitest';
import type { CheckAnswer } from '../../src/admin/schemas.ts';

interface LimiterStub {
  check(question: unknown): Promise<CheckAnswer>;
}

const limiter = (exports as unknown as { Limiter: LimiterStub }).Limiter;

afterEach(() => reset());

it('decides on the gateway’s counters', async () => {
  const attributes = { remote_address: '192.0.2.44', path: '/v1/items' };
  const first = await limiter.check({ attributes });
  const second = await limiter.check({ attributes, cost: 2 });
  expect(first).toMatchObject({ allowed: true, policy: 'default', source: 'owner' });
  expect(second.remaining).toBe(first.remaining! - 2);
});

it('tells the worst cases of each policy when asked, and only then', async () => {
  const attributes = { remote_address: '192.0.2.46', path: '/v1/items' };
  const [plain] = (await limiter.check({ attributes, peek: true })).policies;
  expect(plain).not.toHaveProperty('bound');
  const [told] = (await limiter.check({ attributes, peek: true, bound: true })).policies;
  expect(told!.bound!.limit.burstUnits).toBe(told!.limit);
  expect(told!.bound!.sentences.length).toBeGreaterThan(0);
});

it('takes the region that its caller is in', async () => {
  const attributes = { remote_address: '192.0.2.45', path: '/v1/items' };
  expect(await limiter.check({ attributes, region: 'weur' })).toMatchObject({ allowed: true });
});

it.each([
  ['nothing', undefined],
  ['no attributes', {}],
  ['a region that is none', { attributes: {}, region: 'mars' }],
  ['a cost that is none', { attributes: {}, cost: -1 }],
  ['a domain that nobody knows', { domain: 'nowhere', attributes: {} }],
])('says what is wrong with %s', async (_, question) => {
  // Awaited here: what the stub answers is a promise of more kinds than one.
  const said = await limiter.check(question).then(
    () => 'an answer',
    (error: unknown) => error,
  );
  expect(said).toBeInstanceOf(TypeError);
});
