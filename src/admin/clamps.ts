/** Clamps through the admin API: who is meant, how long, and what is said of those in force. */
import { parseAddress } from '../policy/address.ts';
import type { Clamp } from '../policy/clamp.ts';
import type { ControlApi, StoredClamp } from '../policy/control.ts';
import type { Pairs } from '../policy/counter.ts';
import { regionalOwners } from '../policy/place.ts';
import { invalidAttribute, isAttribute, KEY_ATTRIBUTES, keyHashOf } from './facts.ts';
import type { AdminDomain } from './ports.ts';
import { notFound, ProblemError } from './problems.ts';
import type { Attributes, ClampBody } from './schemas.ts';

/** All of a domain's clamps travel together. */
const VALUE_LENGTH_MAX = 256;

interface Change {
  readonly control: ControlApi;
  readonly author: string;
  readonly nowMs: number;
}

export async function setClamp(domain: AdminDomain, body: ClampBody, { control, author, nowMs }: Change) {
  const { action, rpm, forSeconds } = body;
  const pairs = pairsOf(domain, body.attributes);
  const owner = domain.matcher.ownerOf(pairs);
  const limit: Clamp['limit'] =
    rpm === undefined
      ? undefined
      : { algorithm: 'token_bucket', quota: rpm, windowMs: 60_000, burst: rpm, maxDelayMs: 0 };
  const made = await control.clamp({
    domain: domain.ruleset.domain,
    pairs,
    action,
    ...(limit && { limit }),
    untilMs: nowMs + forSeconds * 1_000,
    owner: owner.name,
    regionalOwners: regionalOwners(domain.ruleset, owner),
    author,
    atMs: nowMs,
  });
  if (made === 'too_many') {
    throw new ProblemError({
      status: 409,
      error: 'too_many_clamps',
      message: 'There are as many clamps as a domain may have. Lift some, or write a rule.',
    });
  }
  const said = shown({ clamp: made.clamp, author, atMs: nowMs });
  return { clamp: made.clamp, said: { clamp: said, ...told(made.untold) } };
}

export async function liftClamp(
  domain: AdminDomain,
  attributes: Attributes,
  { control, author, nowMs }: Change,
) {
  const pairs = pairsOf(domain, attributes);
  const stored = await control.findClamp(domain.ruleset.domain, pairs);
  if (stored === undefined) throw new ProblemError(notFound('There is no clamp on this caller.'));
  const { owner, clamp } = stored;
  const { untilMs } = clamp;
  const made = await control.clamp({
    domain: clamp.domain,
    pairs,
    action: 'none',
    untilMs,
    owner,
    author,
    atMs: nowMs,
  });
  if (made === 'too_many') throw new Error('lifting a clamp never makes too many of them');
  return { clamp: made.clamp, said: { lifted: shown({ ...stored, clamp }), ...told(made.untold) } };
}

export function shown({ clamp, author, atMs }: Pick<StoredClamp, 'clamp' | 'author' | 'atMs'>) {
  const { domain, pairs, action, limit, untilMs } = clamp;
  return {
    domain,
    attributes: Object.fromEntries(
      pairs.map(([name, value]) => [name === 'api_key' ? 'api_key_sha256' : name, value]),
    ),
    action,
    ...(limit && { rpm: limit.quota }),
    until: new Date(untilMs).toISOString(),
    author,
    at: new Date(atMs).toISOString(),
  };
}

/** Whoever has not been told yet is told again; meanwhile isolates learn of it with their next refresh. */
function told(untold: string | undefined) {
  return { told: untold === undefined, ...(untold !== undefined && { untold }) };
}

/** The caller is named as its counters are: a key by its hash, an address by what it counts by. */
function pairsOf(domain: AdminDomain, attributes: Attributes): Pairs {
  const named: Record<string, string> = {};
  for (const [name, value] of Object.entries(attributes)) {
    if (KEY_ATTRIBUTES.has(name)) continue;
    if (name === 'subject' || name === 'method')
      throw invalidAttribute(name, 'cannot be clamped: name an attribute of the caller, such as api_key');
    if (!isAttribute(domain, name))
      throw invalidAttribute(name, 'is an attribute that no request of this domain has');
    if (name === 'remote_address' && parseAddress(String(value)) === undefined)
      throw invalidAttribute(name, 'is no address: write one such as 203.0.113.9 or 2001:db8::1');
    if (String(value).length > VALUE_LENGTH_MAX)
      throw invalidAttribute(name, `has more than ${VALUE_LENGTH_MAX} characters`);
    named[name] = String(value);
  }
  const hash = keyHashOf(attributes);
  if (hash !== undefined) named.api_key = hash;
  const names = Object.keys(named);
  if (names.length === 0) throw invalidAttribute('', 'is empty: name the caller');
  const pairs = domain.matcher.pairsOf({ attributes: named }, names);
  if (pairs === undefined) throw invalidAttribute('', 'has a value that no request can have');
  return pairs;
}
