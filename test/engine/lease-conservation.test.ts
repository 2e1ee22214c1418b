/**
 * Whatever a few isolates do, and whatever becomes of their messages, together they admit no more than one bucket would, give or take a
 * round trip; an owner that is evicted, or out of reach, adds what is stated for that and no more.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Limit } from '../../src/core/decision.ts';
import { answerLost, answers, deliveredTwice, type Fate, questionLost } from './network.ts';
import { MINUTE_MS, SECOND_MS, winner } from './rules.ts';
import { World } from './world.ts';

const ISOLATES = 3;
const ROUND_TRIP_MS = 60;

interface Admitted {
  readonly atMs: number;
  readonly units: number;
}

/** The most that was admitted beyond one ideal bucket in any interval. */
function excessOf(admitted: readonly Admitted[], { quota, windowMs, burst }: Limit): number {
  let [level, atMs, excess] = [burst, 0, 0];
  for (const { units, atMs: nowMs } of admitted) {
    level = Math.min(burst, level + ((nowMs - atMs) * quota) / windowMs) - units;
    atMs = nowMs;
    excess = Math.max(excess, -level);
    // What went beyond it is not to be counted again.
    level = Math.max(level, -excess);
  }
  return excess;
}

const delayMs = fc.integer({ min: 1, max: ROUND_TRIP_MS / 2 });
const healthyFate: fc.Arbitrary<Fate> = fc.record({ thereMs: delayMs, backMs: delayMs }).map(answers);
const anyFate: fc.Arbitrary<Fate> = fc.oneof(
  { weight: 6, arbitrary: healthyFate },
  { weight: 1, arbitrary: fc.constant(questionLost()) },
  { weight: 1, arbitrary: delayMs.map(answerLost) },
  {
    weight: 1,
    arbitrary: fc.record({ thereMs: delayMs, againMs: delayMs, backMs: delayMs }).map(deliveredTwice),
  },
);

const script = fc.array(
  fc.record({
    isolate: fc.nat({ max: ISOLATES - 1 }),
    requests: fc.integer({ min: 1, max: 40 }),
    cost: fc.constantFrom(1, 1, 1, 2, 5),
    everyMs: fc.constantFrom(0, 1, 5, 20),
    thenMs: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 50 }), fc.integer({ min: 50, max: 1_500 })),
  }),
  { minLength: 5, maxLength: 30, size: 'max' },
);

const LIMITS = [
  { quota: 200, windowMs: SECOND_MS, burst: 200 },
  { quota: 200, windowMs: SECOND_MS, burst: 40 },
  { quota: 3_000, windowMs: MINUTE_MS, burst: 100 },
] as const;

interface Run {
  readonly steps: readonly (typeof script extends fc.Arbitrary<readonly (infer Step)[]> ? Step : never)[];
  readonly fates: readonly Fate[];
  readonly limit: (typeof LIMITS)[number];
}

async function run({ steps, fates, limit }: Run, evictAtStep = -1) {
  const world = new World();
  // A fallback has bounds of its own, so an owner that does not answer closes its rule here.
  const rule = winner({ ...limit, consistency: 'leased', failureMode: 'closed' });
  world.network = () => fates[world.calls.length % fates.length]!;
  const isolates = Array.from({ length: ISOLATES }, () => world.isolate());
  const admitted: Admitted[] = [];
  const pending: Promise<unknown>[] = [];
  for (const [step, { isolate, requests, cost, everyMs, thenMs }] of steps.entries()) {
    if (step === evictAtStep) world.owner().restart();
    for (let sent = 0; sent < requests; sent += 1) {
      const verdict = isolates[isolate]!.send([rule], { cost, largestCost: 5 });
      const settled = verdict.then(({ outcome }) => {
        if (outcome === 'allowed') admitted.push({ atMs: world.time.elapsedMs, units: cost });
      });
      pending.push(settled);
      await world.time.advance(everyMs);
    }
    await world.time.advance(thenMs);
  }
  await world.time.settle(Promise.all(pending));
  expect(world.problems).toEqual([]);
  return { excess: excessOf(admitted, rule.rule.limit!) };
}

/** An allowed request is counted when its answer has come, which is up to a round trip after its units were taken. */
const roundTrip = ({ quota, windowMs }: (typeof LIMITS)[number]) => (2 * ROUND_TRIP_MS * quota) / windowMs;

test('property: isolates and their owner admit what one bucket would, give or take a round trip', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        steps: script,
        fates: fc.array(fc.oneof(healthyFate, anyFate), { minLength: 1, maxLength: 20 }),
        limit: fc.constantFrom(...LIMITS),
      }),
      async (given) => {
        const { excess } = await run(given);
        expect(excess).toBeLessThanOrEqual(roundTrip(given.limit) + 1e-3);
      },
    ),
    { numRuns: 150 },
  );
}, 30_000);

test('property: an eviction adds at most a second of charges and five of refill', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.record({
        steps: script,
        fates: fc.array(healthyFate, { minLength: 1, maxLength: 20 }),
        limit: fc.constantFrom(...LIMITS),
      }),
      fc.nat({ max: 29 }),
      async (given, at) => {
        const { quota, windowMs, burst } = given.limit;
        const { excess } = await run(given, at % given.steps.length);
        const lost = burst + Math.min(burst, (5_000 * quota) / windowMs);
        expect(excess).toBeLessThanOrEqual(lost + roundTrip(given.limit));
      },
    ),
    { numRuns: 60 },
  );
}, 30_000);
