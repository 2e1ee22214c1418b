/**
 * Who a caller is, once the key that it shows has been looked up.
 */
import { UNVERIFIED_KEY } from './attributes.ts';
import type { Identity, Ruleset } from './ruleset.ts';

/** What a directory says of a key. `unanswered`: it did not say. */
export type Caller =
  | { readonly kind: 'known'; readonly attributes: Readonly<Record<string, string>> }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'unanswered' };

const UNKNOWN: Caller = { kind: 'unknown' };

/** The keys that a ruleset says something of. */
export interface KnownKeys {
  readonly ruleset: Ruleset;
  /** Hashes that a rule names exactly. */
  readonly namedKeys: ReadonlySet<string>;
}

export function namedKeysOf({ rules }: Ruleset): ReadonlySet<string> {
  const nodes = rules.flatMap(({ path }) => path.filter(({ key }) => key === 'api_key'));
  return new Set(nodes.flatMap((node) => (node.match === 'exact' ? [node.value] : [])));
}

/** Whether the rule file itself says who this is, so that nobody need be asked. */
export function isListed(hash: string, { keys }: Identity): boolean {
  return Object.hasOwn(keys, hash);
}

/**
 * The attributes of a caller that shows the key of this hash (`undefined`: none). The rule file's own list comes before the directory.
 * A key that nobody could look up is a caller of its own among many, and gets what an unknown one gets.
 */
export function callerAttributes(
  hash: string | undefined,
  { ruleset, namedKeys }: KnownKeys,
  caller: Caller = UNKNOWN,
): Readonly<Record<string, string>> {
  const { keys, defaults, unknownKeys } = ruleset.identity;
  if (hash === undefined) return defaults;
  if (Object.hasOwn(keys, hash)) return { ...keys[hash], api_key: hash };
  if (caller.kind === 'known') return { ...caller.attributes, api_key: hash };
  // Where every key is a caller of its own it does not matter who it is; and a rule that names the key knows it.
  const isItself = unknownKeys === 'subject' || (caller.kind === 'unanswered' && namedKeys.has(hash));
  if (isItself) return { ...defaults, api_key: hash };
  return caller.kind === 'unanswered' ? { ...defaults, [UNVERIFIED_KEY]: hash } : defaults;
}
