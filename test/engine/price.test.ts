import { describe, expect, test } from 'vitest';
import { regional, regionLoad, worldwide } from '../../scripts/sim/scenarios/regions.ts';
import { caseOf } from '../../scripts/sim/scenarios.ts';
import { simulate } from '../../scripts/sim/simulation.ts';
import { type PriceOptions, priceOf, ROOT_CALLS_PER_SECOND } from '../../src/engine/price.ts';
import type { CountedInRegion } from '../../src/policy/explain.ts';
import { placedIn } from '../../src/policy/place.ts';
import { DAY_MS, MINUTE_MS, SECOND_MS, type WinnerOptions, winner } from './rules.ts';

const ONE: PriceOptions = { isolates: 1, cost: 1, largestCost: 1 };

/** A policy of so much a second, as `explain` tells of it. */
function policyOf(options: WinnerOptions) {
  const { rule, counterId, owner, pairs } = winner({ windowMs: SECOND_MS, ...options });
  return { policy: rule.policy, shadow: rule.shadow, rule, counted: { counterId, owner, pairs } };
}

/** The same of a rule of regions, asked for in western Europe; with a part for itself, or by what it borrows. */
function regionalPolicyOf(options: WinnerOptions, part?: number) {
  const whole = winner({ windowMs: SECOND_MS, ...options, scope: 'regional' });
  const weights = part === undefined ? {} : { weights: { weur: part } };
  const rule = { ...whole.rule, regional: { startCredit: 0.25, ...weights } };
  const placed = placedIn({ ...whole, rule }, 'weur');
  const inRegion: CountedInRegion = {
    region: 'weur',
    counterId: placed.counterId,
    owner: placed.owner,
    limit: placed.rule.limit!,
    isSplit: part !== undefined,
  };
  return { ...policyOf(options), rule, counted: { ...whole, inRegion } };
}

/** Of the only owner there is. */
function price(policies: readonly WinnerOptions[], options: Partial<PriceOptions> = {}) {
  return priceOf(policies.map(policyOf), { ...ONE, ...options })!.owners[0]!;
}

describe('a million requests', () => {
  test.each([
    { name: 'of 100 a second', rule: { quota: 100 }, rows: 1e4, seconds: 1e4, dollars: 0.176 },
    { name: 'of 10 a second', rule: { quota: 10 }, rows: 1e5, seconds: 1e5, dollars: 0.41 },
    {
      name: 'by the day',
      rule: { quota: 8_640, windowMs: DAY_MS },
      rows: 1e6,
      seconds: 1.5e5,
      dollars: 1.39,
    },
  ])('asked for each, $name', ({ rule, rows, seconds, dollars }) => {
    const { isLeased, calls, ...its } = price([rule]);
    expect({ isLeased, calls }).toEqual({ isLeased: false, calls: 1e6 });
    expect(its.rows).toBeCloseTo(rows, 3);
    expect(its.objectSeconds).toBeCloseTo(seconds, 3);
    expect(its.dollars).toBeCloseTo(dollars, 6);
  });

  test('cost no less when they come a little more rarely: there is no cliff', () => {
    const [often, rarely] = [
      price([{ quota: 60, windowMs: MINUTE_MS }]),
      price([{ quota: 59, windowMs: MINUTE_MS }]),
    ];
    expect(rarely.objectSeconds / often.objectSeconds).toBeCloseTo(1, 1);
  });

  test('of ten units each come a tenth as often', () => {
    expect(price([{ quota: 100 }], { cost: 10, largestCost: 10 })).toEqual(price([{ quota: 10 }]));
  });

  test('that take nothing are written nowhere', () => {
    expect(price([{ quota: 100 }], { cost: 0 }).rows).toBe(0);
  });

  test('in progress take a second call for the slot that is let go', () => {
    const slots = { quota: 10, algorithm: 'concurrency', windowMs: 30 * SECOND_MS } as const;
    expect(price([{ quota: 100 }, { ...slots, policy: 'slots' }]).calls).toBe(2e6);
    expect(priceOf([policyOf(slots)], ONE)).toMatchObject({ requestsPerSecond: 1, owners: [{ calls: 2e6 }] });
  });

  test.each([
    { consistency: 'leased', quota: 80, isLeased: true },
    { consistency: 'leased', quota: 79, isLeased: false },
    { consistency: 'auto', quota: 340, isLeased: true },
    { consistency: 'auto', quota: 339, isLeased: false },
    { consistency: 'strict', quota: 20_000, isLeased: false },
  ] as const)('$consistency, $quota a second over ten isolates: leased is $isLeased', (rule) => {
    const its = price([rule], { isolates: 10 });
    expect(its.isLeased).toBe(rule.isLeased);
    expect(its.calls).toBeCloseTo(rule.isLeased ? 20e6 / rule.quota : 1e6, 3);
  });

  test('are not leased where some request costs more than could be lent', () => {
    const rule = { quota: 1_000, consistency: 'auto' } as const;
    expect([500, 501].map((largestCost) => price([rule], { largestCost }).isLeased)).toEqual([true, false]);
  });

  test('that can never be admitted have no price', () => {
    expect(priceOf([policyOf({ quota: 5 })], { ...ONE, cost: 6 })).toBeUndefined();
    expect(priceOf([policyOf({ quota: 0 }), policyOf({ quota: 5, policy: 'org' })], ONE)).toBeUndefined();
  });
});

describe('several policies', () => {
  test('all go at the pace of the tightest, and each owner has its price', () => {
    const policies = [
      policyOf({ quota: 10_000, consistency: 'auto' }),
      policyOf({ quota: 864, windowMs: DAY_MS, policy: 'daily' }),
      policyOf({ quota: 10_000, consistency: 'auto', policy: 'team', owner: 'bob' }),
      policyOf({ quota: 600, scope: 'local', policy: 'flood', owner: 'carol' }),
    ];
    expect(priceOf(policies, ONE)).toMatchObject({
      requestsPerSecond: 0.01,
      owners: [
        {
          owner: 'anne',
          policies: [{ policy: 'default' }, { policy: 'daily' }],
          isLeased: false,
          calls: 1e6,
        },
        { owner: 'bob', policies: [{ policy: 'team' }], isLeased: false, calls: 1e6 },
      ],
    });
  });

  test('local ones count in each isolate, ask nobody, and slow the others down', () => {
    const local = policyOf({ quota: 5, scope: 'local', owner: 'carol' });
    expect(priceOf([local], { ...ONE, isolates: 4 })).toEqual({ requestsPerSecond: 20, owners: [] });
    const both = priceOf([local, policyOf({ quota: 100, policy: 'team' })], { ...ONE, isolates: 4 });
    expect(both?.requestsPerSecond).toBe(20);
  });

  test('in shadow neither slow anything down nor keep it from a lease, and have an owner to pay for', () => {
    const hot = policyOf({ quota: 10_000, consistency: 'auto' });
    const beside = policyOf({ quota: 1, shadow: true });
    const elsewhere = policyOf({ quota: 1, shadow: true, policy: 'team', owner: 'bob' });
    const found = priceOf([hot, beside, elsewhere], ONE);
    expect(found).toMatchObject({
      requestsPerSecond: 10_000,
      owners: [
        { isLeased: true, policies: [{ shadow: false }, { shadow: true }] },
        { isLeased: false, calls: 1e6, policies: [{ policy: 'team', shadow: true }] },
      ],
    });
  });
});

describe('rules of regions', () => {
  const ROOT = 'anne';
  const MIDDLE = 'region/weur/anne';

  test('are priced at the owner of the region and at the root that it borrows from', () => {
    const { owners } = priceOf([regionalPolicyOf({ quota: 100 })], ONE)!;
    expect(owners).toMatchObject([
      { owner: MIDDLE, policies: [{ policy: 'default' }], lent: [], calls: 1e6 },
      { owner: ROOT, policies: [], lent: [{ policy: 'default' }] },
    ]);
    // A million of them take 10,000 s, in each of which both are busy.
    const [middle, root] = owners;
    expect(root!.calls).toBeCloseTo(ROOT_CALLS_PER_SECOND * 1e4, 3);
    expect([root!.rows, root!.objectSeconds]).toEqual([1e4, 1e4]);
    expect([middle!.rows, middle!.objectSeconds]).toEqual([1e4, 1e4]);
    expect(root!.dollars).toBeCloseTo(0.0021 + 0.01 + 0.016, 6);
  });

  test('talk to the root about each request that comes alone, and both stay awake for that', () => {
    const { owners } = priceOf([regionalPolicyOf({ quota: 864, windowMs: DAY_MS })], ONE)!;
    expect(owners).toMatchObject([
      { calls: 1e6, rows: 3e6, objectSeconds: 3e6 },
      { calls: 7e6, rows: 3e6, objectSeconds: 3e6 },
    ]);
  });

  test('share the root with a rule that is not of regions', () => {
    const policies = [regionalPolicyOf({ quota: 100 }), policyOf({ quota: 100, policy: 'daily' })];
    const { owners } = priceOf(policies, ONE)!;
    expect(owners.map(({ owner, policies, lent }) => [owner, policies.length, lent.length])).toEqual([
      [MIDDLE, 1, 0],
      [ROOT, 1, 1],
    ]);
    expect(owners[1]!.calls).toBeCloseTo(1e6 + ROOT_CALLS_PER_SECOND * 1e4, 3);
    expect([owners[1]!.rows, owners[1]!.objectSeconds]).toEqual([1e4, 1e4]);
  });

  test('have a part each, and no root, where the limit is split', () => {
    expect(priceOf([regionalPolicyOf({ quota: 100 }, 0.25)], ONE)).toMatchObject({
      requestsPerSecond: 25,
      owners: [{ owner: 'part/weur/anne', lent: [], calls: 1e6, rows: 4e4, objectSeconds: 4e4 }],
    });
    expect(priceOf([regionalPolicyOf({ quota: 100 }, 0.25)], { ...ONE, cost: 26 })).toBeUndefined();
  });

  test.each(['one-region 0.9x', 'one-region far 0.9x'])(
    '%s: the simulator counts as many root calls',
    async (name) => {
      const { figures } = await simulate(caseOf(name), { seed: 1 });
      // The first seconds take more, until the root knows the demand.
      expect(figures.rootCallsPerSecond / ROOT_CALLS_PER_SECOND).toBeGreaterThan(0.8);
      expect(figures.rootCallsPerSecond / ROOT_CALLS_PER_SECOND).toBeLessThan(1.25);
    },
  );

  test('a lone request takes as many root calls as the simulator counts', async () => {
    const forMs = 1_000_000;
    const phases = [{ forMs, perSecond: 0.02 }];
    const lone = {
      label: '',
      plan: () => worldwide([regionLoad('weur', { enforced: [regional()], phases })]),
    };
    const { figures } = await simulate(lone, { seed: 1 });
    const { owners } = priceOf([regionalPolicyOf({ quota: 864, windowMs: DAY_MS })], ONE)!;
    const counted = (figures.rootCallsPerSecond * forMs) / 1_000 / figures.offered;
    expect(counted / (owners[1]!.calls / 1e6)).toBeGreaterThan(0.8);
    expect(counted / (owners[1]!.calls / 1e6)).toBeLessThan(1.25);
  });
});

test('of a hot key on leases it is what the simulator counts', async () => {
  const { figures } = await simulate(caseOf('hot-key 0.8x'), { seed: 1 });
  // Of 20,000 a second 16,000 are asked for.
  const { calls } = price([{ quota: 16_000, consistency: 'auto' }], { isolates: 8 });
  // Cold starts and the jitter of renewals come on top.
  expect(figures.callsPerThousand / (calls / 1_000)).toBeGreaterThan(0.8);
  expect(figures.callsPerThousand / (calls / 1_000)).toBeLessThan(1.25);
});
