/** Costs that are known only afterwards: what was estimated too high comes back, what was estimated too low is charged, once. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Winner } from '../../src/policy/counter.ts';
import {
  answerLost,
  answers,
  deliveredTwice,
  down,
  type Fate,
  fails,
  healthy,
  questionLost,
} from './network.ts';
import { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { CLOCKS, HOUR_JUMPS, type Isolate, World } from './world.ts';

/** As long as a word waits for others, and its way. */
const TOLD_MS = 300;

/** A day's window, so that nothing comes back meanwhile and every unit can be counted. */
const counter = (more: Partial<WinnerOptions> = {}) =>
  winner({ quota: 100, algorithm: 'fixed_window', windowMs: DAY_MS, ...more });

/** A request of an estimated cost, which then turns out to cost something else. */
async function estimated(isolate: Isolate, winners: readonly Winner[], estimate: number, units: number) {
  const verdict = await isolate.ask(winners, { cost: estimate, isEstimate: true });
  verdict.stay?.settle(units);
  return verdict;
}

describe('decided by an owner', () => {
  const rule = counter();

  test.each([
    ['less', 10, 4],
    ['nothing', 10, 0],
    ['as much', 10, 10],
    ['more', 10, 60],
    ['all there is', 10, 100],
  ])('what costs %s than its estimate is charged what it costs', async (_, estimate, units) => {
    const world = new World();
    const isolate = world.isolate();
    await estimated(isolate, [rule], estimate, units);
    await world.time.advance(TOLD_MS);
    expect(world.used(rule)).toBe(units);
    expect(world.calls.length).toBe(units === estimate ? 1 : 2);
    await world.time.runOut();
    expect([isolate.unfinished, world.problems]).toEqual([0, []]);
  });

  test('only the first word counts', async () => {
    const world = new World();
    const verdict = await estimated(world.isolate(), [rule], 10, 4);
    verdict.stay?.settle(10);
    verdict.stay?.settle(90);
    await world.time.runOut();
    expect(world.used(rule)).toBe(4);
  });

  test('X07 a request that crosses the limit is admitted, and the next is denied, for a quota of debt at most', async () => {
    const world = new World();
    const isolate = world.isolate();
    const fifteen = counter({ quota: 15 });
    expect((await estimated(isolate, [fifteen], 1, 40)).outcome).toBe('allowed');
    const next = await isolate.ask([fifteen]);
    expect([next.outcome, world.used(fifteen)]).toEqual(['denied', 30]);
    const bucket = winner({ quota: 15, policy: 'bucket' });
    await estimated(isolate, [bucket], 1, 40);
    const { outcome, retryAfterMs } = await isolate.ask([bucket]);
    // A quota of debt, and the unit that it asks for: 16 units at 4 s each.
    expect([outcome, Math.ceil(retryAfterMs / SECOND_MS)]).toEqual(['denied', 64]);
  });

  test('the next question of the isolate knows of it, and no request waits', async () => {
    const world = new World();
    const isolate = world.isolate();
    const { tookMs } = await estimated(isolate, [rule], 1, 100);
    expect((await isolate.ask([rule])).outcome).toBe('denied');
    expect([tookMs, world.calls.length]).toEqual([2, 2]);
  });

  test('a denial that is remembered is forgotten when units come back', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdict = await isolate.ask([rule], { cost: 100, isEstimate: true });
    expect((await isolate.ask([rule])).outcome).toBe('denied');
    verdict.stay?.settle(10);
    expect((await isolate.ask([rule])).outcome).toBe('allowed');
  });

  test('all its counters are corrected, and a shadow counter only if it was charged', async () => {
    const world = new World();
    const other = counter({ policy: 'other', quota: 1_000 });
    const charged = counter({ policy: 'charged', shadow: true });
    const denying = counter({ policy: 'denying', shadow: true, quota: 5 });
    const shadow = [charged, denying];
    const verdict = await world.isolate().ask([rule, other], { shadow, cost: 10, isEstimate: true });
    verdict.stay?.settle(30);
    await world.time.advance(TOLD_MS);
    expect([rule, other, charged, denying].map((each) => world.used(each))).toEqual([30, 30, 30, 0]);
  });

  test('slots are no units', async () => {
    const world = new World();
    const slots = winner({ quota: 5, algorithm: 'concurrency', windowMs: MINUTE_MS, policy: 'slots' });
    await estimated(world.isolate(), [slots, rule], 10, 30);
    await world.time.advance(TOLD_MS);
    expect([world.used(slots), world.used(rule)]).toEqual([1, 30]);
  });

  test('I09 what comes back goes to the window that was charged', async () => {
    const world = new World();
    const isolate = world.isolate();
    const minute = counter({ windowMs: MINUTE_MS });
    await world.time.advance(MINUTE_MS - SECOND_MS);
    const first = await isolate.ask([minute], { cost: 50, isEstimate: true });
    await world.time.advance(2 * SECOND_MS);
    await isolate.ask([minute], { cost: 20 });
    first.stay?.settle(10);
    await world.time.advance(TOLD_MS);
    expect(world.used(minute)).toBe(20);
  });

  test('a sliding log takes back what was charged at that time', async () => {
    const world = new World();
    const isolate = world.isolate();
    const log = winner({ quota: 100, algorithm: 'sliding_log', windowMs: MINUTE_MS });
    const first = await isolate.ask([log], { cost: 50, isEstimate: true });
    await world.time.advance(30 * SECOND_MS);
    await isolate.ask([log], { cost: 20 });
    first.stay?.settle(10);
    await world.time.advance(TOLD_MS);
    expect(world.used(log)).toBe(30);
    await world.time.advance(31 * SECOND_MS);
    expect(world.used(log)).toBe(20);
  });

  test('it is told until the owner has heard, and done once, over an eviction too', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdict = await isolate.ask([rule], { cost: 10, isEstimate: true });
    world.network = () => answerLost();
    verdict.stay?.settle(30);
    await world.time.advance(5 * SECOND_MS);
    expect(world.used(rule)).toBe(30);
    world.owner().restart();
    world.network = () => deliveredTwice();
    await world.time.runOut();
    expect([world.used(rule), world.counted('correction_made'), world.counted('correction_lost')]).toEqual([
      30, 1, 0,
    ]);
  });

  test('what can be told to nobody for five minutes is counted', async () => {
    const world = new World();
    const isolate = world.isolate();
    const verdict = await isolate.ask([rule], { cost: 10, isEstimate: true });
    world.network = down;
    verdict.stay?.settle(30);
    await world.time.advance(5 * MINUTE_MS);
    expect([world.counted('correction_lost'), isolate.unfinished]).toEqual([0, 0]);
    world.network = healthy;
    await world.time.advance(1);
    await isolate.ask([rule], { cost: 0 });
    await isolate.ask([rule], { cost: 0 });
    expect([world.used(rule), world.counted('correction_lost')]).toEqual([10, 1]);
  });
});

/** How many units are left to whoever comes now. */
async function left(isolate: Isolate, rule: Winner): Promise<number> {
  let count = 0;
  while (count < 10_000 && (await isolate.ask([rule])).outcome === 'allowed') count += 1;
  return count;
}

const WARM_UP = 100;

/** A request that a lease admits, in an isolate that has been asked often enough to be lent room for it. */
async function leased(rule: Winner) {
  const world = new World();
  const isolate = world.isolate();
  for (let request = 0; request < WARM_UP; request += 1) {
    await isolate.ask([rule], { largestCost: 10 });
    await world.time.advance(5);
  }
  const estimate = { cost: 10, largestCost: 10, isEstimate: true };
  let verdict = await isolate.ask([rule], estimate);
  for (let tries = 0; tries < 10 && verdict.source !== 'lease'; tries += 1)
    verdict = await isolate.ask([rule], estimate);
  expect(verdict.source).toBe('lease');
  return { world, isolate, verdict };
}

describe('spent from a lease', () => {
  const rule = winner({ quota: 600, windowMs: 10 * DAY_MS, consistency: 'leased' });

  async function leftAfter(...words: readonly number[]): Promise<number> {
    const { world, isolate, verdict } = await leased(rule);
    for (const units of words) verdict.stay?.settle(units);
    await world.time.advance(TOLD_MS);
    expect(world.problems).toEqual([]);
    return left(isolate, rule);
  }

  test.each([0, 4, 40, 400])('what costs %i is charged what it costs', async (units) => {
    expect(await leftAfter(units)).toBe((await leftAfter(10)) + 10 - units);
  });

  test.each([
    [4, 10, 90],
    [40, 0],
  ])('only the first word counts: %i', async (first, ...later) => {
    expect(await leftAfter(first, ...later)).toBe(await leftAfter(first));
  });

  test.each([0, 400])('also when the lease has ended meanwhile (%i)', async (units) => {
    const { world, isolate, verdict } = await leased(rule);
    await world.time.advance(10 * SECOND_MS);
    const before = world.used(rule);
    verdict.stay?.settle(units);
    await world.time.advance(TOLD_MS);
    expect(world.used(rule) - before).toBeCloseTo(units - 10, 1);
    await world.time.runOut();
    expect(isolate.unfinished).toBe(0);
  });

  test('a window that has ended gets nothing back', async () => {
    const minute = counter({ quota: 600, windowMs: MINUTE_MS, consistency: 'leased' });
    const leftOfTheNext = async (units: number) => {
      const { world, isolate, verdict } = await leased(minute);
      await world.time.advance(MINUTE_MS);
      await isolate.ask([minute], { cost: 5 });
      verdict.stay?.settle(units);
      await world.time.advance(TOLD_MS);
      return left(isolate, minute);
    };
    expect(await leftOfTheNext(0)).toBe(await leftOfTheNext(10));
  });
});

describe('decided without the owner', () => {
  const rule = counter({ blindShare: 1 });

  test.each([
    ['less', 4],
    ['more', 30],
  ])('what costs %s is owed what it costs', async (_, units) => {
    const world = new World({ network: down });
    const isolate = world.isolate();
    expect((await estimated(isolate, [rule], 10, units)).source).toBe('fallback');
    expect(await left(isolate, rule)).toBe(100 - units);
    world.network = healthy;
    for (let time = 0; time < 30; time += 1) {
      await isolate.ask([rule], { cost: 0 });
      await world.time.advance(100);
    }
    expect(world.used(rule)).toBe(100);
  });

  test('a local rule is charged and given back in the isolate', async () => {
    const world = new World();
    const isolate = world.isolate();
    const local = winner({ quota: 100, windowMs: DAY_MS, scope: 'local' });
    await estimated(isolate, [local], 10, 4);
    await estimated(isolate, [local], 10, 60);
    expect([await left(isolate, local), world.calls.length]).toEqual([36, 0]);
    // A stream that crosses the limit is finished by then; the next request waits for its debt.
    const crossing = winner({ quota: 10, windowMs: 10 * SECOND_MS, scope: 'local', policy: 'crossing' });
    await estimated(isolate, [crossing], 1, 40);
    expect((await isolate.ask([crossing])).retryAfterMs).toBeCloseTo(11 * SECOND_MS, 0);
  });
});

describe.each(CLOCKS)('when the clock of %s jumps an hour', (_, step) => {
  const algorithms = ['token_bucket', 'fixed_window', 'sliding_window', 'sliding_log'] as const;
  const cases = HOUR_JUMPS.flatMap(([way, jumps]) =>
    algorithms.map((algorithm) => ({ way, jumps, algorithm })),
  );

  test.each(cases)(
    '$way: a $algorithm is charged what it cost, and told once',
    async ({ jumps, algorithm }) => {
      // A month: an hour of it gives back less than a unit.
      const rule = counter({ algorithm, windowMs: 30 * DAY_MS });
      const world = new World();
      const isolate = world.isolate();
      await world.time.advance(2 * HOUR_MS);
      for (const units of [4, 40]) {
        const verdict = await isolate.ask([rule], { cost: 10, isEstimate: true });
        for (const ms of jumps) {
          step(world, ms);
          await world.time.advance(SECOND_MS);
        }
        verdict.stay?.settle(units);
        await world.time.advance(TOLD_MS);
      }
      expect(world.used(rule)).toBeCloseTo(44, 0);
      await world.time.runOut();
      expect([
        world.counted('correction_made'),
        world.counted('correction_lost'),
        isolate.unfinished,
      ]).toEqual([2, 0, 0]);
    },
  );
});

const delayMs = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 100, max: 2_500 }));

const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ thereMs: delayMs, backMs: delayMs }).map(answers) },
  { weight: 1, arbitrary: fc.constant(questionLost()) },
  { weight: 1, arbitrary: delayMs.map(answerLost) },
  {
    weight: 1,
    arbitrary: fc.record({ thereMs: delayMs, againMs: delayMs, backMs: delayMs }).map(deliveredTwice),
  },
  {
    weight: 1,
    arbitrary: fc.record({ afterMs: delayMs, isDone: fc.boolean(), retryable: fc.boolean() }).map(fails),
  },
);

const request = fc.record({
  isolate: fc.nat({ max: 1 }),
  estimate: fc.integer({ min: 1, max: 5 }),
  units: fc.integer({ min: 0, max: 9 }),
  waitMs: fc.integer({ min: 0, max: 300 }),
  lastsMs: fc.integer({ min: 0, max: 4_000 }),
});

test('property: whatever the network does, in the end every request was charged what it cost', async () => {
  const rules = [counter({ quota: 10_000 }), counter({ quota: 10_000, policy: 'other', owner: 'other' })];
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { minLength: 1, maxLength: 20 }),
      fc.array(request, { minLength: 1, maxLength: 20 }),
      async (fates, requests) => {
        const world = new World();
        world.network = () => fates[world.calls.length % fates.length]!;
        const isolates = [world.isolate(), world.isolate()];
        let least = 0;
        let most = 0;
        for (const { isolate, estimate, units, waitMs, lastsMs } of requests) {
          await world.time.advance(waitMs);
          const asked = isolates[isolate]!.send(rules, { cost: estimate, isEstimate: true });
          void asked.then(({ outcome, source, stay }) => {
            if (outcome !== 'allowed') return;
            // What a fallback admitted may be charged before it is known to have cost less, and stays so.
            least += units;
            most += source === 'fallback' ? Math.max(units, estimate) : units;
            world.time.after(lastsMs, () => stay?.settle(units));
          });
        }
        await world.time.advance(10 * SECOND_MS);
        world.network = healthy;
        for (let time = 0; time < 30; time += 1) {
          for (const isolate of isolates) void isolate.send(rules, { cost: 0 });
          await world.time.advance(100);
        }
        await world.time.runOut();
        for (const rule of rules) {
          expect(world.used(rule)).toBeGreaterThanOrEqual(least);
          expect(world.used(rule)).toBeLessThanOrEqual(most);
        }
        expect([world.problems, world.counted('correction_lost')]).toEqual([[], 0]);
      },
    ),
    { numRuns: 150 },
  );
}, 60_000);
