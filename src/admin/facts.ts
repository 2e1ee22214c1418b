/**
 * From the attributes that a service sends to the facts that rules speak about, resolved as the gateway resolves a request's. A raw key
 * ends here: what goes on is its SHA-256.
 */

import type { Background } from '../engine/ports.ts';
import { countedBy } from '../policy/address.ts';
import { KNOWN_ATTRIBUTES } from '../policy/attributes.ts';
import { callerAttributes, isListed } from '../policy/caller.ts';
import { isLabelAttribute } from '../policy/directory.ts';
import type { Facts } from '../policy/match.ts';
import { normalisePath } from '../policy/route-pattern.ts';
import { sha256 } from '../policy/sha256.ts';
import type { AdminDomain, AdminPorts } from './ports.ts';
import { ProblemError } from './problems.ts';
import type { Attributes } from './schemas.ts';

export interface Resolved {
  readonly facts: Facts;
  /** Attributes that no rule of the domain can know. */
  readonly ignored: readonly string[];
}

export async function resolve(
  domain: AdminDomain,
  attributes: Attributes,
  { ports, background }: { ports: AdminPorts; background: Background },
): Promise<Resolved> {
  const { identity } = domain.ruleset;
  const all = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)]));
  const hash = keyHashOf(attributes);
  const isAsked = hash !== undefined && !isListed(hash, identity);
  const caller = isAsked
    ? await ports.lookUp(hash, countedBy(all.remote_address, identity.ipv6Prefix), background)
    : undefined;
  const given: Record<string, string> = {};
  const ignored: string[] = [];
  for (const [name, value] of Object.entries(all)) {
    if (READ_APART.has(name)) continue;
    if (isAttribute(domain, name)) given[name] = value;
    else ignored.push(name);
  }
  const path = all.path ?? all.route;
  return {
    facts: {
      attributes: { ...callerAttributes(hash, domain, caller), ...given },
      key: hash,
      path: path === undefined || path === '' ? undefined : normalisePath(path),
      method: all.method,
    },
    ignored,
  };
}

/** Whether a request of this domain can have an attribute of this name. */
export function isAttribute({ ruleset }: AdminDomain, name: string): boolean {
  const isKnown = (KNOWN_ATTRIBUTES as readonly string[]).includes(name);
  return isKnown || Object.hasOwn(ruleset.attributes, name) || isLabelAttribute(name);
}

/** How a key is named: the key itself, or its SHA-256 where the key is not at hand. Whatever `api_key` looks like, it is a key. */
export const KEY_ATTRIBUTES: ReadonlySet<string> = new Set(['api_key', 'api_key_sha256']);

/** The SHA-256 of the key that is named, if one is. Rejects with a problem what cannot be one. */
export function keyHashOf({ api_key: key, api_key_sha256: hash }: Attributes): string | undefined {
  if (hash !== undefined) {
    if (/^[0-9a-f]{64}$/i.test(String(hash))) return String(hash).toLowerCase();
    throw invalidAttribute('api_key_sha256', 'wants the 64 hexadecimal digits of a SHA-256');
  }
  return key === undefined || key === '' ? undefined : sha256(String(key));
}

/** `name` empty: the attributes as a whole. */
export function invalidAttribute(name: string, message: string): ProblemError {
  return new ProblemError({
    status: 422,
    error: 'invalid_request',
    message: 'The body is not what this path takes.',
    errors: [{ path: ['attributes', ...(name === '' ? [] : [name])], message }],
  });
}

/** Not facts by themselves: the subject is worked out, and the others are read apart. */
const READ_APART: ReadonlySet<string> = new Set(['subject', ...KEY_ATTRIBUTES, 'path', 'route', 'method']);
