/**
 * Whatever the network does to questions and answers, in the end every owner has charged what was admitted: no unit twice, none never.
 *
 * Windows of a month, so that nothing comes back meanwhile and every unit can be counted. The network misbehaves for a few seconds and then
 * heals; peeks carry what is left to say.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { answerLost, answers, deliveredTwice, type Fate, fails, healthy, questionLost } from './network.ts';
import { DAY_MS, winner } from './rules.ts';
import { type TimedVerdict, World } from './world.ts';

const delayMs = fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 100, max: 2_500 }));

const fate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ thereMs: delayMs, backMs: delayMs }).map(answers) },
  { weight: 1, arbitrary: fc.constant(questionLost()) },
  { weight: 1, arbitrary: delayMs.map(answerLost) },
  {
    weight: 1,
    arbitrary: fc.record({ thereMs: delayMs, againMs: delayMs, backMs: delayMs }).map(deliveredTwice),
  },
  {
    weight: 2,
    arbitrary: fc
      .record({ afterMs: delayMs, isDone: fc.boolean(), retryable: fc.boolean(), overloaded: fc.boolean() })
      .map(fails),
  },
);

const request = fc.record({
  isolate: fc.nat({ max: 1 }),
  rules: fc.subarray([0, 1, 2, 3], { minLength: 1 }),
  cost: fc.integer({ min: 1, max: 3 }),
  waitMs: fc.integer({ min: 0, max: 300 }),
});

const month = { windowMs: 30 * DAY_MS, algorithm: 'fixed_window' } as const;
const RULES = [
  winner({ policy: 'user', owner: 'user', quota: 40, ...month }),
  winner({ policy: 'route', owner: 'user', quota: 60, ...month }),
  winner({ policy: 'organisation', owner: 'organisation', quota: 1_000, ...month }),
  winner({ policy: 'closed', owner: 'closed', quota: 50, failureMode: 'closed', ...month }),
];

async function heal(world: World, isolates: readonly ReturnType<World['isolate']>[]): Promise<void> {
  world.network = healthy;
  for (let time = 0; time < 30; time += 1) {
    for (const isolate of isolates) for (const rule of RULES) void isolate.send([rule], { cost: 0 });
    await world.time.advance(100);
  }
  await world.time.runOut();
}

test('property: units charged at owners are the units of admitted requests', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fate, { minLength: 1, maxLength: 20 }),
      fc.array(request, { minLength: 1, maxLength: 25 }),
      async (fates, requests) => {
        const world = new World();
        world.network = () => fates[world.calls.length % fates.length]!;
        const isolates = [world.isolate(), world.isolate()];
        const sent: Promise<TimedVerdict>[] = [];
        for (const { isolate, rules, cost, waitMs } of requests) {
          await world.time.advance(waitMs);
          sent.push(
            isolates[isolate]!.send(
              rules.map((rule) => RULES[rule]!),
              { cost },
            ),
          );
        }
        const verdicts = await world.time.settle(Promise.all(sent));
        await heal(world, isolates);
        const units = RULES.map(() => 0);
        for (const [at, { outcome }] of verdicts.entries()) {
          if (outcome !== 'allowed') continue;
          for (const rule of requests[at]!.rules) units[rule]! += requests[at]!.cost;
        }
        expect(RULES.map((rule) => world.used(rule))).toEqual(units);
        expect([world.problems, world.counted('debt_lost'), world.counted('give_back_lost')]).toEqual([
          [],
          0,
          0,
        ]);
        for (const { tookMs } of verdicts) expect(tookMs).toBeLessThanOrEqual(1_000);
      },
    ),
    { numRuns: 120 },
  );
});
