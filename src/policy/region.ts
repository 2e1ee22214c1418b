/**
 * Which region of the platform serves a request: a location hint worked out from what is known about where the request comes from.
 *
 * The country decides where it is known, since networks meet inside it; a wide one is divided by longitude. Without it the continent
 * decides, divided by longitude too; without both, the longitude alone. Every field may be missing or junk, and the answer is a region
 * all the same, always one that is served: what is switched off is served by whoever of the others is nearest to it.
 *
 * Wrong by one region is slower, never wrong, so the tables hold to the coarse: whole countries, and straight lines.
 */

/** The location hints of Durable Objects. */
export const REGIONS = [
  'wnam',
  'enam',
  'sam',
  'weur',
  'eeur',
  'apac',
  'apac-ne',
  'apac-se',
  'oc',
  'afr',
  'me',
] as const;

export type Region = (typeof REGIONS)[number];

/** As in `request.cf`. */
export interface Place {
  /** AF, AN, AS, EU, NA, OC or SA. */
  readonly continent?: string | undefined;
  /** Two letters of ISO 3166-1. */
  readonly country?: string | undefined;
  /** Degrees, east of Greenwich positive. */
  readonly longitude?: string | number | undefined;
}

/** Regions from west to east, each up to the longitude where the next one begins. */
type Strips = readonly (readonly [untilLongitude: number, region: Region])[];

interface Area {
  /** Where the longitude says nothing. */
  readonly usual: Region;
  /** Without them the longitude makes no difference. */
  readonly strips?: Strips;
}

const EAST_END = Number.POSITIVE_INFINITY;

/** Nothing is known, so any would do; always the same one, so that such callers are counted together. */
const DEFAULT_REGION: Region = 'enam';

/** The 100th meridian is where Canada, the Great Plains and Mexico are halved; the last of the Aleutians lie west of the 180th. */
const NORTH_AMERICA: Area = {
  usual: 'enam',
  strips: [
    [-100, 'wnam'],
    [0, 'enam'],
    [EAST_END, 'wnam'],
  ],
};

/** Of Asia the south-east lies on the same meridians as China, so only its countries are told apart. */
const CONTINENTS: ReadonlyMap<string, Area> = new Map<string, Area>([
  ['AF', { usual: 'afr' }],
  ['AN', { usual: 'oc' }],
  [
    'AS',
    {
      usual: 'apac',
      strips: [
        [60, 'me'],
        [124, 'apac'],
        [EAST_END, 'apac-ne'],
      ],
    },
  ],
  [
    'EU',
    {
      usual: 'weur',
      strips: [
        [15, 'weur'],
        [EAST_END, 'eeur'],
      ],
    },
  ],
  ['NA', NORTH_AMERICA],
  ['OC', { usual: 'oc' }],
  ['SA', { usual: 'sam' }],
]);

/** Most people live north of the equator, and the longitude alone cannot tell. */
const ANYWHERE: Area = {
  usual: DEFAULT_REGION,
  strips: [
    [-100, 'wnam'],
    [-30, 'enam'],
    [15, 'weur'],
    [40, 'eeur'],
    [60, 'me'],
    [124, 'apac'],
    [EAST_END, 'apac-ne'],
  ],
};

/** Countries as wide as their continent. */
const WIDE: readonly string[] = ['CA', 'MX', 'US'];

/**
 * All others. Russia's networks meet in Moscow, however far east the caller; Turkey's and those of the Caucasus lead to Europe; all of Asia
 * east of Iran that has no part of its own is `apac`.
 */
const COUNTRIES: Readonly<Record<Region, string>> = {
  wnam: '',
  enam: `AG AI AW BB BL BM BQ BS BZ CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS NI PA PM PR SV SX TC TT
    VC VG VI`,
  sam: 'AR BO BR CL CO EC FK GF GS GY PE PY SR UY VE',
  weur: 'AD AT BE CH DE DK ES FO FR GB GG GI IE IM IS IT JE LI LU MC MT NL NO PT SE SJ SM VA',
  eeur: 'AL AM AX AZ BA BG BY CY CZ EE FI GE GR HR HU LT LV MD ME MK PL RO RS RU SI SK TR UA XK',
  apac: 'AF BD BT CN HK IN IO KG KZ LK MN MO MV NP PK TJ TM TW UZ',
  'apac-ne': 'JP KP KR',
  'apac-se': 'BN CC CX ID KH LA MM MY PH SG TH TL VN',
  oc: 'AQ AS AU CK FJ FM GU HM KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TO TV UM VU WF WS',
  afr: `AO BF BI BJ BV BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ
    NA NE NG RE RW SC SD SH SL SN SO SS ST SZ TD TF TG TN TZ UG YT ZA ZM ZW`,
  me: 'AE BH IL IQ IR JO KW LB OM PS QA SA SY YE',
};

const AREA_OF_COUNTRY: ReadonlyMap<string, Area> = new Map([
  ...WIDE.map((country) => [country, NORTH_AMERICA] as const),
  ...REGIONS.flatMap((region) =>
    (COUNTRIES[region].match(/\w+/g) ?? []).map((country) => [country, { usual: region }] as const),
  ),
]);

interface Point {
  readonly latitude: number;
  readonly longitude: number;
}

/**
 * A city for each region. Of South America not the largest but one in the middle: São Paulo is a little nearer to Johannesburg than to
 * Ashburn, and no network goes that way.
 */
const CENTRES: Readonly<Record<Region, Point>> = {
  /** San Jose */
  wnam: { latitude: 37.3, longitude: -121.9 },
  /** Ashburn */
  enam: { latitude: 39.0, longitude: -77.5 },
  /** Brasília */
  sam: { latitude: -15.8, longitude: -47.9 },
  /** Frankfurt */
  weur: { latitude: 50.1, longitude: 8.7 },
  /** Warsaw */
  eeur: { latitude: 52.2, longitude: 21.0 },
  /** Hong Kong */
  apac: { latitude: 22.3, longitude: 114.2 },
  /** Tokyo */
  'apac-ne': { latitude: 35.7, longitude: 139.7 },
  /** Singapore */
  'apac-se': { latitude: 1.4, longitude: 103.8 },
  /** Sydney */
  oc: { latitude: -33.9, longitude: 151.2 },
  /** Johannesburg */
  afr: { latitude: -26.2, longitude: 28.0 },
  /** Dubai */
  me: { latitude: 25.3, longitude: 55.3 },
};

const EARTH_RADIUS_KM = 6_371;

/** From each region all of them, the nearest first, which is itself; of equal ones the first in `REGIONS`. */
const NEAREST: ReadonlyMap<Region, readonly Region[]> = new Map(
  REGIONS.map((from) => [from, REGIONS.toSorted((a, b) => distanceKm(from, a) - distanceKm(from, b))]),
);

/** The region for a place, among those in `served`; none in it means that all are served. */
export function regionOf(place: Place, served: ReadonlySet<Region>): Region {
  const own = regionAt(areaOf(place), longitudeOf(place.longitude));
  return NEAREST.get(own)!.find((region) => served.has(region)) ?? own;
}

/** Between the centres of two regions on a great circle (haversine formula), in whole kilometres: more digits would say nothing. */
export function distanceKm(a: Region, b: Region): number {
  const from = CENTRES[a];
  const to = CENTRES[b];
  const northSouth = halfChord(to.latitude - from.latitude);
  const eastWest = halfChord(to.longitude - from.longitude);
  const chord = northSouth + Math.cos(radians(from.latitude)) * Math.cos(radians(to.latitude)) * eastWest;
  return Math.round(2 * EARTH_RADIUS_KM * Math.asin(Math.sqrt(chord)));
}

function areaOf({ country, continent }: Place): Area {
  return AREA_OF_COUNTRY.get(codeOf(country)) ?? CONTINENTS.get(codeOf(continent)) ?? ANYWHERE;
}

function regionAt({ usual, strips = [] }: Area, longitude: number | undefined): Region {
  if (longitude === undefined) return usual;
  return strips.find(([untilLongitude]) => longitude < untilLongitude)?.[1] ?? usual;
}

/** Takes anything: what the platform says of a request has no type but by promise. */
function codeOf(value: unknown): string {
  return typeof value === 'string' ? value.trim().toUpperCase() : '';
}

function longitudeOf(value: unknown): number | undefined {
  const isText = typeof value === 'string' && value.trim() !== '';
  const degrees = isText || typeof value === 'number' ? Number(value) : Number.NaN;
  return Math.abs(degrees) <= 180 ? degrees : undefined;
}

/** The square of the sine of half an angle. */
function halfChord(degrees: number): number {
  return Math.sin(radians(degrees) / 2) ** 2;
}

function radians(degrees: number): number {
  return (degrees * Math.PI) / 180;
}
