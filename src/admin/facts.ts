/**
 * From the attributes that a service sends to the facts that rules speak about, resolved as the gateway resolves a request's. A raw key
 * ends here: what goes on is its SHA-256.
 */

import type { Background } from '../engine/ports.ts';
import { UNKNOWN_ADDRESS } from '../policy/address.ts';
import { KNOWN_ATTRIBUTES } from '../policy/attributes.ts';
import { callerAttributes, isListed } from '../policy/caller.ts';
import { isLabelAttribute } from '../policy/directory.ts';
import type { Facts } from '../policy/match.ts';
import { normalisePath } from '../policy/route-pattern.ts';
import { sha256 } from '../policy/sha256.ts';
import type { AdminDomain, AdminPorts } from './ports.ts';
import type { Attributes } from './schemas.ts';

export interface Resolved {
  readonly facts: Facts;
  /** Attributes that no rule of the domain can know. */
  readonly ignored: readonly string[];
}

/** Not facts by themselves: the subject is worked out, and the others are read apart. */
const READ_APART: ReadonlySet<string> = new Set(['subject', 'api_key', 'path', 'route', 'method']);

export async function resolve(
  domain: AdminDomain,
  attributes: Attributes,
  { ports, background }: { ports: AdminPorts; background: Background },
): Promise<Resolved> {
  const { identity } = domain.ruleset;
  const all = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, String(value)]));
  const hash = all.api_key === undefined || all.api_key === '' ? undefined : keyHash(all.api_key);
  const isAsked = hash !== undefined && !isListed(hash, identity);
  const caller = isAsked
    ? await ports.lookUp(hash, all.remote_address ?? UNKNOWN_ADDRESS, background)
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
      attributes: { ...callerAttributes(hash, identity, caller), ...given },
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

/** `sha256:` and 64 digits stand for a key that is not at hand. */
export function keyHash(key: string): string {
  const digits = /^sha256:([0-9a-f]{64})$/i.exec(key)?.[1];
  return digits?.toLowerCase() ?? sha256(key);
}
