/** A region's owner and the owner of the whole as Durable Objects in workerd: what survives an eviction of either, and what is left when nobody asks. */
import { evictDurableObject, reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MESSAGE_FORMAT } from '../../src/engine/messages.ts';
import { ask, isAllowed, type OwnerStub, ownerStub, tokenBucket } from './calls.ts';

/** Ahead of the real clock, by which an alarm goes off: here it does so only when a test says so. */
const START_MS = Date.UTC(2100, 5, 1);
const DAY_MS = 86_400_000;
const QUOTA = 200;
const LIMIT = tokenBucket(QUOTA, DAY_MS);

/** A region gives up what it had borrowed within three seconds, and a lease of one that is gone ends after five. */
const SETTLED_MS = 10_000;

/** Time that passes with each request. */
const PAUSE_MS = 50;

/** Of what was charged a second may be unwritten, and is admitted again. */
const UNWRITTEN_UNITS = 1_000 / PAUSE_MS;

let nowMs = START_MS;
let spent = 0;

/** Of each test its own: an owner of before may have a word left for its root. */
let worlds = 0;
let root: string;
let middle: string;

beforeEach(() => {
  nowMs = START_MS;
  spent = 0;
  worlds += 1;
  root = `own/world-${worlds}`;
  middle = `region/weur/${root}`;
  vi.useFakeTimers({ toFake: ['Date'], now: nowMs });
});

afterEach(async () => {
  vi.useRealTimers();
  await reset();
});

/** What an owner has, as an operator sees it: nothing is charged, and nobody counts as asking. */
async function look(name: string): Promise<number> {
  const reply = await (ownerStub(name) as unknown as OwnerStub).call({
    format: MESSAGE_FORMAT,
    holder: 'operator',
    version: { activation: 0, builtAtMs: 1 },
    inspect: [{ id: 'counter', limit: LIMIT }],
  });
  return reply.inspected?.[0]?.remaining ?? Number.NaN;
}

/** The owners tell each other what there is to tell whenever they are called; here they are often. */
async function passTime(ms: number): Promise<void> {
  for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
    nowMs += PAUSE_MS;
    vi.setSystemTime(nowMs);
    await look(middle);
    await look(root);
  }
}

async function spend(units: number): Promise<void> {
  for (let asked = 0; asked < units; asked += 1) {
    if (isAllowed(await ask(middle, LIMIT))) spent += 1;
    await passTime(PAUSE_MS);
  }
}

const stored = (name: string) => runInDurableObject(ownerStub(name), (_, state) => state.storage.list());

/** An eviction at rest; one that has a word for the other on its mind is not at rest. */
const evict = (name: string) => evictDurableObject(ownerStub(name));

/** As a deploy or a move to another machine ends it, in the middle of what it does. */
async function restart(name: string): Promise<void> {
  await runInDurableObject(ownerStub(name), (_, state) => state.storage.sync());
  await runInDurableObject(ownerStub(name), (_, state) => state.abort()).catch(() => {});
}

const WHICH = [
  ['of the region’s owner', () => [middle]],
  ['of the owner of the whole', () => [root]],
  ['of both', () => [middle, root]],
] as const;

describe('an eviction', () => {
  it.each(WHICH)(
    '%s at rest, again and again, loses nothing and counts nothing twice',
    async (_, evicted) => {
      for (let life = 0; life < 8; life += 1) {
        await spend(1 + 3 * life);
        await passTime(SETTLED_MS);
        for (const name of evicted()) await evict(name);
        expect([life, await look(root)]).toEqual([life, QUOTA - spent]);
      }
      expect(spent).toBe(92);
    },
  );
});

describe('a restart', () => {
  it('of the region’s owner, in the middle of what it does, leaves one quota, all of which can be spent', async () => {
    await spend(60);
    await restart(middle);
    await spend(2 * QUOTA);
    expect(spent).toBeGreaterThanOrEqual(QUOTA);
    expect(spent).toBeLessThanOrEqual(QUOTA + UNWRITTEN_UNITS);
    await passTime(SETTLED_MS);
    expect(await look(root)).toBe(0);
  });
});

describe('storage', () => {
  it('of a region and of the whole is empty once nobody has asked for long', async () => {
    await spend(30);
    await passTime(SETTLED_MS);
    expect([(await stored(middle)).size, (await stored(root)).size]).toEqual([1, 1]);
    nowMs += DAY_MS;
    vi.setSystemTime(nowMs);
    for (const name of [middle, root]) {
      expect([name, await runDurableObjectAlarm(ownerStub(name))]).toEqual([name, true]);
      expect([name, (await stored(name)).size]).toEqual([name, 0]);
      expect(await runInDurableObject(ownerStub(name), (_, state) => state.storage.getAlarm())).toBeNull();
    }
    expect(await look(root)).toBe(QUOTA);
  });
});
