/**
 * The regions that limits can be kept in, which of them a request is in, and which stands in for one that is not served.
 *
 * A region is a location hint of Durable Objects. Where a request comes from is what the platform says of it (`request.cf`), of which
 * any part may be missing or nonsense: the country decides, else the continent, else the longitude alone, else `REGION_UNKNOWN`.
 */

/** Western and eastern North America, South America, western and eastern Europe, Asia, Oceania, Africa, the Middle East. */
export const REGIONS = ['wnam', 'enam', 'sam', 'weur', 'eeur', 'apac', 'oc', 'afr', 'me'] as const;

export type Region = (typeof REGIONS)[number];

/** The region of a request of which nothing is known: most of the world's lines lead there. */
export const REGION_UNKNOWN: Region = 'enam';

/** What the platform says of where a request comes from; each may be missing, or anything at all. */
export interface Whereabouts {
  /** `NA`, `SA`, `EU`, `AS`, `OC`, `AF` or `AN`. */
  readonly continent?: unknown;
  /** ISO 3166-1, two letters; `T1` and `XX` are no countries. */
  readonly country?: unknown;
  /** Degrees as text, east above 0. */
  readonly longitude?: unknown;
}

/**
 * Where two regions share a continent, a country goes to the one that its lines lead to, whatever a map says of its continent: Turkey,
 * the Caucasus and Central Asia by way of eastern Europe.
 */
const COUNTRIES: Readonly<Record<Region, string>> = {
  wnam: 'MX',
  enam: 'AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS NI PA PM PR SV SX TC TT US VC VG VI',
  sam: 'AR BO BR CL CO EC FK GF GS GY PE PY SR UY VE',
  weur: 'AD AT BE CH DE DK ES FO FR GB GG GI IE IM IS IT JE LI LU MC MT NL NO PT SE SJ SM VA',
  eeur: 'AL AM AX AZ BA BG BY CY CZ EE FI GE GR HR HU KG KZ LT LV MD ME MK PL RO RS RU SI SK TJ TM TR UA UZ XK',
  apac: 'AF BD BN BT CC CN CX HK ID IN IO JP KH KP KR LA LK MM MN MO MV MY NP PH PK SG TH TL TW VN',
  oc: 'AS AU CK FJ FM GU HM KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS',
  afr: 'AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW',
  me: 'AE BH IL IQ IR JO KW LB OM PS QA SA SY YE',
};

const BY_COUNTRY: ReadonlyMap<string, Region> = new Map(
  REGIONS.flatMap((region) => COUNTRIES[region].split(' ').map((country) => [country, region] as const)),
);

/** Countries of both coasts of a continent: the longitude decides where there is one. */
const WIDE_COUNTRIES: ReadonlySet<string> = new Set(['CA', 'MX', 'US']);

/** What lies west of a longitude, one after the other; the last has no end. */
type Bands = readonly (readonly [westOf: number, region: Region])[];

const NORTH_AMERICA: Bands = [
  [-100, 'wnam'],
  [Number.POSITIVE_INFINITY, 'enam'],
];

/** Of a continent without a country. One band is a continent that is one region. */
const BY_CONTINENT: ReadonlyMap<string, Bands> = new Map<string, Bands>([
  ['NA', NORTH_AMERICA],
  ['SA', [[Number.POSITIVE_INFINITY, 'sam']]],
  [
    'EU',
    [
      [16, 'weur'],
      [Number.POSITIVE_INFINITY, 'eeur'],
    ],
  ],
  [
    'AS',
    [
      [60, 'me'],
      [Number.POSITIVE_INFINITY, 'apac'],
    ],
  ],
  ['AF', [[Number.POSITIVE_INFINITY, 'afr']]],
  ['OC', [[Number.POSITIVE_INFINITY, 'oc']]],
  [
    'AN',
    [
      [-120, 'oc'],
      [-30, 'sam'],
      [60, 'afr'],
      [Number.POSITIVE_INFINITY, 'oc'],
    ],
  ],
]);

/** Of a continent without a country and a longitude. */
const CONTINENT_DEFAULTS: ReadonlyMap<string, Region> = new Map<string, Region>([
  ['NA', 'enam'],
  ['EU', 'weur'],
  ['AS', 'apac'],
  ['AN', 'oc'],
]);

/** Of a longitude alone: where most people live that have it. */
const WORLD: Bands = [
  [-100, 'wnam'],
  [-60, 'enam'],
  [-30, 'sam'],
  [16, 'weur'],
  [34, 'eeur'],
  [60, 'me'],
  [150, 'apac'],
  [Number.POSITIVE_INFINITY, 'oc'],
];

/** The others by the usual round trip between them, the nearest first. */
const NEAREST: Readonly<Record<Region, readonly Region[]>> = {
  wnam: ['enam', 'apac', 'oc', 'weur', 'sam', 'eeur', 'me', 'afr'],
  enam: ['wnam', 'weur', 'eeur', 'sam', 'me', 'apac', 'oc', 'afr'],
  sam: ['enam', 'wnam', 'weur', 'eeur', 'afr', 'me', 'oc', 'apac'],
  weur: ['eeur', 'enam', 'me', 'afr', 'wnam', 'apac', 'sam', 'oc'],
  eeur: ['weur', 'me', 'enam', 'afr', 'apac', 'wnam', 'sam', 'oc'],
  apac: ['oc', 'me', 'wnam', 'eeur', 'weur', 'enam', 'afr', 'sam'],
  oc: ['apac', 'wnam', 'enam', 'me', 'weur', 'sam', 'eeur', 'afr'],
  afr: ['weur', 'me', 'eeur', 'enam', 'apac', 'wnam', 'sam', 'oc'],
  me: ['eeur', 'weur', 'apac', 'afr', 'enam', 'oc', 'wnam', 'sam'],
};

export function isRegion(text: unknown): text is Region {
  return (REGIONS as readonly unknown[]).includes(text);
}

/** The region that a request is in; total. What is given is a `Whereabouts`, or whatever there is in its place. */
export function regionOf(from: object | null | undefined): Region {
  const { country, continent, longitude }: Whereabouts = from ?? {};
  const degrees = degreesOf(longitude);
  const known = typeof country === 'string' ? BY_COUNTRY.get(country) : undefined;
  if (known !== undefined) {
    const isWide = degrees !== undefined && WIDE_COUNTRIES.has(country as string);
    return isWide ? regionAt(degrees, NORTH_AMERICA) : known;
  }
  const bands = typeof continent === 'string' ? BY_CONTINENT.get(continent) : undefined;
  if (degrees !== undefined) return regionAt(degrees, bands ?? WORLD);
  if (bands === undefined) return REGION_UNKNOWN;
  return CONTINENT_DEFAULTS.get(continent as string) ?? bands[0]![1];
}

/** What the platform says about a request; nothing where that cannot be read, as under `serve` what a client has written itself. */
export function cfOf<Cf>(request: { readonly cf?: Cf }): Cf | undefined {
  try {
    return request.cf;
  } catch {
    return undefined;
  }
}

/** The one of those served that is nearest; the region itself where it is one of them, or where none is served. */
export function nearestOf(region: Region, served: readonly Region[]): Region {
  if (served.includes(region)) return region;
  return NEAREST[region].find((other) => served.includes(other)) ?? region;
}

function degreesOf(longitude: unknown): number | undefined {
  const isText = typeof longitude === 'string' && longitude.trim() !== '';
  const degrees = isText ? Number(longitude) : Number.NaN;
  return Math.abs(degrees) <= 180 ? degrees : undefined;
}

function regionAt(degrees: number, bands: Bands): Region {
  return bands.find(([westOf]) => degrees < westOf)![1];
}
