/**
 * A root and up to four regions against one ideal bucket: whatever is asked, and whatever becomes of what they say to each other, they admit
 * no more than the bound that is printed, and once nobody asks everything comes to rest.
 */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundOf } from '../../src/engine/bound.ts';
import type { Region } from '../../src/policy/region.ts';
import { excessOf, type Mail, PROMPT, Realm, ROOT, regionalRule, regionName } from './realm.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS } from './rules.ts';

const REGIONS: readonly Region[] = ['weur', 'enam', 'apac', 'oc'];
const LARGEST_COST = 5;

/** A word that gets through comes within this, so no lease ends while its owner is heard of. */
const DELAY_MS_MAX = 300;
const LOST_IN_A_ROW_MAX = 2;

const delayMs = fc.integer({ min: 1, max: DELAY_MS_MAX });
/** A copy may come long after. */
const anyDelayMs = fc.oneof(delayMs, fc.integer({ min: 300, max: 4_000 }));
const healthyMail: fc.Arbitrary<Mail> = fc.record({ thereMs: fc.tuple(delayMs), backMs: fc.tuple(delayMs) });
const anyMail: fc.Arbitrary<Mail> = fc.oneof(
  { weight: 5, arbitrary: healthyMail },
  { weight: 1, arbitrary: fc.constant({ thereMs: [], backMs: [] }) },
  { weight: 1, arbitrary: fc.record({ thereMs: fc.tuple(delayMs), backMs: fc.constant([]) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      thereMs: fc.tuple(delayMs, anyDelayMs),
      backMs: fc.tuple(delayMs, anyDelayMs),
    }),
  },
);

/** Nothing comes twice, but it may come after what was said later. */
const lossyMail: fc.Arbitrary<Mail> = fc.oneof(
  { weight: 3, arbitrary: healthyMail },
  { weight: 1, arbitrary: fc.constant({ thereMs: [], backMs: [] }) },
  { weight: 1, arbitrary: fc.record({ thereMs: fc.tuple(anyDelayMs), backMs: fc.constant([]) }) },
  { weight: 1, arbitrary: fc.record({ thereMs: fc.tuple(anyDelayMs), backMs: fc.tuple(anyDelayMs) }) },
);

const steps = fc.array(
  fc.record({
    region: fc.nat({ max: REGIONS.length - 1 }),
    requests: fc.integer({ min: 1, max: 60 }),
    cost: fc.constantFrom(1, 1, 1, 2, LARGEST_COST),
    everyMs: fc.constantFrom(0, 1, 5, 20),
    thenMs: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 3, arbitrary: fc.integer({ min: 0, max: 200 }) },
      { weight: 1, arbitrary: fc.integer({ min: 200, max: 4_000 }) },
    ),
  }),
  { minLength: 4, maxLength: 40, size: 'max' },
);

const NUMBERS: readonly Numbers[] = [
  { quota: 200, windowMs: SECOND_MS, burst: 200, startCredit: 0.25 },
  { quota: 100, windowMs: SECOND_MS, burst: 400, startCredit: 0.1 },
  { quota: 3_000, windowMs: MINUTE_MS, burst: 100, startCredit: 0.25 },
  { quota: 200, windowMs: SECOND_MS, burst: 200, startCredit: 0 },
];

const runs = fc.record({
  steps,
  regions: fc.integer({ min: 1, max: REGIONS.length }),
  mails: fc.array(anyMail, { minLength: 1, maxLength: 20 }),
  numbers: fc.constantFrom<Numbers>(...NUMBERS),
});

interface Numbers {
  readonly quota: number;
  readonly windowMs: number;
  readonly burst: number;
  readonly startCredit: number;
}

type Run = typeof runs extends fc.Arbitrary<infer Value> ? Value : never;

/** The mail that each next word gets; after a few that were lost, one gets through. */
function posted(mails: readonly Mail[]): () => Mail {
  let [sent, lost] = [0, 0];
  return () => {
    sent += 1;
    const mail = mails[sent % mails.length]!;
    lost = mail.thereMs.length === 0 || mail.backMs.length === 0 ? lost + 1 : 0;
    if (lost <= LOST_IN_A_ROW_MAX) return mail;
    lost = 0;
    return PROMPT;
  };
}

function run({ steps: script, regions, mails, numbers }: Run) {
  const realm = new Realm(regionalRule(numbers));
  const mailOf = new Map(REGIONS.map((region) => [regionName(region), posted(mails)]));
  realm.mail = ({ from }) => mailOf.get(from)!();
  const asked = REGIONS.slice(0, regions);
  const admitted: { atMs: number; units: number }[] = [];
  for (const { region, requests, cost, everyMs, thenMs } of script) {
    for (let sent = 0; sent < requests; sent += 1) {
      const units = realm.admitted(asked[region % regions]!, 1, cost);
      if (units > 0) admitted.push({ atMs: realm.nowMs, units });
      realm.pass(everyMs);
    }
    realm.pass(thenMs);
  }
  return { realm, admitted, asked };
}

const boundFor = ({ regions, numbers }: Run) =>
  boundOf(regionalRule(numbers).rule, {
    isolates: 1,
    blindIsolates: 0,
    largestCost: LARGEST_COST,
    regions,
  })!.regional!;

describe('property: regions that share a limit', () => {
  test('admit no more than one bucket and the printed price of a cold start, in any interval', () => {
    fc.assert(
      fc.property(runs, (given) => {
        const { admitted } = run(given);
        const excess = excessOf(admitted, given.numbers);
        expect(excess).toBeLessThanOrEqual(boundFor(given).coldStartUnits + 1e-6);
      }),
      { numRuns: 200 },
    );
  }, 60_000);

  test('come to rest once nobody asks: the root is full, nothing is lent, and no region has anything left to tell', () => {
    fc.assert(
      fc.property(runs, (given) => {
        const { realm, asked } = run(given);
        realm.mail = () => PROMPT;
        const { quota, windowMs, burst } = given.numbers;
        realm.pass(30_000 + ((2 * burst + quota) * windowMs) / quota);
        expect(realm.rootLevel()).toBe(burst);
        expect(realm.lent()).toMatchObject({ unitsPerMs: 0, capacity: 0 });
        expect(realm.root.restInMs(realm.rawMs(ROOT))).toBe(0);
        for (const region of asked) {
          const owner = realm.region(region);
          expect(owner.rootCallInMs(realm.rawMs(regionName(region)))).toBeUndefined();
          expect(owner.restInMs(realm.rawMs(regionName(region)))).toBe(0);
        }
      }),
      { numRuns: 100 },
    );
  }, 60_000);

  test('forget nothing that was admitted, whatever is lost or late: less than a unit in each is never told', () => {
    fc.assert(
      fc.property(slowRuns(lossyMail), (given) => {
        const { used, admittedUnits } = settled(given);
        expect(used).toBeGreaterThanOrEqual(admittedUnits - given.regions - REFILLED);
      }),
      { numRuns: 100 },
    );
  }, 60_000);

  test('R03 count nothing twice while all messages come', () => {
    fc.assert(
      fc.property(slowRuns(healthyMail), (given) => {
        const { used, admittedUnits } = settled(given);
        expect(Math.abs(used - admittedUnits)).toBeLessThanOrEqual(given.regions + REFILLED);
      }),
      { numRuns: 100 },
    );
  }, 60_000);
});

/** A limit that hardly refills shows each unit that is forgotten, or counted twice. */
const SLOW = { quota: 5_000, windowMs: 365 * DAY_MS, burst: 5_000, startCredit: 0.05 } as const;
const REFILLED = 0.1;

function slowRuns(mail: fc.Arbitrary<Mail>): fc.Arbitrary<Run> {
  return fc.record({
    steps,
    regions: fc.integer({ min: 1, max: REGIONS.length }),
    mails: fc.array(mail, { minLength: 1, maxLength: 20 }),
    numbers: fc.constant(SLOW),
  });
}

/** What the root has charged once all is said, beside what was admitted. */
function settled(given: Run) {
  const { realm, admitted } = run(given);
  realm.mail = () => PROMPT;
  realm.pass(30_000);
  const admittedUnits = admitted.reduce((sum, { units }) => sum + units, 0);
  return { used: SLOW.burst - realm.rootLevel(), admittedUnits };
}
