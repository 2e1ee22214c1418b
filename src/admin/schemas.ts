/**
 * The shapes of what the admin API takes and answers: requests are checked against them, and the OpenAPI document is made of them.
 */
import * as z from 'zod';
import { _coercedNumber } from 'zod/v4/core';
import { REGIONS } from '../policy/region.ts';
import { COST_MAX, isMap } from '../policy/schema.ts';

/** Attributes as a request has them; far more than rules ever ask about. */
const ATTRIBUTES_MAX = 64;

/** A key or a header's value may be long; more than this is no attribute. */
const VALUE_LENGTH_MAX = 4_096;

/** What is sent at once; an import sends many. */
export const KEYS_PER_REQUEST_MAX = 1_000;

/** Longer than an emergency lasts. */
const CLAMP_SECONDS_MAX = 30 * 86_400;

export const domainName = z
  .string()
  .regex(/^[\x20-\x7e]{1,128}$/, '1 to 128 characters of printable ASCII')
  .meta({ description: 'A domain, as rule files name it.' });

const attributes = z
  .record(z.string().min(1).max(128), z.union([z.string().max(VALUE_LENGTH_MAX), z.number(), z.boolean()]))
  .refine((all) => Object.keys(all).length <= ATTRIBUTES_MAX, `at most ${ATTRIBUTES_MAX} attributes`)
  .meta({
    description:
      'Facts about the request, as rules name them. `api_key` is the key itself, `api_key_sha256` its SHA-256 where the key is not at hand; `path` (or `route`) is the path.',
  });

const cost = z
  .int()
  .min(0)
  .max(COST_MAX)
  .meta({ description: 'Whole units, in place of the costs of the rules.' });

const region = z.enum(REGIONS).meta({
  description:
    'Where the request comes from, for rules with `scope: regional`. Without it: where the call comes from.',
});

export const checkBody = z
  .strictObject({
    domain: domainName.optional(),
    attributes,
    cost: cost.optional(),
    region: region.optional(),
    peek: z.boolean().optional().meta({ description: 'Say what would be decided, and charge nothing.' }),
    bound: z
      .boolean()
      .optional()
      .meta({ description: 'Say of each policy, too, what it can admit above its limit, and when.' }),
  })
  .meta({ id: 'Check' });

export const callerBody = z
  .strictObject({ domain: domainName.optional(), attributes })
  .meta({ id: 'Caller' });

export const explainBody = z
  .strictObject({
    domain: domainName.optional(),
    attributes,
    cost: cost.optional(),
    region: region.optional(),
  })
  .meta({ id: 'Explain' });

export const publishBody = z
  .strictObject({
    rules: z.unknown().meta({ description: 'The rule file as JSON.' }),
    message: z.string().min(1).max(1_000).meta({ description: 'Why; for whoever reads the history.' }),
    activate: z.boolean().optional().meta({ description: 'Put it in force; true unless it says otherwise.' }),
  })
  .meta({ id: 'Publish' });

export const clampBody = z
  .strictObject({
    domain: domainName.optional(),
    attributes,
    action: z.enum(['deny', 'limit', 'unlimited']),
    rpm: z
      .int()
      .min(1)
      .max(1_000_000_000)
      .optional()
      .meta({ description: 'Requests a minute; with `limit`, and only there.' }),
    forSeconds: z.int().min(1).max(CLAMP_SECONDS_MAX).meta({ description: 'It ends by itself after this.' }),
  })
  .refine(({ action, rpm }) => (action === 'limit') === (rpm !== undefined), {
    path: ['rpm'],
    message: 'belongs to the action "limit", which needs it',
  })
  .meta({ id: 'Clamp' });

const hash = hexadecimal(/^[0-9a-f]{64}$/i);

function hexadecimal(digits: RegExp) {
  return z
    .string()
    .regex(digits, 'the 64 hexadecimal digits of a SHA-256')
    .transform((text) => text.toLowerCase());
}

/** Between a key's characters there may be anything but spaces, as in a request. */
const rawKey = z.string().regex(/^[!-+\--~]{1,512}$/, '1 to 512 visible ASCII characters without a comma');

const label = z.string().min(1).max(256);

const named = { key: rawKey.optional(), keySha256: hash.optional() };

function isNamedOnce({
  key,
  keySha256,
}: {
  key?: string | undefined;
  keySha256?: string | undefined;
}): boolean {
  return (key === undefined) !== (keySha256 === undefined);
}

const NAMED_ONCE = { message: 'wants one of "key" and "keySha256"' };

export const keyBody = z
  .strictObject({
    ...named,
    tier: label.optional(),
    org: label.optional(),
    user: label.optional(),
    labels: z
      .record(
        z.string().regex(/^[a-z0-9_]{1,64}$/, 'a name of lower-case letters, digits and underscores'),
        label,
      )
      .refine((all) => Object.keys(all).length <= 16, 'at most 16 labels')
      .optional()
      .meta({ description: 'Rules see `labels.plan` as the attribute `label_plan`.' }),
    disabled: z.boolean().optional(),
    expiresAt: z.iso
      .datetime({ offset: true })
      .optional()
      .meta({ description: 'From then on the key is as good as unknown.' }),
  })
  .refine(isNamedOnce, NAMED_ONCE)
  .meta({ id: 'Key' });

export const keyName = z.strictObject(named).refine(isNamedOnce, NAMED_ONCE).meta({ id: 'KeyName' });

const keyBodies = z.strictObject({ keys: z.array(keyBody).min(1).max(KEYS_PER_REQUEST_MAX) });
const keyNames = z.strictObject({ keys: z.array(keyName).min(1).max(KEYS_PER_REQUEST_MAX) });

export const putKeysBody = z.union([keyBody, keyBodies]).meta({ id: 'PutKeys' });
export const deleteKeysBody = z.union([keyName, keyNames]).meta({ id: 'DeleteKeys' });

/** One key or a list of them, as the input means it. */
export function putKeysBodyOf(input: unknown): z.ZodType {
  return isMap(input) && 'keys' in input ? keyBodies : keyBody;
}

export function deleteKeysBodyOf(input: unknown): z.ZodType {
  return isMap(input) && 'keys' in input ? keyNames : keyName;
}

/** A whole number, which a query or a path has as text. This is `z.coerce.number()`, whose like for other types would weigh half a kilobyte. */
function wholeNumber(min: number, max: number) {
  return _coercedNumber(z.ZodNumber).int().min(min).max(max);
}

function count(min: number, max: number, otherwise: number) {
  return wholeNumber(min, max).default(otherwise);
}

export const pageQuery = z.object({
  before: count(1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  limit: count(1, 1_000, 100),
});

export const keysQuery = z.object({
  keySha256: hash.optional(),
  after: hexadecimal(/^([0-9a-f]{64})?$/i).default(''),
  limit: count(1, 1_000, 100),
});

/** For a control plane that has lost its storage, and counts anew below what isolates and owners have seen. */
export const activateQuery = z.object({
  atLeast: wholeNumber(1, 1_000_000_000_000).optional(),
});

export const domainQuery = z.object({ domain: domainName.optional() });

/** A version's number, from 1. */
export const versionNumber = wholeNumber(1, Number.MAX_SAFE_INTEGER);

/** Who makes a change; in the header `X-Limiter-Author`. */
export const author = z.string().regex(/^[\x20-\x7e]{1,128}$/, '1 to 128 characters of printable ASCII');

const envelope = z
  .object({ burstUnits: z.number(), unitsPerSecond: z.number() })
  .meta({ description: 'In any t seconds at most `burstUnits + unitsPerSecond * t` units.' });

const exceeded = z
  .object({ burstUnits: z.number(), unitsPerSecond: z.number(), rateFactor: z.number() })
  .meta({ description: 'The same, and how many times the rate of the limit that is.' });

const bound = z
  .object({
    limit: envelope,
    steady: envelope,
    fallback: exceeded,
    flapping: exceeded,
    crashUnits: z.number(),
    regional: z
      .object({
        regions: z.int(),
        coldStartUnits: z.number(),
        partition: exceeded,
        rootCrashUnits: z.number(),
        regionCrashUnits: z.number(),
      })
      .optional(),
    sentences: z.array(z.string()).meta({ description: 'All of it in words.' }),
  })
  .meta({
    id: 'Bound',
    description:
      'Worst cases: everything is well (`steady`), the owner is silent (`fallback`), answers now and then (`flapping`), crashes; `regional` where regions share the limit. For 4 isolates that an owner has answered and 4 that it has not.',
  });

const policyAnswer = z.object({
  policy: z.string(),
  outcome: z.enum(['allowed', 'denied', 'impossible', 'unavailable']),
  source: z.string(),
  limit: z.int(),
  windowSeconds: z.int().nullable(),
  remaining: z.int().nullable(),
  resetSeconds: z.int().nullable(),
  retryAfterSeconds: z.int().nullable(),
  bound: bound.nullable().optional().meta({ description: 'Where `bound` was asked for.' }),
});

/** Every number but those of bounds is a whole one; `null` where there is nothing to say. */
export const checkAnswer = z
  .object({
    allowed: z.boolean(),
    reason: z.enum([
      'allowed',
      'unmatched',
      'rate_limited',
      'clamped',
      'cost_exceeds_limit',
      'limiter_unavailable',
    ]),
    policy: z.string().nullable().meta({ description: 'The most constrained one.' }),
    limit: z.int().nullable(),
    remaining: z.int().nullable(),
    resetSeconds: z.int().nullable(),
    retryAfterSeconds: z.int().nullable(),
    delayMs: z.int().meta({ description: 'How long to hold the request back (leaky_bucket).' }),
    cost: z.int(),
    source: z.enum(['owner', 'lease', 'local', 'deny_memory', 'fallback', 'none']),
    shadowDenied: z.array(z.string()),
    policies: z.array(policyAnswer),
    ignored: z.array(z.string()).meta({ description: 'Attributes that no rule of this domain knows.' }),
  })
  .meta({ id: 'Decision' });

export type CheckBody = z.output<typeof checkBody>;
export type CheckAnswer = z.output<typeof checkAnswer>;
export type Attributes = z.output<typeof attributes>;
export type KeyBody = z.output<typeof keyBody>;
export type KeyName = z.output<typeof keyName>;
export type ClampBody = z.output<typeof clampBody>;
