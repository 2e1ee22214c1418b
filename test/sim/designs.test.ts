/** The designs that the README compares do what the literature says of them; the figures there are asserted here within rough bounds. */
import { describe, expect, test } from 'vitest';
import { DESIGNS } from '../../scripts/sim/designs.ts';

const figures = (name: RegExp, load: number) => DESIGNS.find((each) => name.test(each.name))!.run(1, load);

describe('below the limit', () => {
  test('only an even split refuses', async () => {
    for (const design of DESIGNS) {
      const { inQuotaRefusals, offered } = await design.run(1, 0.9);
      if (/even split/.test(design.name)) expect(inQuotaRefusals / offered).toBeCloseTo(0.27, 1);
      else expect(inQuotaRefusals).toBe(0);
    }
  });
});

describe('at three times the limit', () => {
  test('isolates that know nothing of each other admit several times the limit', async () => {
    expect((await figures(/local only/, 3)).ofIdeal).toBeCloseTo(2.72, 1);
  });

  test('a sync every second lets through a good part of a second more', async () => {
    const { ofIdeal } = await figures(/synced/, 3);
    expect(ofIdeal).toBeCloseTo(1.39, 1);
  });

  test('one owner and leases admit what the limit says; leases for a tenth of the calls, and without the wait', async () => {
    const [strict, leases] = [await figures(/strict/, 3), await figures(/leases/, 3)];
    expect(leases.overAdmission).toBe(0);
    expect(strict.ofIdeal).toBeLessThan(1.01);
    expect(leases.ofIdeal).toBeGreaterThan(0.98);
    expect(leases.callsPerThousand).toBeLessThan(strict.callsPerThousand / 8);
    expect([leases.waitP50, strict.waitP50 > 20]).toEqual([0, true]);
  });
});
