import { afterEach, describe, expect, test } from 'vitest';
import { Gate } from '../../src/engine/gate.ts';
import type { OwnerReply } from '../../src/engine/messages.ts';
import {
  answerLost,
  answers,
  deliveredTwice,
  down,
  fails,
  healthy,
  type Network,
  questionLost,
  stalled,
} from './network.ts';
import { HOUR_MS, MINUTE_MS, SECOND_MS, winner } from './rules.ts';
import { FIRST_VERSION, World } from './world.ts';

const fixed = (quota: number, more = {}) =>
  winner({ quota, windowMs: HOUR_MS, algorithm: 'fixed_window', ...more });

let worlds: World[] = [];

/** An isolate whose owner has answered once, so that it is known and its deadline is the rule file's. */
async function start({ warm = [fixed(100)], network = healthy as Network } = {}) {
  const world = new World();
  worlds.push(world);
  const isolate = world.isolate();
  for (const rule of warm) await isolate.ask([rule]);
  world.network = network;
  return { world, isolate };
}

afterEach(() => {
  expect(worlds.flatMap(({ problems }) => problems)).toEqual([]);
  worlds = [];
});

/** What callers hear when a call breaks, and what must come of it in time. */
const failures: { name: string; reply: () => Promise<OwnerReply> }[] = [
  { name: 'a rejection', reply: () => Promise.reject(new Error('broken')) },
  { name: 'a rejection of nothing', reply: () => Promise.reject(undefined) },
  {
    name: 'a throw before the call is made',
    reply: () => {
      throw new TypeError('no such binding');
    },
  },
  { name: 'no reply', reply: () => Promise.resolve(undefined as unknown as OwnerReply) },
  { name: 'a reply that is text', reply: () => Promise.resolve('<html>' as unknown as OwnerReply) },
  { name: 'a reply without a format', reply: () => Promise.resolve({} as OwnerReply) },
  { name: 'a reply of a format to come', reply: () => Promise.resolve({ format: 3 } as OwnerReply) },
  { name: 'a reply without an answer', reply: () => Promise.resolve({ format: 1 } as OwnerReply) },
  {
    name: 'an answer that is none',
    reply: () => Promise.resolve({ format: 1, answer: 'yes' } as unknown as OwnerReply),
  },
  {
    name: 'an answer about no counter',
    reply: () =>
      Promise.resolve({ format: 1, answer: { outcome: 'allowed', counters: [] } } as unknown as OwnerReply),
  },
  {
    name: 'an answer with an odd counter',
    reply: () =>
      Promise.resolve({
        format: 1,
        answer: { outcome: 'allowed', counters: [null] },
      } as unknown as OwnerReply),
  },
];

describe('F01, F03 whatever an owner does, the request is settled once, in time, by the rule', () => {
  test.each(failures)('$name', async ({ reply }) => {
    const world = new World();
    worlds.push(world);
    const gate = new Gate({ ...world.ports, callOwner: reply }, { holder: 'h', bucketSlots: 64 });
    for (const failureMode of ['open', 'closed'] as const) {
      const request = {
        version: FIRST_VERSION,
        enforced: [fixed(10, { failureMode, owner: failureMode })],
        shadow: [],
        cost: 1,
        largestCost: 1,
        deadlineMs: 150,
      };
      const background: Promise<unknown>[] = [];
      const verdict = await world.time.settle(
        Promise.resolve(gate.decide(request, (work) => background.push(work))),
      );
      expect(verdict).toMatchObject({
        outcome: failureMode === 'open' ? 'allowed' : 'unavailable',
        source: 'fallback',
      });
      expect(world.time.elapsedMs).toBeLessThanOrEqual(1_000);
      await world.time.settle(Promise.all(background));
    }
  });

  test('what a request has begun is kept alive, though its client may go away', async () => {
    const { world, isolate } = await start();
    const request = isolate.send([fixed(5)]);
    expect(isolate.unfinished).toBe(1);
    await world.time.settle(request);
    expect(isolate.unfinished).toBe(0);
  });

  test('F07 a gate that is made and never asked does nothing at all', async () => {
    const world = new World({ network: down });
    world.isolate();
    await world.time.runOut();
    expect(world.calls).toEqual([]);
  });
});

describe('deadlines', () => {
  test("an isolate's first call to an owner has a second", async () => {
    const { isolate } = await start({ warm: [], network: () => answers({ thereMs: 990 }) });
    expect(await isolate.ask([fixed(5)])).toMatchObject({ source: 'owner', tookMs: 991 });
    const { isolate: other } = await start({ warm: [], network: stalled });
    expect(await other.ask([fixed(5)])).toMatchObject({ source: 'fallback', tookMs: 1_000 });
    expect(await other.ask([fixed(5)])).toMatchObject({ source: 'fallback', tookMs: 150 });
  });

  test("later ones have the rule file's deadline", async () => {
    const { isolate } = await start({ network: stalled });
    expect(await isolate.ask([fixed(5)])).toMatchObject({ source: 'fallback', tookMs: 150 });
  });

  test('an answer in time leaves no timer behind', async () => {
    const { world } = await start();
    expect(world.time.pending).toBe(0);
  });

  test('stretched to three times what the owner usually takes', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 99 }) });
    await isolate.ask([fixed(5)]);
    world.network = stalled;
    expect((await isolate.ask([fixed(5)])).tookMs).toBe(300);
  });

  test('but never beyond a second', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 600 }) });
    await isolate.ask([fixed(5)]);
    world.network = stalled;
    expect((await isolate.ask([fixed(5)])).tookMs).toBe(1_000);
  });

  test('a late answer teaches what is usual', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => answers({ thereMs: number === 1 ? 399 : 1 }),
    });
    expect((await isolate.ask([fixed(5)])).source).toBe('fallback');
    await world.time.runOut();
    world.network = stalled;
    // The give-back that followed took 2 ms again.
    const usualMs = 0.8 * (2 + 0.2 * 398) + 0.2 * 2;
    expect((await isolate.ask([fixed(5)])).tookMs).toBeCloseTo(3 * usualMs, 3);
  });

  test('one that came after more than a second does not: that was an outage', async () => {
    const { world, isolate } = await start({ network: () => answers({ thereMs: 5_000 }) });
    await isolate.ask([fixed(5)]);
    await world.time.runOut();
    world.network = stalled;
    expect((await isolate.ask([fixed(5)])).tookMs).toBe(150);
  });

  test('a clock that steps, either way, changes no wait', async () => {
    for (const stepMs of [-HOUR_MS, HOUR_MS]) {
      const { world, isolate } = await start({ network: stalled });
      const request = isolate.send([fixed(5)]);
      await world.time.advance(50);
      world.stepIsolateClock(stepMs);
      expect((await world.time.settle(request)).tookMs).toBe(150);
    }
  });
});

describe('failures that the platform marks', () => {
  test('a lost connection is tried once more, at once, and charged once', async () => {
    const { world, isolate } = await start();
    world.network = ({ number }) =>
      number === 1 ? fails({ retryable: true, isDone: true, afterMs: 5 }) : answers();
    expect(await isolate.ask([fixed(100)])).toMatchObject({ source: 'owner', tookMs: 7 });
    await world.time.runOut();
    expect(world.used(fixed(100))).toBe(2);
    expect(world.calls).toHaveLength(3);
  });

  test('and not a third time', async () => {
    const { world, isolate } = await start({ network: () => fails({ retryable: true }) });
    expect((await isolate.ask([fixed(100)])).source).toBe('fallback');
    expect(world.calls).toHaveLength(3);
  });

  test('an overloaded owner is not tried again, and left alone at once', async () => {
    const { world, isolate } = await start({ network: () => fails({ overloaded: true, retryable: true }) });
    expect((await isolate.ask([fixed(100)])).source).toBe('fallback');
    expect(await isolate.ask([fixed(100)])).toMatchObject({ source: 'fallback', tookMs: 0 });
    expect(world.calls).toHaveLength(2);
    expect(world.logs).toEqual([{ event: 'breaker_opened', owner: 'anne' }]);
  });

  test('any other failure is not tried again', async () => {
    const { world, isolate } = await start({ network: down });
    await isolate.ask([fixed(100)]);
    expect(world.calls).toHaveLength(2);
  });
});

describe('answers that come late, twice or out of order', () => {
  const rule = fixed(100);

  test('late: the fallback decided, the debt stands and the charge goes back: one unit', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => answers({ thereMs: number === 1 ? 400 : 1 }),
    });
    expect((await isolate.ask([rule])).source).toBe('fallback');
    await world.time.runOut();
    expect(world.used(rule)).toBe(2);
    expect([isolate.unfinished, world.counted('debt_reported'), world.counted('give_back')]).toEqual([
      0, 1, 1,
    ]);
  });

  test('lost on the way there: the debt is told with the next call', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => (number === 1 ? questionLost() : answers()),
    });
    await isolate.ask([rule]);
    expect((await isolate.ask([rule])).policies[0]?.level?.remaining).toBe(97);
    expect(world.used(rule)).toBe(3);
  });

  test('lost on the way back: the charge is void with the next call, which brings the debt', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => (number === 1 ? answerLost() : answers()),
    });
    await isolate.ask([rule]);
    await isolate.ask([rule]);
    await world.time.runOut();
    expect(world.used(rule)).toBe(3);
  });

  test('a call that broke after it was done: the same', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => (number === 1 ? fails({ isDone: true, afterMs: 20 }) : answers()),
    });
    await isolate.ask([rule]);
    await isolate.ask([rule]);
    await world.time.runOut();
    expect(world.used(rule)).toBe(3);
  });

  test('overtaken by a later one: it says nothing of what is left any more', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => answers({ backMs: number === 1 ? 100 : 1 }),
    });
    const overtaken = isolate.send([rule]);
    await world.time.advance(10);
    await isolate.ask([rule], { cost: 60 });
    await world.time.settle(overtaken);
    world.network = down;
    const { policies } = await isolate.ask([rule]);
    expect(policies[0]).toMatchObject({ source: 'fallback' });
    expect(policies[0]?.level?.remaining).toBeLessThan(40);
  });

  test('twice: charged once', async () => {
    const { world, isolate } = await start({ network: () => deliveredTwice() });
    expect(await isolate.ask([rule])).toMatchObject({ source: 'owner', tookMs: 21 });
    expect(world.used(rule)).toBe(2);
  });

  test('the question overtaken by the word that it is void: charged nothing', async () => {
    const { world, isolate } = await start({
      network: ({ number }) => answers({ thereMs: number === 1 ? 3_000 : 1 }),
    });
    await isolate.ask([rule]);
    await isolate.ask([rule]);
    await world.time.runOut();
    expect(world.used(rule)).toBe(3);
  });

  test('out of order: each request gets its own answer', async () => {
    const { world } = await start();
    const two = fixed(2);
    const other = world.isolate();
    world.network = ({ number }) => answers({ backMs: number === 1 ? 100 : 1 });
    const first = other.send([two]);
    const second = other.send([two]);
    const verdicts = await world.time.settle(Promise.all([first, second]));
    expect(verdicts.map(({ outcome }) => outcome).sort()).toEqual(['allowed', 'denied']);
  });

  test('a late denial does not deny what comes after it', async () => {
    const bucket = winner({ quota: 2, windowMs: SECOND_MS });
    const { world, isolate } = await start({ warm: [bucket] });
    const other = world.isolate();
    await other.ask([bucket]);
    world.network = ({ number }) => answers({ thereMs: 1, backMs: number === 2 ? 900 : 1 });
    expect((await isolate.ask([bucket])).source).toBe('fallback');
    await world.time.advance(900);
    expect((await isolate.ask([bucket])).source).toBe('owner');
  });
});

describe('failure mode', () => {
  const open = fixed(100, { policy: 'open' });
  const closed = fixed(100, { policy: 'closed', failureMode: 'closed' });

  test('closed: unavailable, and nothing is charged anywhere', async () => {
    const { world, isolate } = await start({ warm: [closed], network: stalled });
    expect(await isolate.ask([closed])).toMatchObject({ outcome: 'unavailable', retryAfterMs: 1_000 });
    world.network = healthy;
    await isolate.ask([closed]);
    await world.time.runOut();
    expect(world.used(closed)).toBe(2);
  });

  test('one closed rule of several is enough, wherever it is', async () => {
    const elsewhere = fixed(100, { policy: 'closed', owner: 'berta', failureMode: 'closed' });
    const { world, isolate } = await start({ warm: [open, elsewhere] });
    world.network = ({ owner }) => (owner === 'berta' ? questionLost() : answers());
    expect((await isolate.ask([open, elsewhere])).outcome).toBe('unavailable');
    await world.time.runOut();
    expect(world.used(open)).toBe(1);
    expect((await isolate.ask([open])).outcome).toBe('allowed');
  });

  test('a closed rule whose owner answers does not close the door on an open one that does not', async () => {
    const elsewhere = fixed(100, { policy: 'closed', owner: 'berta', failureMode: 'closed' });
    const { world, isolate } = await start({ warm: [open, elsewhere] });
    world.network = ({ owner }) => (owner === 'berta' ? answers() : questionLost());
    expect(await isolate.ask([open, elsewhere])).toMatchObject({ outcome: 'allowed', source: 'fallback' });
  });

  test('a denial of one owner outranks the silence of another, and nothing is owed for it', async () => {
    const empty = fixed(1, { policy: 'empty', owner: 'berta' });
    const { world, isolate } = await start({ warm: [open, empty] });
    const other = world.isolate();
    await other.ask([open]);
    world.network = ({ owner }) => (owner === 'berta' ? answers() : questionLost());
    expect((await other.ask([open, empty])).outcome).toBe('denied');
    world.network = healthy;
    await world.time.advance(SECOND_MS);
    await isolate.ask([open]);
    await world.time.runOut();
    expect([world.used(open), world.used(empty)]).toEqual([3, 1]);
  });

  test('also when the silence came first', async () => {
    const empty = fixed(1, { policy: 'empty', owner: 'berta' });
    const { world, isolate } = await start({ warm: [open, empty] });
    const other = world.isolate();
    await other.ask([open]);
    world.network = ({ owner }) => (owner === 'berta' ? answers({ thereMs: 20 }) : fails());
    expect((await other.ask([open, empty])).outcome).toBe('denied');
    world.network = healthy;
    await other.ask([open]);
    await isolate.ask([open]);
    expect([world.used(open), world.counted('debt_reported')]).toEqual([4, 0]);
  });

  test('two silent owners: what one bucket took goes back when the other denies', async () => {
    const wide = fixed(100, { policy: 'wide', owner: 'wide', blindShare: 1 });
    const none = fixed(2, { policy: 'none', owner: 'none' });
    const { world, isolate } = await start({ warm: [wide, none], network: stalled });
    for (let at = 0; at < 20; at += 1) {
      expect((await isolate.ask([wide, none])).outcome).toBe('denied');
    }
    expect((await isolate.ask([wide])).policies[0]?.level?.remaining).toBe(98);
    world.network = healthy;
    await world.time.advance(MINUTE_MS);
    expect((await isolate.ask([wide])).source).toBe('fallback');
    await world.time.advance(SECOND_MS);
    expect((await isolate.ask([wide])).source).toBe('owner');
    expect(world.used(wide)).toBe(4);
  });
});

describe('places: at most 64 questions about a counter at once', () => {
  const many = (count: number, send: () => Promise<{ source: string; tookMs: number; outcome: string }>) =>
    Promise.all(Array.from({ length: count }, send));

  test('the others wait for a free one', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 50, backMs: 50 }) });
    const rule = fixed(1_000);
    const all = many(150, () => isolate.send([rule]));
    await world.time.advance(10);
    expect(world.calls).toHaveLength(64);
    const verdicts = await world.time.settle(all);
    expect(verdicts.every(({ source }) => source === 'owner')).toBe(true);
    expect(Math.max(...verdicts.map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(310);
  });

  test('or are settled by a denial that one of the first brought home', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 50, backMs: 50 }) });
    const verdicts = await world.time.settle(many(500, () => isolate.send([fixed(10)])));
    const bySource = (source: string) => verdicts.filter((verdict) => verdict.source === source).length;
    expect([bySource('owner'), bySource('deny_memory')]).toEqual([64, 436]);
    expect(verdicts.filter(({ outcome }) => outcome === 'allowed')).toHaveLength(10);
  });

  test('or by their deadline', async () => {
    const { world, isolate } = await start({ network: stalled });
    const verdicts = await world.time.settle(many(100, () => isolate.send([fixed(100)])));
    expect(verdicts.every(({ source }) => source === 'fallback')).toBe(true);
    expect(Math.max(...verdicts.map(({ tookMs }) => tookMs))).toBeLessThanOrEqual(150);
    expect(world.calls).toHaveLength(65);
  });

  test('counters are counted apart', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 50 }) });
    const all = Promise.all([
      many(70, () => isolate.send([fixed(1_000, { caller: 'a' })])),
      many(70, () => isolate.send([fixed(1_000, { caller: 'b' })])),
    ]);
    await world.time.advance(1);
    expect(world.calls).toHaveLength(128);
    await world.time.settle(all);
  });

  test('a counter that several groups of counters have in common is counted once for all of them', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 50 }) });
    const shared = fixed(1_000, { policy: 'shared' });
    const routes = ['a', 'b', 'c'].map((policy) => [fixed(1_000, { policy }), shared]);
    const all = Promise.all(routes.map((enforced) => many(60, () => isolate.send(enforced))));
    await world.time.advance(1);
    expect(world.calls).toHaveLength(64);
    await world.time.settle(all);
  });

  test('running out of what a wait for a place has left says nothing against the owner', async () => {
    const { world, isolate } = await start({ warm: [], network: () => answers({ thereMs: 99 }) });
    const rule = fixed(100_000);
    await isolate.ask([rule]);
    await world.time.settle(many(600, () => isolate.send([rule])));
    expect(world.logs).toEqual([]);
    expect((await isolate.ask([rule])).source).toBe('owner');
  });
});
