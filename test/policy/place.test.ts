/** Where the counters of regional rules are kept, and that no value can pass for a place. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  counterId,
  encodePairs,
  isSharedName,
  ownerOf,
  type Pairs,
  pairsOfId,
  rulePrefix,
  type Winner,
} from '../../src/policy/counter.ts';
import {
  hintOf,
  inRegion,
  matchIn,
  placedIn,
  placeOf,
  placesOf,
  regionalOwners,
  withoutPlace,
} from '../../src/policy/place.ts';
import { REGIONS, type Region } from '../../src/policy/region.ts';
import { factsOf, matcherFrom, rulesetFrom, withDescriptors } from './rules-from.ts';

const rule = (fields: string) =>
  `  - { key: org, rate_limit: { unit: second, requests_per_unit: 1000, burst: 500, ${fields} } }\n`;

const matcher = matcherFrom(
  withDescriptors(
    rule('policy: borrowed, scope: regional') +
      rule('policy: split, scope: regional, region_weights: { weur: 0.29, apac: 0.5 }') +
      rule('policy: whole') +
      rule('policy: shadowed, scope: regional, shadow_mode: true'),
  ),
);

const match = matcher.match(factsOf({ org: 'acme' }));
const [borrowed, split, whole] = match.enforced as [Winner, Winner, Winner];

/** What a user may write to pass for somebody else's counter. */
const hostile = fc.oneof(
  fc.constantFrom('region/weur/', 'part/enam/own/1:d', '/region/weur/own/1:a', 'own/', 'shared/'),
  fc.string({ maxLength: 12 }),
);
const pairs: fc.Arbitrary<Pairs> = fc.array(
  fc.tuple(fc.constantFrom('api_key', 'user', 'remote_address'), hostile),
  {
    maxLength: 2,
  },
);
const region = fc.constantFrom(...REGIONS);

/** A winner as the matcher makes it, with nothing about its values taken for granted. */
function winnerOf(domain: string, counted: Pairs): Winner {
  return {
    rule: borrowed.rule,
    counterId: counterId(rulePrefix(domain, borrowed.rule), counted),
    owner: ownerOf(domain, counted, 7),
    pairs: counted,
  };
}

describe('in a region', () => {
  test('the name, the id and the hint say so, and the rest is that of the whole', () => {
    expect(inRegion(borrowed, 'weur')).toEqual({
      rule: borrowed.rule,
      pairs: borrowed.pairs,
      counterId: `region/weur/${borrowed.counterId}`,
      owner: { name: `region/weur/${borrowed.owner.name}`, shared: false, hint: 'weur' },
    });
  });

  test('the place can be read back, of each name and id, whatever is counted', () => {
    fc.assert(
      fc.property(hostile, pairs, region, (domain, counted, where) => {
        const winner = winnerOf(domain, counted);
        const placed = inRegion(winner, where);
        expect(placeOf(placed.counterId)).toEqual({ region: where, rest: winner.counterId });
        expect(placeOf(placed.owner.name)).toEqual({ region: where, rest: winner.owner.name });
        expect(hintOf(placed.owner.name)).toBe(where);
        expect(pairsOfId(placed.counterId)).toBe(encodePairs(counted));
        expect(isSharedName(placed.owner.name)).toBe(winner.owner.shared);
      }),
      { numRuns: 1_000 },
    );
  });

  test('no value passes for a place: what is not in a region says so', () => {
    fc.assert(
      fc.property(hostile, pairs, (domain, counted) => {
        const winner = winnerOf(domain, counted);
        for (const name of [winner.counterId, winner.owner.name]) {
          expect(placeOf(name)).toBeUndefined();
          expect(hintOf(name)).toBeUndefined();
          expect(withoutPlace(name)).toBe(name);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('two places of two counters are the same only when both are', () => {
    fc.assert(
      fc.property(pairs, pairs, region, region, (a, b, here, there) => {
        const [one, other] = [inRegion(winnerOf('d', a), here), inRegion(winnerOf('d', b), there)];
        const isSame = here === there && encodePairs(a) === encodePairs(b);
        expect(one.counterId === other.counterId).toBe(isSame);
      }),
    );
  });

  test.each([
    'region/mars/own/1:d',
    'region/weur/',
    'region/weur',
    'part/weur/own/1:d',
    'regions/weur/x',
    '',
  ])('%j is no place in a region', (name) => {
    expect(placeOf(name)).toBeUndefined();
  });
});

describe('a limit that is split', () => {
  test.each<[Region, Region, number, number]>([
    ['weur', 'weur', 290, 145],
    ['apac', 'apac', 500, 250],
    ['eeur', 'weur', 290, 145],
    ['oc', 'apac', 500, 250],
  ])('has in %s the part of %s: %i, burst %i', (where, part, quota, burst) => {
    const placed = placedIn(split, where);
    expect(placed.owner).toEqual({ name: `part/${part}/${split.owner.name}`, shared: false, hint: part });
    expect(placed.counterId).toBe(`part/${part}/${split.counterId}`);
    expect(placed.rule).toEqual({ ...split.rule, limit: { ...split.rule.limit, quota, burst } });
    expect(pairsOfId(placed.counterId)).toBe(encodePairs(split.pairs));
    expect([placeOf(placed.owner.name), placeOf(placed.counterId)]).toEqual([undefined, undefined]);
  });

  test('has one rule for each part, however often it is asked for', () => {
    expect(placedIn(split, 'weur').rule).toBe(placedIn(split, 'eeur').rule);
    expect(placedIn(split, 'weur').rule).not.toBe(placedIn(split, 'apac').rule);
  });

  test('is never more than the whole', () => {
    const weights = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 9 });
    fc.assert(
      fc.property(weights, fc.integer({ min: 1_000, max: 1_000_000_000 }), (shares, quota) => {
        const total = shares.reduce((sum, each) => sum + each, 0);
        const regional = {
          startCredit: 0.25,
          weights: Object.fromEntries(shares.map((each, at) => [REGIONS[at], each / total])),
        };
        const limit = { ...split.rule.limit!, quota, burst: quota };
        const winner = { ...split, rule: { ...split.rule, regional, limit } };
        const quotas = placesOf(winner, REGIONS).map((each) => each.rule.limit!.quota);
        const together = quotas.reduce((sum, each) => sum + each, 0);
        expect(together).toBeLessThanOrEqual(quota);
        expect(together).toBeGreaterThan(quota - shares.length);
      }),
    );
  });

  test('a share of what divides evenly loses nothing to rounding', () => {
    const limit = { ...split.rule.limit!, quota: 100, burst: 100 };
    const winner = { ...split, rule: { ...split.rule, limit } };
    expect(placedIn(winner, 'weur').rule.limit).toMatchObject({ quota: 29, burst: 29 });
  });
});

describe('a match', () => {
  test('is moved into the region, enforced and shadow, but for what is counted elsewhere', () => {
    const moved = matchIn(match, 'enam');
    const names = [...moved.enforced, ...moved.shadow].map((each) => each.owner.name);
    const { name } = whole.owner;
    expect(names).toEqual([`region/enam/${name}`, `part/weur/${name}`, name, `region/enam/${name}`]);
    expect(moved.enforced[2]).toBe(whole);
    expect(moved).toEqual({ ...match, enforced: moved.enforced, shadow: moved.shadow });
  });

  test('of other rules stays as it is', () => {
    const others = { ...match, enforced: [whole], shadow: [] };
    expect(matchIn(others, 'enam')).toBe(others);
  });
});

describe('everywhere that a caller is counted', () => {
  const served: readonly Region[] = ['weur', 'oc'];

  test('is the whole and each region that is served, or each part', () => {
    const namesOf = (winner: Winner) => placesOf(winner, served).map((each) => each.owner.name);
    const { name } = whole.owner;
    expect(namesOf(borrowed)).toEqual([name, `region/weur/${name}`, `region/oc/${name}`]);
    expect(namesOf(split)).toEqual([`part/weur/${name}`, `part/apac/${name}`]);
    expect(namesOf(whole)).toEqual([name]);
  });

  test('is told of a clamp once, and nowhere else where no rule is regional', () => {
    const { name } = whole.owner;
    const ruleset = { ...matcher.ruleset, regions: served };
    expect(regionalOwners(ruleset, whole.owner)).toEqual([
      `region/weur/${name}`,
      `region/oc/${name}`,
      `part/weur/${name}`,
      `part/apac/${name}`,
    ]);
    expect(regionalOwners(rulesetFrom(withDescriptors(rule('policy: a'))), whole.owner)).toEqual([]);
    const everywhere = rulesetFrom(withDescriptors(rule('scope: regional')));
    expect(regionalOwners(everywhere, whole.owner)).toHaveLength(REGIONS.length);
  });
});
