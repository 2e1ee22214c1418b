/**
 * Who is counted: the identity of a counter, and the owner that holds it.
 *
 * A counter is (domain, policy, enforced or shadow, the rule's path, the counted pairs): no number and no list position is in it,
 * so changing a limit or the order of a file keeps what was counted. Every part is written with its length in front, so two
 * different tuples never spell the same string, whatever delimiters their values hold.
 */
import { CALLER_ATTRIBUTES, isInventable } from './attributes.ts';
import { withoutPlace } from './place.ts';
import type { Region } from './region.ts';
import type { Rule } from './ruleset.ts';

/** (attribute, value), sorted by attribute. A subject is its resolved attribute: `['api_key', hash]`, never a bare value. */
export type Pairs = readonly (readonly [attribute: string, value: string])[];

/** Which Durable Object holds a counter. `name` is injective over (domain, pairs) and holds no raw key. */
export interface OwnerRef {
  readonly name: string;
  /** One of the fixed number of owners that values which a client can invent are spread over. */
  readonly shared: boolean;
  /** Where the object is made, said with every call: the first one decides. Absent where it is wherever it is first called from. */
  readonly hint?: Region;
}

/** A rule that won in its policy, with the counter it is counted on. `unlimited` rules have no counter. */
export interface Winner {
  readonly rule: Rule;
  readonly counterId: string;
  readonly owner: OwnerRef;
  readonly pairs: Pairs;
}

/** Whether one caller alone is counted there; else it shares the counter with others. */
export function isAboutOneCaller({ pairs }: Winner): boolean {
  return pairs.some(([attribute]) => CALLER_ATTRIBUTES.has(attribute));
}

/**
 * How many owners share what clients can invent. At 500 calls a second each, 256 of them take 128,000 a second; and no flood of
 * invented values makes more objects than that.
 */
export const SHARED_OWNERS = 256;

const SHARED_PREFIX = 'shared/';

/**
 * The longest value that is written out in an identity. Values of ours are far shorter; a client's header may have 16 KB, and
 * thousands of those would fill an owner's memory. A longer one is written as its length and a 128-bit hash.
 */
const VALUE_LENGTH_MAX = 256;

/** The part of a counter's identity that its rule gives: made once a rule, not once a request. */
export function rulePrefix(domain: string, rule: Pick<Rule, 'path' | 'policy' | 'shadow'>): string {
  const nodes = rule.path.map((node) => part(node.key) + (node.match === 'any' ? '*' : part(node.value)));
  return `${part(domain)}${part(rule.policy)}${rule.shadow ? 's' : 'e'}${nodes.length}/${nodes.join('')}`;
}

/** Injective over everything that a counter is. */
export function counterId(prefix: string, pairs: Pairs): string {
  return `${prefix}|${encodePairs(pairs)}`;
}

/**
 * The owner of a tuple. `seed` spreads invented values over the shared owners; it must be the same in every isolate, or one
 * caller would have several counters.
 */
export function ownerOf(domain: string, pairs: Pairs, seed: number): OwnerRef {
  const encoded = encodePairs(pairs);
  if (!pairs.some(([attribute]) => isInventable(attribute))) {
    return { name: `own/${part(domain)}${encoded}`, shared: false };
  }
  return { name: `${SHARED_PREFIX}${part(domain)}${hash32(encoded, seed) % SHARED_OWNERS}`, shared: true };
}

/** Whether an owner's name is that of a shared one, wherever it is. */
export function isSharedName(name: string): boolean {
  return withoutPlace(name).startsWith(SHARED_PREFIX);
}

/**
 * The pairs, spelt as `encodePairs` does, that a counter's id ends with; `undefined` for what is no counter's id. It is read from the
 * front, part by part, since a value may look like the end of an id.
 */
export function pairsOfId(placedId: string): string | undefined {
  const id = withoutPlace(placedId);
  const afterDomain = skipPart(id, 0);
  const afterPolicy = skipPart(id, afterDomain);
  const mode = /[es](\d+)\//y;
  mode.lastIndex = Math.max(0, afterPolicy);
  const nodes = Number(mode.exec(id)?.[1] ?? Number.NaN);
  let at = mode.lastIndex;
  for (let node = 0; node < nodes && at >= 0; node += 1) {
    at = skipPart(id, at);
    at = id[at] === '*' ? at + 1 : skipPart(id, at);
  }
  return afterPolicy > 0 && nodes >= 0 && at > 0 && id[at] === '|' ? id.slice(at + 1) : undefined;
}

/** Where the part that begins at `at` ends; -1 when there is none. */
function skipPart(text: string, at: number): number {
  const length = /(\d+)([:#])/y;
  length.lastIndex = Math.max(0, at);
  const found = at < 0 ? null : length.exec(text);
  if (found === null) return -1;
  return length.lastIndex + (found[2] === '#' ? HASH_DIGITS : Number(found[1]));
}

/** Injective over pairs, whatever their values hold. */
export function encodePairs(pairs: Pairs): string {
  let encoded = '';
  for (const [attribute, value] of pairs) encoded += part(attribute) + part(value);
  return encoded;
}

/** `length:text`: whoever reads the length knows where the text ends, so nothing in it can pass for a boundary. */
function part(text: string): string {
  return text.length <= VALUE_LENGTH_MAX ? `${text.length}:${text}` : `${text.length}#${hash128(text)}`;
}

/** 128 bits in hexadecimal. */
const HASH_DIGITS = 32;

function hash128(text: string): string {
  return [1, 2, 3, 4].map((seed) => hash32(text, seed).toString(16).padStart(8, '0')).join('');
}

/** A multiply-and-shift hash in the manner of MurmurHash3: it spreads well, and resists nobody who knows the seed. */
function hash32(text: string, seed: number): number {
  let hash = seed | 0;
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x9e3779b1);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
