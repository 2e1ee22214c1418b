/**
 * Owners that go away under load, as processes do: everybody is answered in time, what is admitted stays within the printed bound, and when
 * the owners are back they decide again, from what they had stored.
 */
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readRules } from '../../scripts/rules.ts';
import { type Bound, boundOf, type Envelope } from '../../src/engine/bound.ts';
import { WRITE_INTERVAL_MS } from '../../src/engine/write-behind.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { type Answer, tallyOf } from './load.ts';
import {
  BUSY,
  CUSTOMERS,
  type Customer,
  hold,
  kill,
  killTwice,
  MODEST,
  type Run,
  runThrough,
  type World,
} from './run.ts';
import { type Build, build, GATEWAYS, removeBuild } from './topology.ts';

/** No request waits longer than this for its owner, whatever the rule file says. */
const DEADLINE_MS_MAX = 1_000;

/** The machine can be slow before the limiter has a request, when its time is up, and on the way back. */
const MACHINE_TIMES = 3;

/** A pulse now and then misses the worst that the machine does. */
const UNSEEN_MS = 500;

/** A write that is due waits for a timer and for the disk. */
const WRITE_LATE_MS = 500;

const BUILD_MS_MAX = 60_000;
const RUN_MS_MAX = 90_000;

let ruleset: Ruleset;
let built: Build;

beforeAll(async () => {
  ruleset = await readRules(join(import.meta.dirname, 'chaos.yaml'));
  built = await build(ruleset);
}, BUILD_MS_MAX);

afterAll(() => removeBuild(built));

describe.each([
  { name: 'killed', go: async (world: World) => [await kill(world)] },
  { name: 'held up', go: async (world: World) => [await hold(world)] },
  { name: 'killed twice in a row', go: killTwice },
])('owners that are $name', ({ go }) => {
  let run: Run;

  beforeAll(async () => {
    run = await runThrough(built, go);
  }, RUN_MS_MAX);

  it('every request is admitted or denied, and no client sees an error', () => {
    expect(new Set(run.answers.map(({ outcome }) => outcome))).toEqual(new Set([200, 429]));
  });

  it('no request waits longer than the deadline, but for what the machine adds', () => {
    const waits = run.answers.map(({ sentMs, answeredMs }) => answeredMs - sentMs);
    const machineMs = MACHINE_TIMES * run.slowestPulseMs + UNSEEN_MS;
    expect(Math.max(...waits)).toBeLessThanOrEqual(DEADLINE_MS_MAX + machineMs);
  });

  it.each(CUSTOMERS)('$key: what is admitted stays within the printed bound', (customer) => {
    expect(admitted(customer, run.answers).length).toBeLessThanOrEqual(mostUnits(customer, run));
  });

  it.each(BUSY)('$key: is served at half its limit at least while the owners are away', (customer) => {
    for (const { fromMs, untilMs } of run.outages) {
      const during = ({ sentMs }: Answer) => sentMs >= fromMs && sentMs <= untilMs;
      const units = admitted(customer, run.answers).filter(during).length;
      const standstillMs = MACHINE_TIMES * run.slowestPulseMs;
      const least = unitsAtRate(boundFor(customer.tier).limit, untilMs - fromMs - standstillMs) / 2;
      expect(units).toBeGreaterThanOrEqual(least);
    }
  });

  it.each(MODEST)('$key: stays inside its limit, and is never refused', ({ key, perSecond }) => {
    const refused = run.answers.filter((answer) => answer.key === key && answer.outcome !== 200);
    // An owner that goes on begins with questions whose requests fallback has decided, and until those are given back they are charged
    // twice: it may refuse then. A killed one has no such questions.
    const goesOnMs = run.outages.find(({ isCrash }) => !isCrash)?.untilMs ?? Number.POSITIVE_INFINITY;
    const early = refused.filter(({ answeredMs }) => answeredMs < goesOnMs);
    // What comes in while the machine stands still comes all at once, and may be too much at once.
    const clump = Math.floor((perSecond * run.slowestPulseMs) / 1_000);
    expect(early.length, tallyOf(early)).toBeLessThanOrEqual(clump);
  });

  it('what owners had charged is charged still, but for the last second before a crash', () => {
    const [first] = run.outages;
    const last = run.outages.at(-1)!;
    const deep = run.answers.filter(({ key, source }) => key === 'k_deep' && source === 'owner');
    const before = deep.filter(({ answeredMs }) => answeredMs < first!.fromMs);
    const after = deep.filter(({ sentMs }) => sentMs > last.untilMs);
    const lateMs = WRITE_LATE_MS + MACHINE_TIMES * run.slowestPulseMs;
    const lostSinceMs = first!.fromMs - (first!.isCrash ? WRITE_INTERVAL_MS + lateMs : 0);
    const lost = before.filter(({ answeredMs }) => answeredMs >= lostSinceMs).length;
    const refilled = unitsAtRate(boundFor('deep').limit, after.at(-1)!.answeredMs - before[0]!.sentMs) + 1;
    const remaining = (answers: readonly Answer[]) => answers.map((answer) => answer.remaining);
    expect(Math.max(...remaining(after))).toBeLessThanOrEqual(
      Math.min(...remaining(before)) + lost + refilled,
    );
  });
});

function admitted({ key }: Customer, answers: readonly Answer[]): readonly Answer[] {
  return answers.filter((answer) => answer.key === key && answer.outcome === 200);
}

function boundFor(tier: Customer['tier']): Bound {
  const rule = ruleset.rules.find(({ path }) => path[0]?.match === 'exact' && path[0].value === tier)!;
  return boundOf(rule, { isolates: GATEWAYS, blindIsolates: 0, largestCost: 1 })!;
}

function unitsAtRate({ unitsPerSecond }: Envelope, ms: number): number {
  return (unitsPerSecond * ms) / 1_000;
}

function unitsIn(envelope: Envelope, ms: number): number {
  return envelope.burstUnits + unitsAtRate(envelope, ms);
}

/**
 * The worst case of the run as it was: the limit for as long as the owners were there, the fallback for each outage from its beginning to the
 * last decision without an owner (gateways come back one after the other, and meanwhile both count), and what each crash may forget.
 */
function mostUnits({ key, tier }: Customer, { answers, outages }: Run): number {
  const bound = boundFor(tier);
  const own = answers.filter((answer) => answer.key === key);
  const startedMs = Math.min(...own.map(({ sentMs }) => sentMs));
  const endedMs = Math.max(...own.map(({ answeredMs }) => answeredMs));
  const awayMs = outages.reduce((sum, { fromMs, untilMs }) => sum + untilMs - fromMs, 0);
  const without = outages.map((outage, number) => {
    const endMs = outages[number + 1]?.fromMs ?? endedMs;
    const alone = own.filter(
      ({ source, answeredMs }) => source === 'fallback' && answeredMs > outage.fromMs && answeredMs <= endMs,
    );
    const lastMs = Math.max(...alone.map(({ answeredMs }) => answeredMs));
    return unitsIn(bound.fallback, lastMs - outage.fromMs) + (outage.isCrash ? bound.crashUnits : 0);
  });
  return without.reduce((sum, units) => sum + units, unitsIn(bound.steady, endedMs - startedMs - awayMs));
}
