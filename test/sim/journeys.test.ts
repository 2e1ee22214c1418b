/** Journeys stay within their budgets, tell what they are there to tell, and fail when something is slow. */
import { describe, expect, test } from 'vitest';
import { type Hop, type Journey, type Walked, walk } from '../../scripts/sim/journey.ts';
import { excesses, JOURNEYS, renderJourney } from '../../scripts/sim/journeys.ts';
import { PLANTS } from '../../scripts/sim/plants.ts';
import { run } from '../scripts/run.ts';

const SLOW = PLANTS.find(({ name }) => name === 'slow-calls')!;

function journeyNamed(name: string): Journey {
  return JOURNEYS.find((journey) => journey.name === name)!;
}

function hopsOf({ legs }: Walked): readonly Hop[] {
  return legs.flatMap(({ hops }) => hops);
}

/** What decided each request that is told of. */
async function sourcesOf(name: string): Promise<readonly unknown[]> {
  const hops = hopsOf(await walk(journeyNamed(name), { seed: 1 }));
  return hops.filter(({ what }) => what.startsWith('answers "')).map(({ source }) => source);
}

describe.each(JOURNEYS)('$name', (journey) => {
  test('is within its budgets, whatever the seed', async () => {
    for (let seed = 1; seed <= 10; seed += 1) {
      const walked = await walk(journey, { seed });
      expect({ seed, over: excesses(journey, walked) }).toEqual({ seed, over: [] });
      expect({ seed, violation: walked.violation }).toEqual({ seed, violation: undefined });
    }
  });

  test('is told alike for the same seed', async () => {
    const told = async (seed: number) => renderJourney(journey, 0, await walk(journey, { seed }));
    expect(await told(3)).toBe(await told(3));
    expect(await told(4)).not.toBe(await told(3));
  });

  test('is over its budget when calls are slow', async () => {
    expect(excesses(journey, await walk(journey, { seed: 1, plant: SLOW }))).not.toEqual([]);
  });
});

describe('a journey tells', () => {
  test('of an owner, and of a lease', async () => {
    expect(await sourcesOf('allowed')).toEqual(['owner', 'owner', 'lease']);
  });

  test('of a denial, of its memory, and of coming back when told', async () => {
    expect(await sourcesOf('denied')).toEqual(['owner', 'owner', 'deny_memory', 'owner']);
  });

  test('of deadlines, of a breaker, and of a debt that is charged', async () => {
    const fallbacks = Array.from({ length: 5 }, () => 'fallback');
    expect(await sourcesOf('outage')).toEqual(['owner', ...fallbacks, 'owner']);
    const whats = hopsOf(await walk(journeyNamed('outage'), { seed: 1 })).map(({ what }) => what);
    const inOrder = ['opens its breaker', 'is back', 'charges the', 'closes its breaker'];
    const places = inOrder.map((opening) => whats.findIndex((what) => what.startsWith(opening)));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places).not.toContain(-1);
  });

  test('of every isolate that takes up a rule change, and asks under it', async () => {
    const hops = hopsOf(await walk(journeyNamed('rule-change'), { seed: 1 }));
    const whoSaid = (part: string) =>
      new Set(hops.filter(({ what }) => what.includes(part)).map(({ who }) => who));
    expect(whoSaid('hears of activation 2').size).toBe(4);
    expect(whoSaid('renew the lease under activation 2').size).toBe(5);
    expect(whoSaid('everywhere').size).toBe(1);
  });
});

describe('npm run sim -- --journey', () => {
  test('exits 0 within the budgets, and 1 with a planted slowness, which it points at', async () => {
    const [well, slow] = await Promise.all([
      run('sim.ts', '--journey', 'denied'),
      run('sim.ts', '--journey', 'denied', '--plant', 'slow-calls'),
    ]);
    expect([well.code, well.stderr]).toEqual([0, '']);
    expect(slow.code).toBe(1);
    expect(slow.stdout).toContain('OVER BUDGET');
    expect(slow.stderr).toMatch(/over budget: denied, .*: took 40.0 ms of 1/);
  });

  test('goes all ways unless one is named, and knows which there are', async () => {
    const [all, unknown] = await Promise.all([
      run('sim.ts', '--journey'),
      run('sim.ts', '--journey', 'nowhere'),
    ]);
    for (const { name } of JOURNEYS) expect(all.stdout).toContain(`${name} (seed 1)`);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain(
      'there is no journey nowhere; there are allowed, denied, outage, rule-change',
    );
  });
});
