/** Owners that are slow or away: what a run says of itself, and that the promise to answer everybody can be broken. */
import { describe, expect, test } from 'vitest';
import type { Case, Plan } from '../../scripts/sim/scenario.ts';
import { caseOf } from '../../scripts/sim/scenarios.ts';
import { type Result, simulate } from '../../scripts/sim/simulation.ts';

/** A row with something else planned. */
function replanned(row: string, change: (plan: Plan) => Partial<Plan>): Promise<Result> {
  const plan: Case['plan'] = (random) => {
    const planned = caseOf(row).plan(random);
    return { ...planned, ...change(planned) };
  };
  return simulate({ plan }, { seed: 1 });
}

describe('a brownout', () => {
  test('is not felt where leases are in hand, and is done without where each request asks', async () => {
    const [leased, strict] = [
      await replanned('brownout', () => ({})),
      await replanned('brownout strict', () => ({})),
    ];
    expect(leased.figures).toMatchObject({ fallbackDecisions: 0, inQuotaRefusals: 0, overAdmission: 0 });
    expect(strict.figures).toMatchObject({ inQuotaRefusals: 0, lost: 0 });
    expect(strict.figures.fallbackDecisions).toBeGreaterThan(0);
    expect(strict.figures.answerMax).toBeLessThanOrEqual(1_001);
  });

  test('that keeps somebody waiting for longer than promised fails', async () => {
    const { violation } = await replanned('brownout strict', () => ({ answeredWithinMs: 100 }));
    expect(violation).toMatch(/a request waited [\d.]+ ms, where 100 are promised/);
  });

  test('that leaves somebody without an answer fails', async () => {
    const { violation } = await replanned('brownout strict', ({ happenings = [] }) => ({
      happenings: [
        ...happenings,
        {
          atMs: 2_200,
          happen: ({ world }) => {
            for (let slot = 0; slot < 10; slot += 1) world.killIsolate(slot);
          },
        },
      ],
    }));
    expect(violation).toMatch(/units were asked for and never answered/);
  });
});

describe('a failover', () => {
  const failover = (row: string) => simulate(caseOf(row), { seed: 1 });
  const numbersIn = (remark: string | undefined) =>
    [...(remark ?? '').matchAll(/\d[\d,]*/g)].map(([number]) => Number(number.replaceAll(',', '')));

  test('admits more than the rate alone, and no more than the bound computes', async () => {
    for (const row of ['failover', 'failover strict', 'failover strict restarted']) {
      const [forgot, , compared] = (await failover(row)).remarks;
      const [, admitted, allowed, , , crashUnits, , rateAlone] = numbersIn(compared);
      expect(admitted).toBeGreaterThan(rateAlone!);
      expect(admitted).toBeLessThanOrEqual(allowed!);
      expect(numbersIn(forgot)[0]).toBeLessThanOrEqual(crashUnits!);
    }
  });

  test('says why a probe was decided without its owner', async () => {
    const [, why] = (await failover('failover')).remarks;
    expect(why).toMatch(
      /^probe: at 10,000 ms isolate-4 decided "\w+" without the owner, at once, because its breaker has been open since 4,\d+ ms: \d+ calls have had no answer since (?:3,9|4,\d)\d+ ms; the rule is open, so its own bucket decided\.$/,
    );
  });
});
