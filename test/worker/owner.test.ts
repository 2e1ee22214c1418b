/** The owner as a Durable Object in workerd: what survives an eviction, what an alarm does, and what is written when. */
import {
  abortAllDurableObjects,
  evictDurableObject,
  reset,
  runDurableObjectAlarm,
  runInDurableObject,
} from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Limit } from '../../src/core/decision.ts';
import { ask, isAllowed, ownerStub, remaining, tokenBucket } from './calls.ts';

const START_MS = Date.UTC(2026, 5, 1);
const HUNDRED_A_MINUTE = tokenBucket(100, 60_000);
const UNIT_MS = 600;

let nowMs = START_MS;

function passTime(ms: number): void {
  nowMs += ms;
  vi.setSystemTime(nowMs);
}

async function stored(name: string): Promise<ReadonlyMap<string, unknown>> {
  return runInDurableObject(ownerStub(name), (_, state) => state.storage.list());
}

async function evict(name: string): Promise<void> {
  await evictDurableObject(ownerStub(name));
}

beforeEach(() => {
  nowMs = START_MS;
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs });
});

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

describe('many at once', () => {
  it('R01 2,000 concurrent questions on a limit of 100 admit exactly 100', async () => {
    const replies = await Promise.all(Array.from({ length: 2_000 }, () => ask('crowd', HUNDRED_A_MINUTE)));
    expect(replies.filter(isAllowed)).toHaveLength(100);
  });
});

describe('eviction', () => {
  it('spending a little and waiting to be forgotten, a hundred times, gains nothing', async () => {
    // Eight units are back within five seconds, so none of this is ever written; an idle object stays in memory for ten.
    const untilForgottenMs = 10_000;
    let admitted = 0;
    for (let round = 0; round < 100; round += 1) {
      for (let spent = 0; spent < 8; spent += 1)
        if (isAllowed(await ask('sly', HUNDRED_A_MINUTE))) admitted += 1;
      expect((await stored('sly')).size).toBe(0);
      passTime(untilForgottenMs);
      await evict('sly');
      const reply = await ask('sly', HUNDRED_A_MINUTE, 0);
      // One bucket that was never forgotten would be full by now as well.
      expect(remaining(reply)).toBe(100);
    }
    expect(admitted).toBe(800);
  });

  it('spending up to the rate and waiting to be forgotten never beats the ideal bucket', async () => {
    let admitted = 0;
    for (let round = 0; round < 100; round += 1) {
      while (isAllowed(await ask('greedy', HUNDRED_A_MINUTE))) admitted += 1;
      passTime(10_000);
      await evict('greedy');
    }
    const ideal = 100 + Math.floor((nowMs - START_MS - 10_000) / UNIT_MS);
    expect(admitted).toBe(ideal);
  });

  it('storage wins over whatever memory said', async () => {
    await ask('poisoned', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('poisoned'), async (_, state) => {
      const block = (await state.storage.get('block:0')) as { counters: { state: number }[] };
      block.counters[0]!.state += 30 * UNIT_MS * 1_000;
      await state.storage.put('block:0', block);
    });
    expect(remaining(await ask('poisoned', HUNDRED_A_MINUTE, 0))).toBe(40);
    await evict('poisoned');
    expect(remaining(await ask('poisoned', HUNDRED_A_MINUTE, 0))).toBe(10);
  });

  it('what cannot be read is as good as nothing, and breaks nothing', async () => {
    await runInDurableObject(ownerStub('alien'), async (_, state) => {
      await state.storage.put({ 'block:0': { format: 99 }, 'block:1': 'nonsense', other: null });
    });
    await evict('alien');
    expect(remaining(await ask('alien', HUNDRED_A_MINUTE, 1))).toBe(99);
  });
});

describe('a debt', () => {
  it('that was charged is not charged again after an eviction, nor after the alarm', async () => {
    const name = 'in-debt';
    const debt = { id: 'd', counterId: 'counter', limit: HUNDRED_A_MINUTE, units: 50 };
    const repeat = async () => remaining(await ask(name, HUNDRED_A_MINUTE, 0, { debts: [debt] }));
    expect(await repeat()).toBe(50);
    await evict(name);
    expect(await repeat()).toBe(50);
    passTime(60_000);
    expect(await runDurableObjectAlarm(ownerStub(name))).toBe(true);
    await evict(name);
    expect(await repeat()).toBe(100);
    passTime(600_000);
    expect(await runDurableObjectAlarm(ownerStub(name))).toBe(true);
    expect((await stored(name)).size).toBe(0);
  });
});

describe('loss', () => {
  /** One second of charges and five seconds of refill, at 100 a minute and `spentPerSecond`. */
  const lossMax = (spentPerSecond: number) => spentPerSecond + Math.ceil(5_000 / UNIT_MS);

  it.each([1, 2, 3, 4, 5])(
    'an abort at any moment loses at most the stated amount (seed %i)',
    async (seed) => {
      let random = seed * 7_919;
      const next = (below: number) => {
        random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0;
        return random % below;
      };
      const name = `crash-${seed}`;
      for (let crash = 0; crash < 10; crash += 1) {
        let before = 0;
        const lives = 1 + next(12);
        let spentInLastSecond = 0;
        for (let second = 0; second < lives; second += 1) {
          spentInLastSecond = next(6);
          for (let spent = 0; spent < spentInLastSecond; spent += 1) await ask(name, HUNDRED_A_MINUTE);
          before = remaining(await ask(name, HUNDRED_A_MINUTE, 0)) ?? 0;
          if (second + 1 < lives) passTime(1_000);
        }
        await abortAllDurableObjects();
        const after = remaining(await ask(name, HUNDRED_A_MINUTE, 0)) ?? 0;
        expect(after - before).toBeLessThanOrEqual(lossMax(spentInLastSecond));
        expect(after).toBeGreaterThanOrEqual(before);
      }
    },
  );
});

describe('the alarm', () => {
  const restMs = 60 * UNIT_MS;

  it('empties storage once the caller is idle', async () => {
    await ask('idle', HUNDRED_A_MINUTE, 60);
    expect((await stored('idle')).size).toBe(1);
    passTime(restMs);
    expect(await runDurableObjectAlarm(ownerStub('idle'))).toBe(true);
    expect((await stored('idle')).size).toBe(0);
    expect(await runInDurableObject(ownerStub('idle'), (_, state) => state.storage.getAlarm())).toBeNull();
  });

  it('F11 too early, or twice, it drops nothing that still counts', async () => {
    await ask('early', HUNDRED_A_MINUTE, 60);
    expect(await runDurableObjectAlarm(ownerStub('early'))).toBe(true);
    expect(await runDurableObjectAlarm(ownerStub('early'))).toBe(true);
    await evict('early');
    expect(remaining(await ask('early', HUNDRED_A_MINUTE, 0))).toBe(40);
  });

  it('late, it finds the caller active again and keeps what it spent since', async () => {
    await ask('late', HUNDRED_A_MINUTE, 60);
    passTime(restMs + 3_600_000);
    await ask('late', HUNDRED_A_MINUTE, 30);
    expect(await runDurableObjectAlarm(ownerStub('late'))).toBe(true);
    await evict('late');
    expect(remaining(await ask('late', HUNDRED_A_MINUTE, 0))).toBe(70);
  });

  it('G05 never, it leaves rows that say nothing, and the next write sets another', async () => {
    await ask('never', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('never'), (_, state) => state.storage.deleteAlarm());
    passTime(restMs + 3_600_000);
    await evict('never');
    expect(remaining(await ask('never', HUNDRED_A_MINUTE, 50))).toBe(50);
    expect(await runDurableObjectAlarm(ownerStub('never'))).toBe(true);
  });

  it('F15 of a caller that is gone for good tolerates an empty object', async () => {
    await ask('gone', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('gone'), (_, state) => state.storage.deleteAll());
    await runInDurableObject(ownerStub('gone'), async (instance) => {
      await instance.alarm?.();
    });
    expect(remaining(await ask('gone', HUNDRED_A_MINUTE, 0))).toBe(40);
  });
});

describe('writes', () => {
  it('G05 G11 a hundred questions within a second cost one write and one alarm', async () => {
    const name = 'thrifty';
    await runInDurableObject(ownerStub(name), (_, state) => {
      vi.spyOn(state.storage, 'put');
      vi.spyOn(state.storage, 'setAlarm');
    });
    for (let asked = 0; asked < 100; asked += 1) await ask(name, tokenBucket(1_000, 3_600_000));
    await runInDurableObject(ownerStub(name), (_, state) => {
      expect(state.storage.put).toHaveBeenCalledTimes(1);
      expect(state.storage.setAlarm).toHaveBeenCalledTimes(1);
    });
  });

  it('are held back for nothing that is at rest within five seconds', async () => {
    await ask('brief', HUNDRED_A_MINUTE, Math.floor(5_000 / UNIT_MS));
    expect((await stored('brief')).size).toBe(0);
    await ask('brief', HUNDRED_A_MINUTE, 1);
    expect((await stored('brief')).size).toBe(1);
  });
});

describe('rules', () => {
  const newer = { version: { activation: 0, builtAtMs: 2 } };

  it('a changed limit keeps the units used, across an eviction too', async () => {
    const before = tokenBucket(10, 3_600_000);
    await ask('changed', before, 10);
    await evict('changed');
    expect(remaining(await ask('changed', tokenBucket(20, 3_600_000), 0, newer))).toBe(10);
  });

  it('an isolate with older rules cannot loosen newer ones, and is told', async () => {
    const loose: Limit = tokenBucket(1_000, 3_600_000);
    await ask('tightened', tokenBucket(10, 3_600_000), 10, newer);
    const reply = await ask('tightened', loose);
    expect(isAllowed(reply)).toBe(false);
    expect(reply.version).toEqual(newer.version);
    expect(reply.answer?.counters[0]?.limit.quota).toBe(10);
  });
});
