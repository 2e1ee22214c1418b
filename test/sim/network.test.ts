import { expect, test } from 'vitest';
import { drawFate, type Fate } from '../../scripts/sim/fate.ts';
import { type Faults, HEALTHY, randomFaults, roundTripMs } from '../../scripts/sim/faults.ts';
import { Random } from '../../scripts/sim/random.ts';

function fates(faults: Partial<Faults>, times = 2_000): readonly Fate[] {
  const random = new Random(7);
  return Array.from({ length: times }, () => drawFate({ ...HEALTHY, ...faults }, random));
}

function part(all: readonly Fate[], is: (fate: Fate) => boolean): number {
  return all.filter(is).length / all.length;
}

test('a healthy call arrives once and is answered, each way within its delays', () => {
  for (const { arrivesAfterMs, heard } of fates({ delayMs: 8, jitterMs: 4 })) {
    expect(arrivesAfterMs).toHaveLength(1);
    expect(arrivesAfterMs[0]).toBeGreaterThanOrEqual(8);
    expect(arrivesAfterMs[0]).toBeLessThan(12);
    expect(heard).toMatchObject({ copy: 0 });
  }
});

test('faults come as often as they are asked for', () => {
  const none = ({ arrivesAfterMs, heard }: Fate) => arrivesAfterMs.length === 0 && heard === 'nothing';
  const unheard = ({ arrivesAfterMs, heard }: Fate) => arrivesAfterMs.length === 1 && heard === 'nothing';
  const broken = ({ heard }: Fate) => heard !== 'nothing' && 'failure' in heard;
  const brokenAfter = (fate: Fate) => broken(fate) && fate.arrivesAfterMs.length === 1;
  const twice = ({ arrivesAfterMs }: Fate) => arrivesAfterMs.length === 2;
  const late = ({ arrivesAfterMs }: Fate) => (arrivesAfterMs[0] ?? 0) > 1_000;
  expect(part(fates({ callsLost: 0.2 }), none)).toBeCloseTo(0.2, 1);
  expect(part(fates({ repliesLost: 0.2 }), unheard)).toBeCloseTo(0.2, 1);
  expect(part(fates({ connectionsLost: 0.2 }), broken)).toBeCloseTo(0.2, 1);
  expect(part(fates({ connectionsLost: 0.2 }), brokenAfter)).toBeCloseTo(0.1, 1);
  expect(part(fates({ callsRepeated: 0.2 }), twice)).toBeCloseTo(0.2, 1);
  expect(part(fates({ stragglers: 0.2, stragglerMs: 1_000 }), late)).toBeCloseTo(0.2, 1);
});

test('the same seed draws the same, and a fork depends on nothing that was drawn', () => {
  const [one, other] = [new Random(3), new Random(3)];
  other.next();
  expect(one.fork('fates').next()).toBe(other.fork('fates').next());
  expect(one.fork('fates').next()).not.toBe(one.fork('ills').next());
  expect(randomFaults(new Random(5))).toEqual(randomFaults(new Random(5)));
});

test('a round trip is both ways and the work between', () => {
  expect(roundTripMs({ ...HEALTHY, delayMs: 8, jitterMs: 4, serviceMs: 1 })).toBe(21);
});
