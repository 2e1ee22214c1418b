/**
 * Fleets from a sample of their keys: the estimate against a fleet that is small enough to be simulated whole, the formulas for rare keys
 * against simulations of them, and what follows by arithmetic.
 */
import { describe, expect, test } from 'vitest';
import {
  type Demand,
  exponentFor,
  lastRankAbove,
  rateOf,
  rateOfRanks,
  shareAbove,
} from '../../scripts/sim/fleet/demand.ts';
import {
  dollarsPerMillion,
  type Effort,
  type Estimate,
  estimate,
  type Fleet,
} from '../../scripts/sim/fleet/estimate.ts';
import {
  IDLE_MS,
  type Key,
  type KeyFigures,
  type Measured,
  objectSecondsOf,
  simulateKeys,
} from '../../scripts/sim/fleet/keys.ts';
import { LONE_PER_SECOND, loneKeys } from '../../scripts/sim/fleet/lone.ts';
import { renderFleet, sentencesOf } from '../../scripts/sim/fleet/report.ts';
import { strataOf } from '../../scripts/sim/fleet/strata.ts';
import { Random } from '../../scripts/sim/random.ts';
import { DAY_MS, winner } from '../../scripts/sim/rules.ts';
import { DENIED_AT_PEAK, SIZINGS } from '../../scripts/sim/scenarios/fleet.ts';
import { perSecond } from '../../scripts/sim/scenarios/kit.ts';

const OPTIONS = { timeout: 60_000 };

describe('demand', () => {
  const demand: Demand = { keys: 5_000, requestsPerSecond: 1_000, exponent: 0.8 };
  const rates = Array.from({ length: demand.keys }, (_, at) => rateOf(demand, at + 1));

  test('is that of all keys, added up one by one', () => {
    expect(rates.reduce((sum, rate) => sum + rate, 0)).toBeCloseTo(1_000, 6);
    expect(rateOfRanks(demand, { from: 100, to: 4_000 })).toBeCloseTo(
      rates.slice(99, 4_000).reduce((sum, rate) => sum + rate, 0),
      6,
    );
  });

  test('goes by the rank', () => {
    expect(rates[0]! / rates[9]!).toBeCloseTo(10 ** 0.8, 9);
  });

  test('above a limit is what each key has above it', () => {
    const above = rates.reduce((sum, rate) => sum + Math.max(0, rate - 5), 0);
    expect(shareAbove(demand, 5)).toBeCloseTo(above / 1_000, 9);
    expect(lastRankAbove(demand, 5)).toBe(rates.filter((rate) => rate > 5).length);
  });

  test.each([0.005, 0.02, 0.2])('is as steep as it takes for %d of it to be above a limit', (share) => {
    const exponent = exponentFor(demand, { limitPerSecond: 5, share });
    expect(shareAbove({ ...demand, exponent }, 5)).toBeCloseTo(share, 9);
  });
});

describe('strata', () => {
  const demand: Demand = { keys: 1_000_000, requestsPerSecond: 100_000, exponent: 0.9 };
  const thinning = { keysMax: () => 10, lonePerSecond: 0.1 };
  const strata = (seed: number) => strataOf(demand, thinning, new Random(seed));

  test('hold each key once, and none whose first is asked for twice as often as its last', () => {
    let next = 1;
    for (const { from, to } of strata(1)) {
      expect(from).toBe(next);
      expect(rateOf(demand, to) * 2).toBeGreaterThanOrEqual(rateOf(demand, from));
      next = to + 1;
    }
    expect(next).toBe(demand.keys + 1);
  });

  test.each([1, 2, 3])('are stood for by the keys taken: in number and in requests (seed %d)', (seed) => {
    for (const { from, to, taken } of strata(seed)) {
      const ranks = taken.map(({ rank }) => rank);
      expect(new Set(ranks).size).toBe(ranks.length);
      expect(ranks.every((rank) => rank >= from && rank <= to)).toBe(true);
      const keys = taken.reduce((sum, { weight }) => sum + weight, 0);
      const requests = taken.reduce((sum, each) => sum + each.weight * each.requestsPerSecond, 0);
      expect(keys / (to - from + 1)).toBeCloseTo(1, 9);
      expect(requests / rateOfRanks(demand, { from, to })).toBeCloseTo(1, 9);
      expect(Math.min(...taken.map(({ weight }) => weight))).toBeGreaterThan(0);
    }
  });

  test('of few keys are taken whole, each for itself', () => {
    const [first, second] = strata(1);
    expect(first!.taken).toEqual([{ rank: 1, requestsPerSecond: rateOf(demand, 1), weight: 1 }]);
    expect(second!.taken.map(({ rank, weight }) => [rank, weight])).toEqual([
      [2, 1],
      [3, 1],
      [4, 1],
    ]);
  });

  test('take each key as often as its neighbours', () => {
    const few = { keys: 200, requestsPerSecond: 1_000, exponent: 0.9 };
    const times = new Map<number, number>();
    const stratum = (seed: number) => strataOf(few, { ...thinning, lonePerSecond: 0 }, new Random(seed))[4]!;
    const { from, to } = stratum(1);
    for (let seed = 1; seed <= 2_000; seed += 1) {
      for (const { rank } of stratum(seed).taken) times.set(rank, (times.get(rank) ?? 0) + 1);
    }
    const expected = (2_000 * 10) / (to - from + 1);
    expect(times.size).toBe(to - from + 1);
    for (const count of times.values())
      expect(Math.abs(count - expected)).toBeLessThan(5 * Math.sqrt(expected));
  });
});

/** 2,000 keys in four isolates: the hottest exceed their limit, some are leased, most are asked for now and then. */
const SMALL: Fleet = {
  demand: { keys: 2_000, requestsPerSecond: 2_000, exponent: 0.9 },
  isolates: 4,
  enforced: (owner) => [perSecond({ perSecond: 60, owner })],
};

const WHOLE: Effort = {
  requests: Number.POSITIVE_INFINITY,
  keys: { min: SMALL.demand.keys, max: SMALL.demand.keys },
  measuredMs: { min: 10_000, max: 10_000 },
  lonePerSecond: 0,
};
const THINNED: Effort = {
  requests: 2_000,
  keys: { min: 3, max: 20 },
  measuredMs: { min: 10_000, max: 20_000 },
  lonePerSecond: LONE_PER_SECOND,
};

const FIGURES = ['requests', 'denied', 'calls', 'objectSeconds'] as const;

describe('an estimate', () => {
  const run = (effort: Effort, seeds: number) =>
    Promise.all(Array.from({ length: seeds }, (_, at) => estimate(SMALL, effort, { seed: at + 1 })));
  const meanOf = (estimates: readonly Estimate[], figure: (typeof FIGURES)[number]) =>
    estimates.reduce((sum, each) => sum + each[figure], 0) / estimates.length;

  test(
    'from 122 keys comes within a few per cent of 2,000, and the mean of eight within two',
    OPTIONS,
    async () => {
      const whole = await run(WHOLE, 3);
      const thinned = await run(THINNED, 8);
      expect(whole[0]!.thinned).toEqual({
        oneByOne: 2_000,
        sampled: { keys: 0, strata: 0, standFor: 0 },
        byFormula: { keys: 0, share: 0 },
      });
      for (const each of thinned) {
        const { oneByOne, sampled, byFormula } = each.thinned;
        expect([oneByOne, sampled.keys]).toEqual([4, 118]);
        expect(oneByOne + sampled.standFor + byFormula.keys).toBe(2_000);
        // Some 6,000 requests are measured of half of the load: chance alone makes that 1.3%, and this is three times as much.
        expect(Math.abs(each.calls / meanOf(whole, 'calls') - 1)).toBeLessThan(0.04);
        expect(
          Math.abs(each.calls / each.requests / (whole[0]!.calls / whole[0]!.requests) - 1),
        ).toBeLessThan(0.01);
        expect(each.waitP50).toBeCloseTo(whole[0]!.waitP50, 0);
        expect(each.hottest.rank).toBe(whole[0]!.hottest.rank);
        expect(each.violations).toEqual([]);
      }
      for (const figure of FIGURES) {
        const ratio = meanOf(thinned, figure) / meanOf(whole, figure);
        expect([figure, Math.abs(ratio - 1) < 0.02, ratio]).toEqual([figure, true, ratio]);
      }
    },
  );

  test('is repeated by its seed', OPTIONS, async () => {
    const few = { ...THINNED, requests: 200, measuredMs: { min: 500, max: 2_000 } };
    const [first, again, other] = [
      await estimate(SMALL, few, { seed: 7 }),
      await estimate(SMALL, few, { seed: 7 }),
      await estimate(SMALL, few, { seed: 8 }),
    ];
    expect(again).toEqual(first);
    expect(other).not.toEqual(first);
  });
});

describe('keys that are asked for once in twenty seconds', () => {
  const byDay = { algorithm: 'fixed_window', quota: 1e6, windowMs: DAY_MS, policy: 'daily' } as const;
  const keys = (isByDay: boolean): readonly Key[] =>
    Array.from({ length: 200 }, (_, at) => {
      const owner = `key ${at}`;
      const enforced = [
        perSecond({ perSecond: 1_000, owner }),
        ...(isByDay ? [winner({ ...byDay, owner })] : []),
      ];
      return { name: owner, requestsPerSecond: 0.05, enforced };
    });
  const sumOf = ({ keys: all }: Measured, figure: keyof KeyFigures) =>
    all.reduce((sum, { figures }) => sum + figures[figure], 0);
  /** The part of the requests that met an object which had to start. */
  const coldOf = ({ keys: all }: Measured) => {
    const ms = all.flatMap(({ waits }) => waits.ms);
    return ms.filter((wait) => wait > 30).length / ms.length;
  };

  test.each([true, false])(
    'come to what the formulas say (with a window of a day: %s)',
    OPTIONS,
    async (isByDay) => {
      const formula = await loneKeys(keys(isByDay), { seed: 1, random: new Random(1) });
      const simulated = await simulateKeys(keys(isByDay), {
        isolates: 200,
        warmMs: IDLE_MS,
        measuredMs: 200_000,
        seed: 2,
      });
      const perRequest = (measured: Measured, figure: keyof KeyFigures) =>
        sumOf(measured, figure) / sumOf(measured, 'requests');
      expect(sumOf(formula, 'requests')).toBeCloseTo(200 * 0.05, 9);
      expect(perRequest(formula, 'calls')).toBeCloseTo(perRequest(simulated, 'calls'), 1);
      expect(coldOf(simulated)).toBeCloseTo(Math.exp(-0.5), 1);
      expect(coldOf(formula)).toBeCloseTo(Math.exp(-0.5), 1);
      if (!isByDay) {
        for (const figure of ['rows', 'bytesAtRest'] as const)
          expect([sumOf(formula, figure), sumOf(simulated, figure)]).toEqual([0, 0]);
        return;
      }
      expect(perRequest(formula, 'rows')).toBeCloseTo(perRequest(simulated, 'rows'), 1);
      // Later rows hold larger numbers, which take a few digits more.
      const bytes = sumOf(formula, 'bytesAtRest') / sumOf(simulated, 'bytesAtRest');
      expect(bytes).toBeGreaterThan(0.9);
      expect(bytes).toBeLessThan(1);
    },
  );
});

describe('by arithmetic', () => {
  test('an object is billed for 50 ms a call, for up to a second more where it has yet to write, and for no more than all of the time', () => {
    expect(objectSecondsOf({ calls: 0.1, rows: 0 })).toBeCloseTo(0.005, 9);
    expect(objectSecondsOf({ calls: 0.1, rows: 0.1 })).toBeCloseTo(0.015, 9);
    expect(objectSecondsOf({ calls: 700, rows: 0 })).toBe(1);
  });

  test('a million requests cost what their calls, rows and object seconds do', () => {
    const figures = { requests: 100, calls: 50, rows: 10, objectSeconds: 2 };
    expect(dollarsPerMillion(figures)).toBeCloseTo(0.5 * 0.15 + 0.1 * 1 + 0.02 * 1.6, 9);
  });

  test('each sizing has 2% denied at its peak', () => {
    for (const { fleet, limitPerSecond, peakRequestsPerSecond } of SIZINGS) {
      const peak = { ...fleet.demand, requestsPerSecond: peakRequestsPerSecond };
      expect(shareAbove(peak, limitPerSecond)).toBeCloseTo(DENIED_AT_PEAK, 9);
    }
    const { demand } = SIZINGS.find(({ label }) => label === '1M/s average')!.fleet;
    expect(demand).toMatchObject({ keys: 5_000_000, requestsPerSecond: 300_000 });
  });

  test(
    'a design of one call a request makes as many calls as there are requests, and says of each sizing what was thinned',
    OPTIONS,
    async () => {
      const few = { ...THINNED, requests: 100, measuredMs: { min: 500, max: 1_000 } };
      const small = await estimate(SMALL, few, { seed: 1 });
      expect(small.naive.calls).toBe(SMALL.demand.requestsPerSecond);
      expect(small.naive.hottest).toBe(rateOf(SMALL.demand, 1));
      const { oneByOne, sampled } = small.thinned;
      for (const sizing of SIZINGS) {
        const told = sentencesOf({ sizing, estimate: small }).join('\n');
        expect(told).toContain(`thinned: of ${sizing.fleet.demand.keys.toLocaleString('en-US')} keys`);
        expect(told).toContain(`hottest ${oneByOne} simulated one by one, ${sampled.keys} more in`);
      }
      const table = renderFleet(SIZINGS.map((sizing) => ({ sizing, estimate: small })));
      for (const { label } of SIZINGS) expect(table).toContain(`\n${label}  `);
    },
  );
});
