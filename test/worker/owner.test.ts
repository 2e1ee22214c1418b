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

/** Ahead of the real clock, by which an alarm goes off: here it does so only when a test says so. */
const START_MS = Date.UTC(2100, 5, 1);
const HUNDRED_A_MINUTE = tokenBucket(100, 60_000);
const UNIT_MS = 600;

/** Timers that run outside of the object may not touch its storage. What they wrote is on disk when this is over. */
async function passTime(name: string, ms: number): Promise<void> {
  await runInDurableObject(ownerStub(name), async (_, { storage }) => {
    vi.advanceTimersByTime(ms);
    await storage.sync();
  });
}

async function stored(name: string): Promise<ReadonlyMap<string, unknown>> {
  return runInDurableObject(ownerStub(name), (_, state) => state.storage.list());
}

async function alarmMs(name: string): Promise<number | null> {
  return runInDurableObject(ownerStub(name), (_, state) => state.storage.getAlarm());
}

/** The timers of an object go with it. The time, which would be set back as well, is not. */
function dropTimers(): void {
  const nowMs = Date.now();
  vi.clearAllTimers();
  vi.setSystemTime(nowMs);
}

async function evict(name: string): Promise<void> {
  await evictDurableObject(ownerStub(name));
  dropTimers();
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'], now: START_MS });
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
      await passTime('sly', untilForgottenMs);
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
      await passTime('greedy', 10_000);
      await evict('greedy');
    }
    const ideal = 100 + Math.floor((Date.now() - START_MS - 10_000) / UNIT_MS);
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
    await passTime(name, 60_000);
    expect(await runDurableObjectAlarm(ownerStub(name))).toBe(true);
    await evict(name);
    expect(await repeat()).toBe(100);
    await passTime(name, 600_000);
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
          if (second + 1 < lives) await passTime(name, 1_000);
        }
        await abortAllDurableObjects();
        dropTimers();
        const after = remaining(await ask(name, HUNDRED_A_MINUTE, 0)) ?? 0;
        expect(after - before).toBeLessThanOrEqual(lossMax(spentInLastSecond));
        expect(after).toBeGreaterThanOrEqual(before);
      }
    },
  );
});

describe('the alarm', () => {
  const restMs = 60 * UNIT_MS;

  it('F11 is set for the moment at which all is at rest', async () => {
    await ask('spender', HUNDRED_A_MINUTE, 60);
    expect(await alarmMs('spender')).toBe(START_MS + restMs);
    await ask('spender', HUNDRED_A_MINUTE, 20);
    await passTime('spender', restMs);
    expect(await runDurableObjectAlarm(ownerStub('spender'))).toBe(true);
    expect(await alarmMs('spender')).toBe(START_MS + restMs + 20 * UNIT_MS);
  });

  it('empties storage once the caller is idle', async () => {
    await ask('idle', HUNDRED_A_MINUTE, 60);
    expect((await stored('idle')).size).toBe(1);
    await passTime('idle', restMs);
    expect(await runDurableObjectAlarm(ownerStub('idle'))).toBe(true);
    expect((await stored('idle')).size).toBe(0);
    expect(await alarmMs('idle')).toBeNull();
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
    await passTime('late', restMs + 3_600_000);
    await ask('late', HUNDRED_A_MINUTE, 30);
    expect(await runDurableObjectAlarm(ownerStub('late'))).toBe(true);
    await evict('late');
    expect(remaining(await ask('late', HUNDRED_A_MINUTE, 0))).toBe(70);
  });

  it('G05 never, it leaves rows that say nothing, and the next write sets another', async () => {
    await ask('never', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('never'), (_, state) => state.storage.deleteAlarm());
    await passTime('never', restMs + 3_600_000);
    await evict('never');
    expect(remaining(await ask('never', HUNDRED_A_MINUTE, 50))).toBe(50);
    expect(await runDurableObjectAlarm(ownerStub('never'))).toBe(true);
  });

  it('F15 of a caller that is gone for good finds no rows, and does no harm', async () => {
    await ask('gone', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('gone'), async (_, state) => {
      await state.storage.deleteAll();
      await state.storage.setAlarm(START_MS + restMs);
    });
    await evict('gone');
    expect(await runDurableObjectAlarm(ownerStub('gone'))).toBe(true);
    expect([(await stored('gone')).size, await alarmMs('gone')]).toEqual([0, null]);
    expect(remaining(await ask('gone', HUNDRED_A_MINUTE, 1))).toBe(99);
  });

  it('that finds no rows while its caller is still known forgets nothing of it', async () => {
    await ask('known', HUNDRED_A_MINUTE, 60);
    await runInDurableObject(ownerStub('known'), async (instance, { storage }) => {
      await storage.deleteAll();
      await instance.alarm?.();
    });
    expect(remaining(await ask('known', HUNDRED_A_MINUTE, 0))).toBe(40);
  });
});

describe('writes', () => {
  const thousandAnHour = tokenBucket(1_000, 3_600_000);

  function spiesOn(name: string) {
    return runInDurableObject(ownerStub(name), (_, { storage }) => ({
      put: vi.spyOn(storage, 'put'),
      delete: vi.spyOn(storage, 'delete'),
      setAlarm: vi.spyOn(storage, 'setAlarm'),
    }));
  }

  it('G05 G11 a hundred questions within a second cost one write and one alarm, and one write a second later', async () => {
    const name = 'thrifty';
    const { put, setAlarm } = await spiesOn(name);
    for (let asked = 0; asked < 100; asked += 1) await ask(name, thousandAnHour);
    const timesCalled = () => [put.mock.calls.length, setAlarm.mock.calls.length];
    expect(timesCalled()).toEqual([1, 1]);
    await runInDurableObject(ownerStub(name), () => {
      vi.advanceTimersByTime(999);
      expect(timesCalled()).toEqual([1, 1]);
      vi.advanceTimersByTime(1);
      expect(timesCalled()).toEqual([2, 1]);
    });
    await evict(name);
    expect(remaining(await ask(name, thousandAnHour, 0))).toBe(900);
  });

  it('G11 however many they are, the alarm is set once, and not again by an owner that is made anew', async () => {
    const name = 'steady';
    const spies = await spiesOn(name);
    for (let second = 0; second < 10; second += 1) {
      await ask(name, thousandAnHour, 10);
      await passTime(name, 1_000);
    }
    expect(spies.put).toHaveBeenCalledTimes(10);
    expect(spies.setAlarm).toHaveBeenCalledTimes(1);
    await evict(name);
    const later = await spiesOn(name);
    await ask(name, thousandAnHour, 10);
    expect(later.put).toHaveBeenCalledTimes(1);
    expect(later.setAlarm).not.toHaveBeenCalled();
  });

  it('hold no reply back until they are confirmed', async () => {
    const name = 'hasty';
    const spies = await spiesOn(name);
    await ask(name, HUNDRED_A_MINUTE, 60);
    await ask(name, HUNDRED_A_MINUTE, 1);
    // The timer is late: what it was to write says nothing any more, so the row goes.
    vi.setSystemTime(START_MS + 60_000);
    await ask(name, HUNDRED_A_MINUTE, 0);
    for (const spy of Object.values(spies))
      expect(spy.mock.calls.map((given) => given.at(-1))).toEqual([{ allowUnconfirmed: true }]);
    expect((await stored(name)).size).toBe(0);
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
