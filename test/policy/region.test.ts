/** Which region a request is in, whatever is said of where it comes from, and which one stands in for another. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  cfOf,
  isRegion,
  nearestOf,
  REGION_UNKNOWN,
  REGIONS,
  type Region,
  regionOf,
  type Whereabouts,
} from '../../src/policy/region.ts';

describe('the region of a request', () => {
  test.each<[string, Whereabouts, Region]>([
    ['California', { continent: 'NA', country: 'US', longitude: '-122.4' }, 'wnam'],
    ['Texas', { continent: 'NA', country: 'US', longitude: '-96.8' }, 'enam'],
    ['the line itself', { continent: 'NA', country: 'US', longitude: '-100' }, 'enam'],
    ['Hawaii', { continent: 'NA', country: 'US', longitude: '-157.8' }, 'wnam'],
    ['Vancouver', { continent: 'NA', country: 'CA', longitude: '-123.1' }, 'wnam'],
    ['Canada', { continent: 'NA', country: 'CA' }, 'enam'],
    ['the United States', { continent: 'NA', country: 'US' }, 'enam'],
    ['Mexico', { continent: 'NA', country: 'MX' }, 'wnam'],
    ['Yucatan', { continent: 'NA', country: 'MX', longitude: '-89.6' }, 'enam'],
    ['Costa Rica', { continent: 'NA', country: 'CR', longitude: '-84' }, 'enam'],
    ['Jamaica', { continent: 'NA', country: 'JM' }, 'enam'],
    ['Brazil', { continent: 'SA', country: 'BR', longitude: '-46.6' }, 'sam'],
    ['Ireland', { continent: 'EU', country: 'IE' }, 'weur'],
    ['Germany, east of Poland’s border', { continent: 'EU', country: 'DE', longitude: '14.9' }, 'weur'],
    ['Poland', { continent: 'EU', country: 'PL', longitude: '14.5' }, 'eeur'],
    ['Romania', { continent: 'EU', country: 'RO' }, 'eeur'],
    ['Ukraine', { continent: 'EU', country: 'UA' }, 'eeur'],
    ['Russia, in Asia', { continent: 'AS', country: 'RU', longitude: '131.9' }, 'eeur'],
    ['Turkey', { continent: 'AS', country: 'TR' }, 'eeur'],
    ['the Emirates', { continent: 'AS', country: 'AE' }, 'me'],
    ['Saudi Arabia', { continent: 'AS', country: 'SA' }, 'me'],
    ['Israel', { continent: 'AS', country: 'IL' }, 'me'],
    ['Jordan', { continent: 'AS', country: 'JO' }, 'me'],
    ['Iran', { continent: 'AS', country: 'IR' }, 'me'],
    ['Iraq', { continent: 'AS', country: 'IQ' }, 'me'],
    ['Japan', { continent: 'AS', country: 'JP' }, 'apac'],
    ['India', { continent: 'AS', country: 'IN' }, 'apac'],
    ['Namibia, which is spelt like North America', { continent: 'AF', country: 'NA' }, 'afr'],
    ['Kenya', { continent: 'AF', country: 'KE' }, 'afr'],
    ['Australia', { continent: 'OC', country: 'AU' }, 'oc'],
    ['a country alone', { country: 'ZA' }, 'afr'],
    ['a country of both coasts alone', { country: 'US' }, 'enam'],
  ])('%s', (_, whereabouts, region) => {
    expect(regionOf(whereabouts)).toBe(region);
  });

  test.each<[string, Whereabouts | undefined, Region]>([
    ['nothing at all', undefined, REGION_UNKNOWN],
    ['an empty object', {}, REGION_UNKNOWN],
    ['words that are none', { continent: 'XX', country: 'XX', longitude: 'far' }, REGION_UNKNOWN],
    ['values of other types', { continent: 7, country: null, longitude: [] }, REGION_UNKNOWN],
    ['names of properties', { continent: 'constructor', country: '__proto__' }, REGION_UNKNOWN],
    ['a network without a country (Tor)', { continent: 'EU', country: 'T1' }, 'weur'],
    ['a continent alone: North America', { continent: 'NA' }, 'enam'],
    ['South America', { continent: 'SA' }, 'sam'],
    ['Europe', { continent: 'EU' }, 'weur'],
    ['Asia', { continent: 'AS' }, 'apac'],
    ['Africa', { continent: 'AF' }, 'afr'],
    ['Oceania', { continent: 'OC' }, 'oc'],
    ['Antarctica', { continent: 'AN' }, 'oc'],
    ['the continent’s west', { continent: 'NA', longitude: '-118' }, 'wnam'],
    ['the continent’s east', { continent: 'EU', longitude: '30.5' }, 'eeur'],
    ['Asia’s west', { continent: 'AS', longitude: '46' }, 'me'],
    ['Asia’s east', { continent: 'AS', longitude: '103.8' }, 'apac'],
    ['Antarctica south of Chile', { continent: 'AN', country: 'AQ', longitude: '-64' }, 'sam'],
    ['Antarctica south of Africa', { continent: 'AN', country: 'AQ', longitude: '2.5' }, 'afr'],
    ['Antarctica south of New Zealand', { continent: 'AN', country: 'AQ', longitude: '166.7' }, 'oc'],
    ['a longitude alone: California', { longitude: '-122' }, 'wnam'],
    ['New York', { longitude: '-74' }, 'enam'],
    ['Brazil', { longitude: '-46' }, 'sam'],
    ['Paris', { longitude: '2.3' }, 'weur'],
    ['Kyiv', { longitude: '30.5' }, 'eeur'],
    ['Dubai', { longitude: '55' }, 'me'],
    ['Tokyo', { longitude: '139' }, 'apac'],
    ['Auckland', { longitude: '174' }, 'oc'],
    ['a longitude off the map', { continent: 'NA', longitude: '181' }, 'enam'],
    ['a longitude that is blank', { continent: 'NA', longitude: ' ' }, 'enam'],
  ])('of little that is known: %s', (_, whereabouts, region) => {
    expect(regionOf(whereabouts)).toBe(region);
  });

  test('is one of the table, whatever an object holds', () => {
    const anything = fc.oneof(
      fc.anything(),
      fc.constantFrom('NA', 'EU', 'AS', 'AN', 'US', 'RU', '-100', '180', '-180', '1e400', 'NaN', '__proto__'),
    );
    const whereabouts = fc.record(
      { continent: anything, country: anything, longitude: anything },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(whereabouts, (each) => {
        expect(REGIONS).toContain(regionOf(each));
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('the nearest region that is served', () => {
  test.each(REGIONS)('%s is its own, and any other stands in for it when it is alone', (region) => {
    expect(nearestOf(region, REGIONS)).toBe(region);
    for (const only of REGIONS) expect(nearestOf(region, [only])).toBe(only);
  });

  test.each<[Region, readonly Region[], Region]>([
    ['oc', ['weur', 'apac', 'wnam'], 'apac'],
    ['oc', ['weur', 'wnam'], 'wnam'],
    ['wnam', ['weur', 'enam'], 'enam'],
    ['eeur', ['enam', 'weur'], 'weur'],
    ['afr', ['enam', 'weur'], 'weur'],
    ['me', ['apac', 'enam'], 'apac'],
    ['sam', ['weur', 'apac'], 'weur'],
  ])('of %s among %j is %s', (region, served, nearest) => {
    expect(nearestOf(region, served)).toBe(nearest);
  });

  test('does not depend on the order of the file', () => {
    const some = fc.uniqueArray(fc.constantFrom(...REGIONS), { minLength: 1 });
    fc.assert(
      fc.property(fc.constantFrom(...REGIONS), some, (region, served) => {
        expect(nearestOf(region, served.toReversed())).toBe(nearestOf(region, served));
        expect(served).toContain(nearestOf(region, served));
      }),
    );
  });
});

test('only the words of the table are regions', () => {
  expect(REGIONS.every(isRegion)).toBe(true);
  for (const other of ['', 'WEUR', 'apac-ne', 'length', 0, undefined, null])
    expect(isRegion(other)).toBe(false);
});

test('what the platform says of a request and cannot be read is nothing', () => {
  const unreadable = {
    get cf(): Whereabouts {
      throw new SyntaxError('no JSON');
    },
  };
  expect([cfOf(unreadable), cfOf({}), cfOf({ cf: { country: 'FR' } })]).toEqual([
    undefined,
    undefined,
    { country: 'FR' },
  ]);
});
