/** The hub as a Durable Object in workerd: what survives an eviction or a crash, and when it is written. */
import { abortAllDurableObjects, evictDurableObject, reset, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { WRITE_INTERVAL_MS } from '../../src/objects/metrics-hub.ts';
import { BATCH_FORMAT, type MetricsBatch } from '../../src/telemetry/batch.ts';

interface HubStub {
  report(batch: MetricsBatch): Promise<{ acknowledged: number }>;
  text(): Promise<string>;
}

function stub() {
  return env.METRICS.getByName('metrics');
}

/** Asks anew each time: the object may have been evicted since. */
function hub(): HubStub {
  return stub() as unknown as HubStub;
}

function calls(number: number, amount: number): MetricsBatch {
  const labels = { region: 'weur' };
  return {
    format: BATCH_FORMAT,
    isolate: 'one',
    region: 'weur',
    number,
    counters: [['owner_calls_total', labels, amount]],
    histograms: [],
    gauges: [['open_breakers', labels, 2]],
  };
}

async function sampled(name: string): Promise<number | undefined> {
  const line = new RegExp(`^edge_limiter_${name}\\{region="weur"\\} (\\S+)$`, 'm').exec(await hub().text());
  return line === null ? undefined : Number(line[1]);
}

async function storedKeys(): Promise<string[]> {
  return runInDurableObject(stub(), async (_, state) => [...(await state.storage.list()).keys()]);
}

/** Timers that run outside of the object may not touch its storage. What they wrote is on disk when this is over. */
async function passTime(ms: number): Promise<void> {
  await runInDurableObject(stub(), async (_, state) => {
    vi.advanceTimersByTime(ms);
    await state.storage.sync();
  });
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: Date.UTC(2026, 5, 1) });
});

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

it('adds batches once, and acknowledges each', async () => {
  expect(await hub().report(calls(1, 5))).toEqual({ acknowledged: 1 });
  expect(await hub().report(calls(1, 5))).toEqual({ acknowledged: 1 });
  expect(await hub().report(calls(2, 2))).toEqual({ acknowledged: 2 });
  expect(await sampled('owner_calls_total')).toBe(7);
});

it('acknowledges what it cannot read', async () => {
  expect(await hub().report({ ...calls(4, 1), format: 99 })).toEqual({ acknowledged: 4 });
  expect(await hub().report(undefined as unknown as MetricsBatch)).toEqual({ acknowledged: 0 });
  expect(await hub().text()).toContain(
    'edge_limiter_telemetry_dropped_total{what="malformed",region="hub"} 2\n',
  );
});

it('writes a second after the first of many reports, once, and remembers counts, batches and gauges', async () => {
  const put = await runInDurableObject(stub(), (_, state) => vi.spyOn(state.storage, 'put'));
  for (let number = 1; number <= 20; number += 1) await hub().report(calls(number, 1));
  await passTime(WRITE_INTERVAL_MS - 1);
  expect(put).toHaveBeenCalledTimes(0);
  await passTime(1);
  expect(put).toHaveBeenCalledTimes(1);
  await passTime(10 * WRITE_INTERVAL_MS);
  expect(put).toHaveBeenCalledTimes(1);
  expect(await storedKeys()).toEqual(['hub:000']);
  await evictDurableObject(stub());
  await hub().report(calls(20, 100));
  expect(await sampled('owner_calls_total')).toBe(20);
  expect(await sampled('open_breakers')).toBe(2);
});

it('loses in a crash what was not yet written, and counts it when it is reported again', async () => {
  await hub().report(calls(1, 5));
  await passTime(WRITE_INTERVAL_MS);
  await hub().report(calls(2, 3));
  await abortAllDurableObjects();
  expect(await sampled('owner_calls_total')).toBe(5);
  await hub().report(calls(2, 3));
  expect(await sampled('owner_calls_total')).toBe(8);
});

it('never takes back what a scrape has shown', async () => {
  await hub().report(calls(1, 5));
  expect(await sampled('owner_calls_total')).toBe(5);
  await abortAllDurableObjects();
  expect(await sampled('owner_calls_total')).toBe(5);
});

it('writes nothing for a scrape when nothing was reported since', async () => {
  await hub().report(calls(1, 5));
  await hub().text();
  const put = await runInDurableObject(stub(), (_, state) => vi.spyOn(state.storage, 'put'));
  await hub().text();
  await passTime(10 * WRITE_INTERVAL_MS);
  expect(put).not.toHaveBeenCalled();
});

it('takes as many rows as it needs, and gives back those that it needs no more', async () => {
  const name = 'r'.repeat(100);
  const counters = Array.from(
    { length: 6_000 },
    (_, at) =>
      ['near_limit_total', { domain: 'api', policy: name, rule: `${name}${at}`, region: 'weur' }, 1] as const,
  );
  await hub().report({ ...calls(1, 5), counters: [...calls(1, 5).counters, ...counters] });
  await hub().text();
  expect(await storedKeys()).toEqual(['hub:000', 'hub:001']);
  await evictDurableObject(stub());
  expect(await sampled('owner_calls_total')).toBe(5);
  // Rows that do not fit together leave a hub that starts anew, and is small.
  await runInDurableObject(stub(), (_, state) => state.storage.put('hub:000', '{}'));
  await evictDurableObject(stub());
  await hub().report(calls(1, 4));
  expect(await sampled('owner_calls_total')).toBe(4);
  expect(await storedKeys()).toEqual(['hub:000']);
});

it('starts anew from rows that it cannot read', async () => {
  await runInDurableObject(stub(), (_, state) => state.storage.put({ 'hub:000': 7, other: 'x' }));
  await evictDurableObject(stub());
  await hub().report(calls(1, 4));
  expect(await sampled('owner_calls_total')).toBe(4);
});
