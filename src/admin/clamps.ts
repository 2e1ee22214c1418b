/** Clamps through the admin API: who is meant, how long, and what is said of those in force. */
import { parseAddress } from '../policy/address.ts';
import { isListed } from '../policy/caller.ts';
import type { Clamp } from '../policy/clamp.ts';
import type { ControlApi, StoredClamp } from '../policy/control.ts';
import type { Pairs } from '../policy/counter.ts';
import { isAttribute, keyHash } from './facts.ts';
import type { AdminDomain } from './ports.ts';
import { notFound, ProblemError } from './problems.ts';
import type { Attributes, ClampBody } from './schemas.ts';

interface Change {
  readonly control: ControlApi;
  readonly author: string;
  readonly nowMs: number;
}

export async function setClamp(domain: AdminDomain, body: ClampBody, { control, author, nowMs }: Change) {
  const { action, rpm, forSeconds } = body;
  const pairs = pairsOf(domain, body.attributes);
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
    owner: domain.matcher.ownerOf(pairs).name,
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
  const warnings = await warningsOf(domain, pairs, control);
  return { clamp: shown({ clamp: made.clamp, author, atMs: nowMs }), ...told(made.untold), warnings };
}

/** A key that nobody knows is counted by its address, so a clamp on it would stop nobody. */
async function warningsOf(
  { ruleset }: AdminDomain,
  pairs: Pairs,
  control: ControlApi,
): Promise<readonly string[]> {
  const { identity } = ruleset;
  const hash = pairs.find(([attribute]) => attribute === 'api_key')?.[1];
  if (hash === undefined || isListed(hash, identity) || identity.unknownKeys === 'subject') return [];
  if ((await control.key(hash)) !== null) return [];
  return [
    'Neither the rules nor the key directory know this key: requests that show it are counted by their address, and this clamp does not meet them.',
  ];
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
  return { lifted: shown({ ...stored, clamp }), ...told(made === 'too_many' ? undefined : made.untold) };
}

export function shown({ clamp, author, atMs }: Omit<StoredClamp, 'owner'>) {
  const { domain, pairs, action, limit, untilMs } = clamp;
  return {
    domain,
    attributes: Object.fromEntries(
      pairs.map(([name, value]) => [name, name === 'api_key' ? `sha256:${value}` : value]),
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
    if (name === 'subject' || name === 'method')
      throw invalid(name, 'cannot be clamped: name an attribute of the caller, such as api_key');
    if (!isAttribute(domain, name)) throw invalid(name, 'is an attribute that no request of this domain has');
    if (name === 'remote_address' && parseAddress(String(value)) === undefined)
      throw invalid(name, 'is no address: write one such as 203.0.113.9 or 2001:db8::1');
    named[name] = name === 'api_key' ? keyHash(String(value)) : String(value);
  }
  const names = Object.keys(named);
  if (names.length === 0) throw invalid('attributes', 'is empty: name the caller');
  const pairs = domain.matcher.pairsOf({ attributes: named }, names);
  if (pairs === undefined) throw invalid('attributes', 'has a value that no request can have');
  return pairs;
}

function invalid(at: string, message: string): ProblemError {
  const path = at === 'attributes' ? [at] : ['attributes', at];
  return new ProblemError({
    status: 422,
    error: 'invalid_request',
    message: 'The body is not what this path takes.',
    errors: [{ path, message }],
  });
}
