/**
 * The shapes of what the admin API takes and answers: requests are checked against them, and the OpenAPI document is made of them.
 */
import * as z from 'zod/mini';
import { REGIONS } from '../policy/region.ts';
import { COST_MAX, isMap } from '../policy/schema.ts';
import './english.ts';

/** Attributes as a request has them; far more than rules ever ask about. */
const ATTRIBUTES_MAX = 64;

/** A key or a header's value may be long; more than this is no attribute. */
const VALUE_LENGTH_MAX = 4_096;

/** What is sent at once; an import sends many. */
export const KEYS_PER_REQUEST_MAX = 1_000;

/** Longer than an emergency lasts. */
const CLAMP_SECONDS_MAX = 30 * 86_400;

/** What the OpenAPI document says of a schema beside its shape. */
const docs = z.globalRegistry;

function characters(min: number, max: number) {
  return z.string().check(z.minLength(min), z.maxLength(max));
}

function whole(min: number, max: number) {
  return z.int().check(z.minimum(min), z.maximum(max));
}

export const domainName = z
  .string()
  .check(z.regex(/^[\x20-\x7e]{1,128}$/, '1 to 128 characters of printable ASCII'))
  .register(docs, { description: 'A domain, as rule files name it.' });

const attributes = z
  .record(
    characters(1, 128),
    z.union(
      [z.string().check(z.maxLength(VALUE_LENGTH_MAX)), z.number(), z.boolean()],
      `expected text of at most ${VALUE_LENGTH_MAX} characters, a number, true or false`,
    ),
  )
  .check(z.refine((all) => Object.keys(all).length <= ATTRIBUTES_MAX, `at most ${ATTRIBUTES_MAX} attributes`))
  .register(docs, {
    description:
      'Facts about the request, as rules name them. `api_key` is the key itself, `api_key_sha256` its SHA-256 where the key is not at hand; `path` (or `route`) is the path.',
  });

const cost = whole(0, COST_MAX).register(docs, {
  description: 'Whole units, in place of the costs of the rules.',
});

const region = z.enum(REGIONS).register(docs, {
  description:
    'Where the request comes from, for rules with `scope: regional`. Without it: where the call comes from.',
});

export const checkBody = z
  .strictObject({
    domain: z.optional(domainName),
    attributes,
    cost: z.optional(cost),
    region: z.optional(region),
    peek: z
      .optional(z.boolean())
      .register(docs, { description: 'Say what would be decided, and charge nothing.' }),
    bound: z.optional(z.boolean()).register(docs, {
      description: 'Say of each policy, too, what it can admit above its limit, and when.',
    }),
  })
  .register(docs, { id: 'Check' });

export const callerBody = z
  .strictObject({ domain: z.optional(domainName), attributes })
  .register(docs, { id: 'Caller' });

export const explainBody = z
  .strictObject({
    domain: z.optional(domainName),
    attributes,
    cost: z.optional(cost),
    region: z.optional(region),
  })
  .register(docs, { id: 'Explain' });

export const publishBody = z
  .strictObject({
    rules: z.unknown().register(docs, { description: 'The rule file as JSON.' }),
    message: characters(1, 1_000).register(docs, { description: 'Why; for whoever reads the history.' }),
    activate: z
      .optional(z.boolean())
      .register(docs, { description: 'Put it in force; true unless it says otherwise.' }),
  })
  .register(docs, { id: 'Publish' });

export const clampBody = z
  .strictObject({
    domain: z.optional(domainName),
    attributes,
    action: z.enum(['deny', 'limit', 'unlimited']),
    rpm: z
      .optional(whole(1, 1_000_000_000))
      .register(docs, { description: 'Requests a minute; with `limit`, and only there.' }),
    forSeconds: whole(1, CLAMP_SECONDS_MAX).register(docs, { description: 'It ends by itself after this.' }),
  })
  .check(
    z.refine(({ action, rpm }) => (action === 'limit') === (rpm !== undefined), {
      path: ['rpm'],
      message: 'belongs to the action "limit", which needs it',
    }),
  )
  .register(docs, { id: 'Clamp' });

const hash = hexadecimal(/^[0-9a-f]{64}$/i);

function hexadecimal(digits: RegExp) {
  return z.pipe(
    z.string().check(z.regex(digits, 'the 64 hexadecimal digits of a SHA-256')),
    z.transform((text) => text.toLowerCase()),
  );
}

/** Between a key's characters there may be anything but spaces, as in a request. */
const rawKey = z
  .string()
  .check(z.regex(/^[!-+\--~]{1,512}$/, '1 to 512 visible ASCII characters without a comma'));

const label = characters(1, 256);

const labels = z
  .record(
    z.string().check(z.regex(/^[a-z0-9_]{1,64}$/, 'a name of lower-case letters, digits and underscores')),
    label,
  )
  .check(z.refine((all) => Object.keys(all).length <= 16, 'at most 16 labels'));

const named = { key: z.optional(rawKey), keySha256: z.optional(hash) };

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
    tier: z.optional(label),
    org: z.optional(label),
    user: z.optional(label),
    labels: z
      .optional(labels)
      .register(docs, { description: 'Rules see `labels.plan` as the attribute `label_plan`.' }),
    disabled: z.optional(z.boolean()),
    expiresAt: z
      .optional(z.iso.datetime({ offset: true }))
      .register(docs, { description: 'From then on the key is as good as unknown.' }),
  })
  .check(z.refine(isNamedOnce, NAMED_ONCE))
  .register(docs, { id: 'Key' });

export const keyName = z
  .strictObject(named)
  .check(z.refine(isNamedOnce, NAMED_ONCE))
  .register(docs, { id: 'KeyName' });

const keyBodies = z.strictObject({
  keys: z.array(keyBody).check(z.minLength(1), z.maxLength(KEYS_PER_REQUEST_MAX)),
});
const keyNames = z.strictObject({
  keys: z.array(keyName).check(z.minLength(1), z.maxLength(KEYS_PER_REQUEST_MAX)),
});

export const putKeysBody = z.union([keyBody, keyBodies]).register(docs, { id: 'PutKeys' });
export const deleteKeysBody = z.union([keyName, keyNames]).register(docs, { id: 'DeleteKeys' });

/** One key or a list of them, as the input means it. */
export function putKeysBodyOf(input: unknown): z.ZodMiniType {
  return isMap(input) && 'keys' in input ? keyBodies : keyBody;
}

export function deleteKeysBodyOf(input: unknown): z.ZodMiniType {
  return isMap(input) && 'keys' in input ? keyNames : keyName;
}

/** A whole number, which a query or a path has as text. */
function wholeFromText(min: number, max: number) {
  return z.coerce.number('expected a whole number').check(z.int(), z.minimum(min), z.maximum(max));
}

function count(min: number, max: number, otherwise: number) {
  return z._default(wholeFromText(min, max), otherwise);
}

export const pageQuery = z.object({
  before: count(1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  limit: count(1, 1_000, 100),
});

export const keysQuery = z.object({
  keySha256: z.optional(hash),
  after: z._default(hexadecimal(/^([0-9a-f]{64})?$/i), ''),
  limit: count(1, 1_000, 100),
});

/** For a control plane that has lost its storage, and counts anew below what isolates and owners have seen. */
export const activateQuery = z.object({
  atLeast: z.optional(wholeFromText(1, 1_000_000_000_000)),
});

export const domainQuery = z.object({ domain: z.optional(domainName) });

/** A version's number, from 1. */
export const versionNumber = wholeFromText(1, Number.MAX_SAFE_INTEGER);

/** Who makes a change; in the header `X-Limiter-Author`. */
export const author = z
  .string()
  .check(z.regex(/^[\x20-\x7e]{1,128}$/, '1 to 128 characters of printable ASCII'));

const envelope = z
  .object({ burstUnits: z.number(), unitsPerSecond: z.number() })
  .register(docs, { description: 'In any t seconds at most `burstUnits + unitsPerSecond * t` units.' });

const exceeded = z
  .object({ burstUnits: z.number(), unitsPerSecond: z.number(), rateFactor: z.number() })
  .register(docs, { description: 'The same, and how many times the rate of the limit that is.' });

const bound = z
  .object({
    limit: envelope,
    steady: envelope,
    fallback: exceeded,
    flapping: exceeded,
    crashUnits: z.number(),
    regional: z.optional(
      z.object({
        regions: z.int(),
        coldStartUnits: z.number(),
        partition: exceeded,
        rootCrashUnits: z.number(),
        regionCrashUnits: z.number(),
      }),
    ),
    sentences: z.array(z.string()).register(docs, { description: 'All of it in words.' }),
  })
  .register(docs, {
    id: 'Bound',
    description:
      'Worst cases: everything is well (`steady`), the owner is silent (`fallback`), answers now and then (`flapping`), crashes; `regional` where regions share the limit. For 4 isolates that an owner has answered and 4 that it has not.',
  });

const intOrNull = z.nullable(z.int());

const policyAnswer = z.object({
  policy: z.string(),
  outcome: z.enum(['allowed', 'denied', 'impossible', 'unavailable']),
  source: z.string(),
  limit: z.int(),
  windowSeconds: intOrNull,
  remaining: intOrNull,
  resetSeconds: intOrNull,
  retryAfterSeconds: intOrNull,
  bound: z.nullish(bound).register(docs, { description: 'Where `bound` was asked for.' }),
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
    policy: z.nullable(z.string()).register(docs, { description: 'The most constrained one.' }),
    limit: intOrNull,
    remaining: intOrNull,
    resetSeconds: intOrNull,
    retryAfterSeconds: intOrNull,
    delayMs: z.int().register(docs, { description: 'How long to hold the request back (leaky_bucket).' }),
    cost: z.int(),
    source: z.enum(['owner', 'lease', 'local', 'deny_memory', 'fallback', 'none']),
    shadowDenied: z.array(z.string()),
    policies: z.array(policyAnswer),
    ignored: z
      .array(z.string())
      .register(docs, { description: 'Attributes that no rule of this domain knows.' }),
  })
  .register(docs, { id: 'Decision' });

export type CheckBody = z.output<typeof checkBody>;
export type CheckAnswer = z.output<typeof checkAnswer>;
export type Attributes = z.output<typeof attributes>;
export type KeyBody = z.output<typeof keyBody>;
export type KeyName = z.output<typeof keyName>;
export type ClampBody = z.output<typeof clampBody>;
