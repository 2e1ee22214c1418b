/**
 * The shape of a rule file, part by part. Strict: a field that is not named here is an error, and so is a value of another type.
 *
 * Each part is checked by itself (`read`), so one mistake hides no other. What fields mean together is checked where they are
 * compiled.
 */
import * as z from 'zod/mini';
import { type Path, type Report, show, suggestion } from './problem.ts';
import { REGIONS } from './region.ts';

/** Ten years: longer than any quota, and far inside what a number of milliseconds holds exactly. */
const DURATION_MS_MAX = 3650 * 86_400_000;
const MS_PER: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/** An owner copies its list of slots to take one, and stores it as one row: 5,000 of them, doubled by an outage, are 600 KB. */
const IN_FLIGHT_MAX = 5_000;

/** A slot whose holder has died is missing for so long; an hour of that is more than anybody wants. */
const SLOT_SECONDS_MAX = 3_600;

/** The most that one request may cost. */
export const COST_MAX = 1_000_000;

/** A month is 30 days and a year 365: a window has one length, which is the one that responses state. */
export const UNIT_MS = {
  second: 1000,
  minute: 60_000,
  hour: 3_600_000,
  day: 86_400_000,
  week: 604_800_000,
  month: 30 * 86_400_000,
  year: 365 * 86_400_000,
} as const;

/**
 * A field whose reader returns `undefined` for what it does not take. `wants` completes the sentence "wants ..."; `options` are
 * the words to look through for the one that was meant.
 */
function field<Value>(
  wants: string,
  readValue: (input: unknown) => Value | undefined,
  options: readonly string[] = [],
) {
  return z.transform((input: unknown, { issues }): Value => {
    const value = readValue(input);
    if (value !== undefined) return value;
    const near = typeof input === 'string' ? suggestion(input, options) : '';
    const message =
      input === undefined ? `is required: ${wants}` : `wants ${wants}, not ${show(input)}${near}`;
    issues.push({ code: 'custom', input, message });
    return z.NEVER;
  });
}

function choice<const Option extends string>(options: readonly Option[]) {
  const readOption = (input: unknown): Option | undefined => {
    const folded = typeof input === 'string' ? input.toLowerCase() : undefined;
    return options.find((option) => option === folded);
  };
  return field(`one of ${options.join(', ')}`, readOption, options);
}

function whole(min: number, max: number) {
  return field(`a whole number from ${min} to ${max}`, (input) => {
    return typeof input === 'number' && Number.isInteger(input) && input >= min && input <= max
      ? input
      : undefined;
  });
}

const share = field('a share above 0 and at most 1', (input) => {
  return typeof input === 'number' && input > 0 && input <= 1 ? input : undefined;
});

const flag = field('true or false', (input) => (typeof input === 'boolean' ? input : undefined));

const duration = field('a time such as 500ms, 90s, 5m, 2h or 7d', (input) => {
  const parts = typeof input === 'string' ? /^(\d+(?:\.\d+)?)\s*(ms|[smhdw])$/i.exec(input.trim()) : null;
  if (parts === null) return undefined;
  const ms = Number(parts[1]) * (MS_PER[(parts[2] as string).toLowerCase()] as number);
  return Number.isInteger(ms) && ms >= 1 && ms <= DURATION_MS_MAX ? ms : undefined;
});

/** Text; a number is taken as its text. */
const text = field('some text', (input) => {
  if (typeof input === 'number' && Number.isFinite(input)) return String(input);
  return typeof input === 'string' && input !== '' ? input : undefined;
});

/** RFC 9651: what a String may hold, since the name goes into response fields. */
const printable = field('1 to 128 characters of printable ASCII', (input) => {
  return typeof input === 'string' && /^[\x20-\x7e]{1,128}$/.test(input) ? input : undefined;
});

/** RFC 9110: the name of a header field. */
const headerName = field('the name of a header', (input) => {
  return typeof input === 'string' && /^[!#$%&'*+\-.^_`|~\w]+$/.test(input) ? input.toLowerCase() : undefined;
});

const keyLocation = field('"authorization", the name of a header, or "query:NAME"', (input) => {
  return typeof input === 'string' && /^(query:.+|[!#$%&'*+\-.^_`|~\w]+)$/.test(input) ? input : undefined;
});

const origin = field(
  'an origin such as https://app.example.com (no path, no slash at the end), or "*"',
  (input) => {
    return typeof input === 'string' && /^(\*|[a-z][a-z\d+.-]*:\/\/[^/\s]+)$/i.test(input)
      ? input.toLowerCase()
      : undefined;
  },
);

const list = field('a list', (input) => (Array.isArray(input) ? (input as readonly unknown[]) : undefined));
const map = field('a map', (input) => (isMap(input) ? input : undefined));

export function isMap(input: unknown): input is Readonly<Record<string, unknown>> {
  return typeof input === 'object' && input !== null && !Array.isArray(input);
}

export const fileSchema = z.strictObject({
  domain: printable,
  headers: z.optional(choice(['ietf', 'legacy', 'both', 'none'])),
  deadline: z.optional(duration),
  identity: z.optional(map),
  attributes: z.optional(map),
  cors: z.optional(map),
  regions: z.optional(list),
  descriptors: list,
  costs: z.optional(list),
});

export const identitySchema = z.partial(
  z.strictObject({
    api_key: list,
    keys: list,
    unknown_keys: choice(['address', 'subject']),
    default: map,
    trusted_hops: whole(0, 32),
    ipv6_prefix: whole(1, 128),
  }),
);

export const directoryKeySchema = z.partial(
  z.strictObject({ key: text, key_sha256: text, tier: text, org: text, user: text }),
);

/** No `user`: everybody who is not resolved would then be one and the same user. */
export const defaultsSchema = z.partial(z.strictObject({ tier: text, org: text }));

export const attributeSchema = z.strictObject({ header: headerName, fold: z.optional(flag) });

export const corsSchema = z.strictObject({ allow_origins: list });

export const nodeSchema = z.strictObject({
  key: text,
  value: z.optional(text),
  rate_limit: z.optional(z.unknown()),
  descriptors: z.optional(list),
});

export const rateLimitSchema = z.partial(
  z.strictObject({
    unit: choice(Object.keys(UNIT_MS) as (keyof typeof UNIT_MS)[]),
    window: duration,
    requests_per_unit: whole(0, 1_000_000_000),
    algorithm: choice([
      'token_bucket',
      'leaky_bucket',
      'fixed_window',
      'sliding_window',
      'sliding_log',
      'concurrency',
    ]),
    burst: whole(1, 1_000_000_000),
    max_delay: duration,
    policy: printable,
    per: list,
    scope: choice(['global', 'regional', 'local']),
    consistency: choice(['strict', 'leased', 'auto']),
    failure_mode: choice(['open', 'closed']),
    shadow_mode: flag,
    unlimited: flag,
    blind_share: share,
    max_in_flight: whole(0, IN_FLIGHT_MAX),
    slot_seconds: whole(1, SLOT_SECONDS_MAX),
    start_credit: share,
    region_weights: map,
  }),
);

export type RateLimitNode = z.output<typeof rateLimitSchema>;

export const costSchema = z.partial(
  z.strictObject({
    route: text,
    method: text,
    cost: whole(0, COST_MAX),
    reserve: whole(1, COST_MAX),
    cost_header: headerName,
    default: whole(0, COST_MAX),
  }),
);

export type CostNode = z.output<typeof costSchema>;

export const elements = { keyLocation, origin, text, share, region: choice(REGIONS) };

/** Reads one part. Every problem is reported at its place; `undefined` when there was any. */
export function read<Schema extends z.ZodMiniType>(
  schema: Schema,
  raw: unknown,
  path: Path,
  report: Report,
): z.output<Schema> | undefined {
  const result = schema.safeParse(raw);
  if (result.success) return result.data;
  for (const issue of result.error.issues) {
    const at = [...path, ...issue.path.map((step) => (typeof step === 'symbol' ? String(step) : step))];
    if (issue.code === 'unrecognized_keys') {
      const known = schema instanceof z.ZodMiniObject ? Object.keys(schema.shape) : [];
      for (const key of issue.keys) report([...at, key], `is not a field here${suggestion(key, known)}`);
    } else if (issue.code === 'invalid_type') {
      report(at, `wants a map, not ${show(raw)}`);
    } else {
      report(at, issue.message);
    }
  }
  return undefined;
}
