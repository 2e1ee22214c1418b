/** The rules that come with the repository, where no owner answers: what must not go on unseen is refused, the rest goes on. */
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import file from '../../rules/default.yaml?raw';
import { GatewayWorld } from './gateway-world.ts';

const silent = {
  getByName: () => ({ call: () => Promise.reject(new Error('no owner answers')) }),
} as unknown as DurableObjectNamespace;

const worldOf = () => new GatewayWorld(parse(file), { bindings: { OWNER: silent } });

describe('rules/default.yaml while no owner answers', () => {
  it.each([['/login'], ['/payments/charge']])('refuses POST %s, and says when to come back', async (path) => {
    const world = worldOf();
    const response = await world.send(path, { method: 'POST', body: '{}' });
    expect([response.status, response.headers.get('Retry-After')]).toEqual([503, '1']);
    expect(await response.json()).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      status: 503,
      error: 'limiter_unavailable',
      retry_after: 1,
    });
    expect(world.seen).toEqual([]);
  });

  it.each([['/login'], ['/v1/search']])('lets GET %s go on to the origin', async (path) => {
    const response = await worldOf().send(path);
    expect([response.status, await response.text()]).toEqual([200, 'from the origin']);
  });
});
