/** Where requests of the whole world are served; whatever is said of a place, by a region that is switched on. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { distanceKm, type Place, REGIONS, type Region, regionOf } from '../../src/policy/region.ts';

const ALL: ReadonlySet<Region> = new Set(REGIONS);

/** Every field as anybody might fill it. */
const junk = (place: Record<string, unknown>) => place as Place;

describe('places', () => {
  test.each<[string, Place, Region]>([
    ['SJC San Jose', { continent: 'NA', country: 'US', longitude: '-121.89' }, 'wnam'],
    ['DEN Denver', { continent: 'NA', country: 'US', longitude: '-104.99' }, 'wnam'],
    ['HNL Honolulu', { continent: 'NA', country: 'US', longitude: '-157.86' }, 'wnam'],
    ['Adak, Alaska', { continent: 'NA', country: 'US', longitude: '-176.66' }, 'wnam'],
    ['Attu, Alaska, beyond the 180th meridian', { country: 'US', longitude: '173.18' }, 'wnam'],
    ['DFW Dallas', { continent: 'NA', country: 'US', longitude: '-96.80' }, 'enam'],
    ['IAD Ashburn', { continent: 'NA', country: 'US', longitude: '-77.49' }, 'enam'],
    ['the United States, no more said', { country: 'US' }, 'enam'],
    ['YVR Vancouver', { continent: 'NA', country: 'CA', longitude: -123.12 }, 'wnam'],
    ['YYC Calgary', { continent: 'NA', country: 'CA', longitude: -114.07 }, 'wnam'],
    ['YWG Winnipeg', { continent: 'NA', country: 'CA', longitude: -97.14 }, 'enam'],
    ['YYZ Toronto', { continent: 'NA', country: 'CA', longitude: -79.38 }, 'enam'],
    ['Tijuana', { continent: 'NA', country: 'MX', longitude: '-117.04' }, 'wnam'],
    ['GDL Guadalajara', { continent: 'NA', country: 'MX', longitude: '-103.35' }, 'wnam'],
    ['MEX Mexico City', { continent: 'NA', country: 'MX', longitude: '-99.13' }, 'enam'],
    ['PTY Panama', { continent: 'NA', country: 'PA', longitude: '-79.52' }, 'enam'],
    ['SJU Puerto Rico', { continent: 'NA', country: 'PR', longitude: '-66.11' }, 'enam'],
    ['GRU São Paulo', { continent: 'SA', country: 'BR', longitude: '-46.63' }, 'sam'],
    ['BOG Bogotá', { continent: 'SA', country: 'CO', longitude: '-74.08' }, 'sam'],
    ['LHR London', { continent: 'EU', country: 'GB', longitude: '-0.13' }, 'weur'],
    ['FRA Frankfurt', { continent: 'EU', country: 'DE', longitude: '8.68' }, 'weur'],
    ['Görlitz, east of the 15th meridian', { continent: 'EU', country: 'DE', longitude: '15.02' }, 'weur'],
    ['ARN Stockholm', { continent: 'EU', country: 'SE', longitude: '18.07' }, 'weur'],
    ['KEF Reykjavík', { continent: 'EU', country: 'IS', longitude: '-21.94' }, 'weur'],
    ['WAW Warsaw', { continent: 'EU', country: 'PL', longitude: '21.01' }, 'eeur'],
    ['PRG Prague', { continent: 'EU', country: 'CZ', longitude: '14.42' }, 'eeur'],
    ['ATH Athens', { continent: 'EU', country: 'GR', longitude: '23.73' }, 'eeur'],
    ['IST Istanbul, said to be in Asia', { continent: 'AS', country: 'TR', longitude: '28.98' }, 'eeur'],
    ['SVO Moscow', { continent: 'EU', country: 'RU', longitude: '37.62' }, 'eeur'],
    ['Vladivostok, by way of Moscow', { continent: 'EU', country: 'RU', longitude: '131.89' }, 'eeur'],
    ['DXB Dubai', { continent: 'AS', country: 'AE', longitude: '55.27' }, 'me'],
    ['RUH Riyadh', { continent: 'AS', country: 'SA', longitude: '46.68' }, 'me'],
    ['TLV Tel Aviv', { continent: 'AS', country: 'IL', longitude: '34.78' }, 'me'],
    ['Mashhad', { continent: 'AS', country: 'IR', longitude: '59.61' }, 'me'],
    ['KHI Karachi', { continent: 'AS', country: 'PK', longitude: '67.00' }, 'apac'],
    ['BOM Mumbai', { continent: 'AS', country: 'IN', longitude: '72.88' }, 'apac'],
    ['HKG Hong Kong', { continent: 'AS', country: 'HK', longitude: '114.17' }, 'apac'],
    ['TPE Taipei', { continent: 'AS', country: 'TW', longitude: '121.56' }, 'apac'],
    ['NRT Tokyo', { continent: 'AS', country: 'JP', longitude: '139.69' }, 'apac-ne'],
    ['ICN Seoul', { continent: 'AS', country: 'KR', longitude: '126.98' }, 'apac-ne'],
    ['SIN Singapore', { continent: 'AS', country: 'SG', longitude: '103.82' }, 'apac-se'],
    ['CGK Jakarta', { continent: 'AS', country: 'ID', longitude: '106.85' }, 'apac-se'],
    ['KUL Kuala Lumpur', { continent: 'AS', country: 'MY', longitude: '101.69' }, 'apac-se'],
    ['BKK Bangkok', { continent: 'AS', country: 'TH', longitude: '100.50' }, 'apac-se'],
    ['MNL Manila', { continent: 'AS', country: 'PH', longitude: '120.98' }, 'apac-se'],
    ['SGN Saigon', { continent: 'AS', country: 'VN', longitude: '106.63' }, 'apac-se'],
    ['SYD Sydney', { continent: 'OC', country: 'AU', longitude: '151.21' }, 'oc'],
    ['AKL Auckland', { continent: 'OC', country: 'NZ', longitude: '174.76' }, 'oc'],
    ['GUM Guam', { continent: 'OC', country: 'GU', longitude: '144.79' }, 'oc'],
    ['JNB Johannesburg', { continent: 'AF', country: 'ZA', longitude: '28.05' }, 'afr'],
    ['LOS Lagos', { continent: 'AF', country: 'NG', longitude: '3.38' }, 'afr'],
    ['CAI Cairo', { continent: 'AF', country: 'EG', longitude: '31.24' }, 'afr'],
    ['McMurdo Station', { continent: 'AN', country: 'AQ', longitude: '166.67' }, 'oc'],
  ])('%s', (_name, place, region) => {
    expect(regionOf(place, ALL)).toBe(region);
  });

  test.each<[string, Place, Region]>([
    ['nothing at all', {}, 'enam'],
    ['a country that the platform does not know', { continent: 'EU', country: 'XX' }, 'weur'],
    ['Tor, which is nowhere', { continent: 'T1', country: 'T1' }, 'enam'],
    ['the west of North America', { continent: 'NA', longitude: '-122.4' }, 'wnam'],
    ['North America on the dividing line', { continent: 'NA', longitude: -100 }, 'enam'],
    ['the east of North America', { continent: 'NA', longitude: '-73.9' }, 'enam'],
    ['North America', { continent: 'NA' }, 'enam'],
    ['the west of Europe', { continent: 'EU', longitude: '2.3' }, 'weur'],
    ['the east of Europe', { continent: 'EU', longitude: '30.5' }, 'eeur'],
    ['the west of Asia', { continent: 'AS', longitude: '46.7' }, 'me'],
    ['the middle of Asia', { continent: 'AS', longitude: '77.2' }, 'apac'],
    ['the east of Asia', { continent: 'AS', longitude: '135.5' }, 'apac-ne'],
    ['Asia', { continent: 'AS' }, 'apac'],
    ['South America', { continent: 'SA', longitude: '-70' }, 'sam'],
    ['Africa', { continent: 'AF' }, 'afr'],
    ['Oceania, on either side of the date line', { continent: 'OC', longitude: -172 }, 'oc'],
    ['Antarctica', { continent: 'AN' }, 'oc'],
    ['a longitude of California', { longitude: -122 }, 'wnam'],
    ['a longitude of New York', { longitude: -74 }, 'enam'],
    ['a longitude of Paris', { longitude: 2.35 }, 'weur'],
    ['a longitude of Kyiv', { longitude: 30.5 }, 'eeur'],
    ['a longitude of Dubai', { longitude: 55.3 }, 'me'],
    ['a longitude of Delhi', { longitude: 77.2 }, 'apac'],
    ['a longitude of Tokyo', { longitude: 139.7 }, 'apac-ne'],
  ])('no country: %s', (_name, place, region) => {
    expect(regionOf(place, ALL)).toBe(region);
  });

  test.each<[string, Record<string, unknown>, Region]>([
    ['lower case', { country: 'jp', continent: 'as' }, 'apac-ne'],
    ['spaces', { country: ' JP ' }, 'apac-ne'],
    ['numbers for names', { country: 81, continent: 7, longitude: 139.7 }, 'apac-ne'],
    ['names that objects have', { country: 'constructor', continent: '__proto__' }, 'enam'],
    ['a longitude in words', { country: 'US', longitude: 'abc' }, 'enam'],
    ['no longitude, though there is a field', { continent: 'NA', longitude: '' }, 'enam'],
    ['spaces for a longitude', { longitude: '  ' }, 'enam'],
    ['no number', { country: 'US', longitude: Number.NaN }, 'enam'],
    ['further than around the world', { country: 'US', longitude: -1_220 }, 'enam'],
    ['an infinite longitude', { continent: 'EU', longitude: Number.POSITIVE_INFINITY }, 'weur'],
    ['null', { country: null, continent: null, longitude: null }, 'enam'],
    ['lists', { country: ['US'], continent: ['EU'], longitude: [-120] }, 'enam'],
  ])('junk: %s', (_name, place, region) => {
    expect(regionOf(junk(place), ALL)).toBe(region);
  });
});

/** ISO 3166-1 as the United Nations group it, and Kosovo. What lies in two continents, or is counted to both, is listed in both. */
const COUNTRIES: Readonly<Record<string, { codes: string; regions: readonly Region[] }>> = {
  Africa: {
    codes: `AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW IO KE KM LR LS LY MA MG ML MR MU MW MZ
      NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TF TG TN TZ UG YT ZA ZM ZW`,
    regions: ['afr'],
  },
  Antarctica: { codes: 'AQ BV GS HM TF', regions: ['sam', 'afr', 'oc'] },
  Asia: {
    codes: `AE AF AM AZ BD BH BN BT CC CN CX CY GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY
      NP OM PH PK PS QA RU SA SG SY TH TJ TL TM TR TW UZ VN YE`,
    regions: ['me', 'apac', 'apac-ne', 'apac-se'],
  },
  Europe: {
    codes: `AD AL AM AT AX AZ BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GE GG GI GR HR HU IE IM IS IT JE LI LT LU LV
      MC MD ME MK MT NL NO PL PT RO RS RU SE SI SJ SK SM TR UA VA XK`,
    regions: ['weur', 'eeur'],
  },
  'North America': {
    codes: `AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR SV SX TC
      TT US VC VG VI`,
    regions: ['wnam', 'enam'],
  },
  Oceania: {
    codes: `AS AU CC CK CX FJ FM GU HM KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS`,
    regions: ['oc'],
  },
  'South America': { codes: 'AR BO BR BV CL CO EC FK GF GS GY PE PY SR UY VE', regions: ['sam'] },
};

describe('countries', () => {
  const continents = Object.values(COUNTRIES).map(({ codes, regions }) => ({
    codes: codes.split(/\s+/),
    regions,
  }));
  const all = [...new Set(continents.flatMap(({ codes }) => codes))];

  test('are all listed here: 249, and one', () => {
    expect(all).toHaveLength(249 + 1);
  });

  test('each by itself is served by a region of its own continent', () => {
    const strayed = all.flatMap((country) => {
      const expected = continents
        .filter(({ codes }) => codes.includes(country))
        .flatMap(({ regions }) => regions);
      const region = regionOf({ country }, ALL);
      return expected.includes(region) ? [] : [`${country} by ${region}`];
    });
    expect(strayed).toEqual([]);
  });

  test('each is known: what is said of its continent makes no difference', () => {
    const unknown = all.filter((country) => {
      const answers = ['AF', 'EU', 'OC'].map((continent) => regionOf({ country, continent }, ALL));
      return new Set(answers).size > 1;
    });
    expect(unknown).toEqual([]);
  });

  test('only the three wide ones are divided', () => {
    const divided = all.filter((country) => {
      const answers = [-170, -110, -80, 0, 20, 50, 100, 150].map((longitude) =>
        regionOf({ country, longitude }, ALL),
      );
      return new Set(answers).size > 1;
    });
    expect(divided.toSorted()).toEqual(['CA', 'MX', 'US']);
  });
});

describe('a region that is switched off', () => {
  test.each<[Region, Region]>([
    ['wnam', 'enam'],
    ['enam', 'wnam'],
    ['sam', 'enam'],
    ['weur', 'eeur'],
    ['eeur', 'weur'],
    ['apac', 'apac-se'],
    ['apac-ne', 'apac'],
    ['apac-se', 'apac'],
    ['oc', 'apac-se'],
    ['afr', 'me'],
    ['me', 'eeur'],
  ])('%s: %s is the nearest to it', (off, nearest) => {
    const served = new Set(REGIONS.filter((region) => region !== off));
    expect(regionOf(placeIn(off), served)).toBe(nearest);
  });

  test('with two on, the world is divided between them', () => {
    const served = new Set<Region>(['enam', 'weur']);
    const divided = REGIONS.map((region) => [region, regionOf(placeIn(region), served)]);
    expect(Object.fromEntries(divided)).toEqual({
      wnam: 'enam',
      enam: 'enam',
      sam: 'enam',
      weur: 'weur',
      eeur: 'weur',
      apac: 'weur',
      'apac-ne': 'weur',
      'apac-se': 'weur',
      oc: 'enam',
      afr: 'weur',
      me: 'weur',
    });
  });

  test('none on is all on', () => {
    for (const region of REGIONS) expect(regionOf(placeIn(region), new Set())).toBe(region);
  });
});

/** A place that has this region while all are served. */
function placeIn(region: Region): Place {
  const country = {
    enam: 'US',
    sam: 'BR',
    weur: 'DE',
    eeur: 'PL',
    apac: 'HK',
    'apac-ne': 'JP',
    'apac-se': 'SG',
    oc: 'AU',
    afr: 'ZA',
    me: 'AE',
  };
  return region === 'wnam' ? { country: 'US', longitude: -120 } : { country: country[region] };
}

describe('distances', () => {
  test.each<[Region, Region, number]>([
    ['weur', 'eeur', 888],
    ['enam', 'weur', 6_555],
    ['apac-se', 'oc', 6_312],
    ['wnam', 'apac-ne', 8_337],
  ])('from %s to %s are %i km', (a, b, km) => {
    expect(distanceKm(a, b)).toBe(km);
  });

  test('are those of a globe: as far there as back, nothing to itself, and no way round is shorter', () => {
    for (const a of REGIONS) {
      expect(distanceKm(a, a)).toBe(0);
      for (const b of REGIONS) {
        expect(distanceKm(a, b)).toBe(distanceKm(b, a));
        expect(distanceKm(a, b)).toBeLessThanOrEqual(Math.PI * 6_371);
        // Each of three distances is rounded by half a kilometre at most.
        for (const c of REGIONS)
          expect(distanceKm(a, b)).toBeLessThanOrEqual(distanceKm(a, c) + distanceKm(c, b) + 1.5);
      }
    }
  });
});

describe('property', () => {
  const codes = fc.constantFrom(
    'US',
    'CA',
    'MX',
    'DE',
    'RU',
    'TR',
    'SA',
    'IN',
    'KR',
    'ID',
    'AU',
    'ZA',
    'BR',
    'XX',
  );
  const continents = fc.constantFrom('AF', 'AN', 'AS', 'EU', 'NA', 'OC', 'SA', 'T1');
  const degrees = fc.double({ min: -180, max: 180 });
  const places = fc
    .record(
      {
        country: fc.oneof(
          codes,
          codes.map((code) => code.toLowerCase()),
          fc.string(),
          fc.anything(),
        ),
        continent: fc.oneof(continents, fc.string(), fc.anything()),
        longitude: fc.oneof(degrees, degrees.map(String), fc.string(), fc.anything()),
      },
      { requiredKeys: [] },
    )
    .map(junk);
  const someServed = fc.subarray([...REGIONS], { minLength: 1 }).map((regions) => new Set(regions));

  test('total, and always a region that is served', () => {
    fc.assert(
      fc.property(places, someServed, (place, served) => {
        expect(served).toContain(regionOf(place, served));
        expect(REGIONS).toContain(regionOf(place, new Set()));
      }),
    );
  });

  test('switching others off changes nothing', () => {
    fc.assert(
      fc.property(places, someServed, someServed, (place, served, others) => {
        const region = regionOf(place, served);
        const fewer = new Set([...served].filter((each) => each === region || others.has(each)));
        expect(regionOf(place, fewer)).toBe(region);
      }),
    );
  });

  test('who serves for another is as near to it as any, and of equals the first in the list', () => {
    fc.assert(
      fc.property(places, someServed, (place, served) => {
        const own = regionOf(place, ALL);
        const region = regionOf(place, served);
        const nearestKm = Math.min(...[...served].map((each) => distanceKm(own, each)));
        expect(region).toBe(REGIONS.find((each) => served.has(each) && distanceKm(own, each) === nearestKm));
      }),
    );
  });
});
