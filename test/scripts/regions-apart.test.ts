/** What lies between regions under `serve`: who waits how long, and what is lost. */
import { beforeEach, describe, expect, it } from 'vitest';
import { RegionsApart } from '../../scripts/workers/regions-apart.ts';

const LATENCY_MS = 150;
const ROOT = 'own/acme';
const middle = (region: string) => `region/${region}/${ROOT}`;

let waitedMs: number;
let answered: number;
let regions: RegionsApart;

beforeEach(() => {
  waitedMs = 0;
  answered = 0;
  regions = new RegionsApart({
    latencyMs: LATENCY_MS,
    async wait(ms) {
      waitedMs += ms;
    },
  });
});

const call = (region: string, root = ROOT) =>
  regions.call(middle(region), root, async () => {
    answered += 1;
    return 'reply';
  });

describe('latency', () => {
  it('lies between a root in the region that called it first and all others', async () => {
    expect(await call('weur')).toBe('reply');
    expect(waitedMs).toBe(0);
    expect(await call('apac')).toBe('reply');
    expect(waitedMs).toBe(LATENCY_MS);
    await call('weur');
    expect(waitedMs).toBe(LATENCY_MS);
  });

  it('is each root’s own', async () => {
    await call('weur');
    await call('apac', 'own/other');
    expect(waitedMs).toBe(0);
    await call('weur', 'own/other');
    expect(waitedMs).toBe(LATENCY_MS);
  });
});

describe('a region that is cut off', () => {
  beforeEach(() => call('weur'));

  it('loses its own calls to elsewhere, and those of others to it, and no more', async () => {
    await call('apac', 'own/other');
    answered = 0;
    regions.set('weur', 'cut');
    await expect(call('weur', 'own/other')).rejects.toThrow('lost');
    await expect(call('apac')).rejects.toThrow('lost');
    expect(answered).toBe(0);
    await call('weur');
    await call('oc', 'own/other');
    expect(answered).toBe(2);
  });

  it('is whole again afterwards', async () => {
    regions.set('apac', 'cut');
    await expect(call('apac')).rejects.toThrow('lost');
    regions.set('apac', 'ok');
    expect(await call('apac')).toBe('reply');
  });

  it('does not hear what comes of a call that was on its way, though it has taken effect', async () => {
    const lost = regions.call(middle('apac'), ROOT, async () => {
      answered += 1;
      regions.set('apac', 'cut');
    });
    await expect(lost).rejects.toThrow('lost');
    expect(answered).toBe(2);
  });
});
