/**
 * The parts of a rule file that say who calls: where keys are, the static directory, declared attributes, who may read denials.
 *
 * No raw key leaves this module: the compiled directory holds only SHA-256.
 */
import { isKeyIn, KEY_LENGTH_MAX } from './api-key.ts';
import { KNOWN_ATTRIBUTES, UNVERIFIED_KEY } from './attributes.ts';
import { LABEL_PREFIX } from './directory.ts';
import { formatPath, type Path, type Report } from './problem.ts';
import type { AttributeSource, Identity, KeyLocation } from './ruleset.ts';
import {
  attributeSchema,
  corsSchema,
  defaultsSchema,
  directoryKeySchema,
  elements,
  identitySchema,
  read,
} from './schema.ts';

/** SHA-256 of a text's UTF-8, in lower-case hex. */
export type Sha256 = (text: string) => string;

const DEFAULT_API_KEY_PLACES = ['authorization', 'x-api-key'];
const SHA256_HEX = /^[0-9a-f]{64}$/i;
/** A hash cut short, as documentation prints it. */
const SHORTENED_HEX = /^[0-9a-f]+\.\.\.$/i;

interface Reports {
  readonly error: Report;
  readonly warn: Report;
}

export function compileIdentity(raw: unknown, sha256: Sha256, { error, warn }: Reports): Identity {
  const at: Path = ['identity'];
  const identity = read(identitySchema, raw ?? {}, at, error) ?? {};
  const defaults = read(defaultsSchema, identity.default ?? {}, [...at, 'default'], error) ?? {};
  const apiKey = compileKeyPlaces(identity.api_key ?? DEFAULT_API_KEY_PLACES, [...at, 'api_key'], error);
  const keys = identity.keys ?? [];
  for (const [index, item] of keys.entries()) warnOfKey(item, [...at, 'keys', index, 'key'], apiKey, warn);
  return {
    apiKey,
    keys: compileDirectory(keys, sha256, { error, warn }),
    unknownKeys: identity.unknown_keys ?? 'address',
    defaults: present(defaults),
    trustedHops: identity.trusted_hops ?? 0,
    ipv6Prefix: identity.ipv6_prefix ?? 64,
  };
}

function compileKeyPlaces(raw: readonly unknown[], at: Path, error: Report): readonly KeyLocation[] {
  const seen = new Set<string>();
  const places: KeyLocation[] = [];
  for (const [index, item] of raw.entries()) {
    const text = read(elements.keyLocation, item, [...at, index], error);
    if (text === undefined) continue;
    const place = placeOf(text);
    const identity = JSON.stringify(place);
    if (seen.has(identity)) error([...at, index], 'stands in this list already');
    seen.add(identity);
    places.push(place);
  }
  return places;
}

function placeOf(text: string): KeyLocation {
  if (text.toLowerCase() === 'authorization') return { in: 'authorization' };
  return text.startsWith('query:')
    ? { in: 'query', name: text.slice('query:'.length) }
    : { in: 'header', name: text.toLowerCase() };
}

function compileDirectory(
  raw: readonly unknown[],
  sha256: Sha256,
  { error, warn }: Reports,
): Identity['keys'] {
  const directory = new Map<string, Readonly<Record<string, string>>>();
  const firstAt = new Map<string, Path>();
  for (const [index, item] of raw.entries()) {
    const at: Path = ['identity', 'keys', index];
    const entry = read(directoryKeySchema, item, at, error);
    if (entry === undefined) continue;
    const { key, key_sha256: hash, ...attributes } = entry;
    const digest = digestOf({ key, hash }, at, { error, warn }, sha256);
    if (digest === undefined) continue;
    const first = firstAt.get(digest);
    if (first !== undefined) error(at, `is the same key as ${formatPath(first)}`);
    firstAt.set(digest, at);
    directory.set(digest, present(attributes));
  }
  return Object.fromEntries(directory);
}

/** Its caller would be counted as a stranger, and nobody would see why. */
function warnOfKey(entry: unknown, at: Path, places: readonly KeyLocation[], warn: Report): void {
  const key = (entry as { readonly key?: unknown } | null)?.key;
  if (typeof key !== 'string') return;
  const shut = places.filter((place) => !isKeyIn(place.in, key));
  if (shut.length === 0) return;
  if (shut.length === places.length)
    warn(
      at,
      `cannot be shown by a request: a key is at most ${KEY_LENGTH_MAX} visible characters of ASCII, without a comma`,
    );
  else if (shut.some((place) => place.in === 'authorization'))
    warn(
      at,
      'cannot be shown as a Bearer token, which has letters, digits and -._~+/ only, and "=" at its end',
    );
}

function digestOf(
  entry: { readonly key: string | undefined; readonly hash: string | undefined },
  at: Path,
  { error, warn }: Reports,
  sha256: Sha256,
): string | undefined {
  const { key, hash } = entry;
  if ((key === undefined) === (hash === undefined)) {
    error(at, 'wants one of "key" (the key itself) and "key_sha256" (its SHA-256)');
    return undefined;
  }
  if (key !== undefined) return sha256(key);
  if (hash !== undefined && SHA256_HEX.test(hash)) return hash.toLowerCase();
  if (hash !== undefined && SHORTENED_HEX.test(hash)) {
    warn([...at, 'key_sha256'], 'is cut short ("..."), so no key can match it: the entry is left out');
  } else {
    error([...at, 'key_sha256'], 'wants the 64 hexadecimal digits of a SHA-256');
  }
  return undefined;
}

export function compileAttributes(
  raw: unknown,
  identity: Identity,
  error: Report,
): Record<string, AttributeSource> {
  const declared: Record<string, AttributeSource> = {};
  for (const [name, source] of Object.entries((raw ?? {}) as Record<string, unknown>)) {
    const at: Path = ['attributes', name];
    const attribute = read(attributeSchema, source, at, error);
    if (!/^[a-z][a-z0-9_]*$/.test(name))
      error(at, 'wants a name of lower-case letters, digits and underscores');
    if (name.startsWith(LABEL_PREFIX))
      error(
        at,
        `begins with "${LABEL_PREFIX}", as what the key directory says of a caller does; give yours another name`,
      );
    if (isKnown(name)) error(at, 'is an attribute that every request has; give yours another name');
    if (attribute !== undefined && carriesKey(identity, attribute.header)) {
      error([...at, 'header'], 'is where API keys are: their text must not become the name of a counter');
    }
    // Declared even when wrong, so that the rules that use it are not reported as well.
    declared[name] = { header: attribute?.header ?? name, fold: attribute?.fold ?? false };
  }
  return declared;
}

function carriesKey(identity: Identity, header: string): boolean {
  if (header === 'authorization') return true;
  return identity.apiKey.some((place) => place.in === 'header' && place.name === header);
}

function isKnown(attribute: string): boolean {
  return attribute === UNVERIFIED_KEY || (KNOWN_ATTRIBUTES as readonly string[]).includes(attribute);
}

export function compileCors(raw: unknown, error: Report): readonly string[] {
  if (raw === undefined) return [];
  const cors = read(corsSchema, raw, ['cors'], error);
  const origins = (cors?.allow_origins ?? []).map((item, index) => {
    return read(elements.origin, item, ['cors', 'allow_origins', index], error);
  });
  return origins.filter((item) => item !== undefined);
}

/** The fields that have a value. */
function present(fields: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(fields).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
