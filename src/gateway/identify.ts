/**
 * From a request to the facts that rules speak about: who calls, from where, for what.
 *
 * Total: whatever a client sends gives facts and never an error. A key that is empty, too long, repeated or malformed is no key; an
 * address that cannot be read shares one counter with all of its kind. Raw keys end here: what goes on is their SHA-256.
 */
import { BoundedMap } from '../engine/bounded-map.ts';
import { countedBy, UNKNOWN_ADDRESS } from '../policy/address.ts';
import { bearerTokenOf, isKeyIn } from '../policy/api-key.ts';
import { type Caller, callerAttributes, isListed } from '../policy/caller.ts';
import type { Facts } from '../policy/match.ts';
import { cfOf } from '../policy/region.ts';
import { normalisePath } from '../policy/route-pattern.ts';
import type { KeyLocation } from '../policy/ruleset.ts';
import { hexOf } from '../policy/sha256.ts';
import type { Snapshot } from './snapshot.ts';
import { hostOf, pathOf } from './target.ts';

/** Hashing takes longer than all the rest together, so the hashes of keys seen lately are kept: about 250 bytes each. */
const HASHES_MAX = 8_192;

const hashes = new BoundedMap<string>(HASHES_MAX);

/** Asks the key directory who shows this key, and for what address that counts. */
export type LookUp = (hash: string, address: () => string) => Caller | Promise<Caller>;

/** At once, unless a key is seen for the first time: then its hash has to be waited for, and the directory where there is one. */
export function identify(
  request: Request,
  snapshot: Snapshot,
  method: string,
  lookUp?: LookUp,
): Facts | Promise<Facts> {
  const key = keyOf(request, snapshot.ruleset.identity.apiKey);
  if (key === undefined) return factsOf(request, snapshot, { method }, snapshot.ruleset.identity.defaults);
  const hash = hashes.get(key);
  const known = (found: string) => identifyKnown(request, snapshot, { method, hash: found, lookUp });
  return hash === undefined ? remember(key).then(known) : known(hash);
}

interface Shown {
  readonly method: string;
  readonly hash: string;
  readonly lookUp: LookUp | undefined;
}

function identifyKnown(
  request: Request,
  snapshot: Snapshot,
  { method, hash, lookUp }: Shown,
): Facts | Promise<Facts> {
  const { identity } = snapshot.ruleset;
  const facts = (caller?: Caller) =>
    factsOf(request, snapshot, { method, hash }, callerAttributes(hash, snapshot, caller));
  if (lookUp === undefined || isListed(hash, identity)) return facts();
  const address = () => countedBy(addressOf(request, identity.trustedHops), identity.ipv6Prefix);
  const caller = lookUp(hash, address);
  return caller instanceof Promise ? caller.then(facts) : facts(caller);
}

function factsOf(
  request: Request,
  snapshot: Snapshot,
  { method, hash }: { method: string; hash?: string },
  caller: Readonly<Record<string, string>>,
): Facts {
  const { ruleset } = snapshot;
  const { identity } = ruleset;
  const attributes: Record<string, string> = { ...caller };
  // Each costs a trip out of the script, so only what a rule asks about is looked up.
  if (isAsked(snapshot, 'host')) set(attributes, 'host', hostOf(request.url));
  if (isAsked(snapshot, 'country')) set(attributes, 'country', textOf(cfOf(request)?.country));
  if (isAsked(snapshot, 'asn')) set(attributes, 'asn', textOf(cfOf(request)?.asn));
  for (const name in ruleset.attributes) {
    const source = ruleset.attributes[name];
    if (source !== undefined) set(attributes, name, headerValue(request, source.header));
  }
  // Also the subject of whoever is known by nothing else, and of a preflight.
  const isKnown = attributes.api_key !== undefined || attributes.user !== undefined;
  if (!isKnown || isAsked(snapshot, 'remote_address') || method === 'OPTIONS')
    attributes.remote_address = addressOf(request, identity.trustedHops) ?? UNKNOWN_ADDRESS;
  const path = ruleset.routes.length === 0 ? undefined : normalisePath(pathOf(request.url));
  return { attributes, path, method, key: hash };
}

/** Whether a rule or a clamp asks about this attribute. */
function isAsked({ attributes, clamps }: Snapshot, name: string): boolean {
  return attributes.has(name) || (!clamps.isEmpty && clamps.isAbout(name));
}

/** SHA-256 in lower-case hex. */
export async function sha256(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)));
  return hexOf(digest);
}

async function remember(key: string): Promise<string> {
  const hash = await sha256(key);
  hashes.set(key, hash);
  return hash;
}

function keyOf(request: Request, locations: readonly KeyLocation[]): string | undefined {
  for (const location of locations) {
    const key = keyAt(request, location);
    if (key !== undefined) return key;
  }
  return undefined;
}

function keyAt(request: Request, location: KeyLocation): string | undefined {
  if (location.in === 'authorization') return bearerTokenOf(request.headers.get('authorization'));
  const shown =
    location.in === 'header' ? request.headers.get(location.name) : onlyParameter(request.url, location.name);
  return shown != null && isKeyIn(location.in, shown) ? shown : undefined;
}

/** The value of a query parameter that is there once. */
function onlyParameter(url: string, name: string): string | undefined {
  const start = url.indexOf('?');
  if (start < 0) return undefined;
  const values = new URLSearchParams(url.slice(start)).getAll(name);
  return values.length === 1 ? values[0] : undefined;
}

/** What the platform says; or, behind proxies of one's own, the entry that the outermost of them wrote. */
function addressOf(request: Request, trustedHops: number): string | undefined {
  const platform = request.headers.get('cf-connecting-ip') || undefined;
  if (trustedHops === 0) return platform;
  const forwarded = (request.headers.get('x-forwarded-for') ?? '').split(',');
  return bareAddress(forwarded.at(-trustedHops)?.trim() ?? '') || platform;
}

/** Some proxies write ports, brackets or quotes about it. */
function bareAddress(written: string): string {
  const [, six, four] = /^"?(?:\[([^\]]+)\]|([\d.]+))(?::\d+)?"?$/.exec(written) ?? [];
  return six ?? four ?? written;
}

/** Trimmed and in one normal form, so that a value has one spelling. */
function headerValue(request: Request, header: string): string | undefined {
  return request.headers.get(header)?.trim().normalize('NFC') || undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : undefined;
}

function set(attributes: Record<string, string>, name: string, value: string | undefined): void {
  if (value !== undefined && value !== '') attributes[name] = value;
}
