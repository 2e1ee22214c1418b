/**
 * A caller's counters as their owners hold them, of the whole and in every region: to be looked at, and to be set back to full.
 */
import { wholeSeconds } from '../engine/level.ts';
import { type CounterReport, MESSAGE_FORMAT, type OwnerCall } from '../engine/messages.ts';
import type { Background } from '../engine/ports.ts';
import type { Winner } from '../policy/counter.ts';
import { placesOf, regionsOf } from '../policy/place.ts';
import { ruleLabel } from '../policy/rule-label.ts';
import { resolve } from './facts.ts';
import type { AdminDomain, AdminPorts } from './ports.ts';
import { ProblemError } from './problems.ts';
import type { Attributes } from './schemas.ts';

interface Surroundings {
  readonly ports: AdminPorts;
  readonly background: Background;
}

export async function inspect(domain: AdminDomain, attributes: Attributes, surroundings: Surroundings) {
  const found = await countersOf(domain, attributes, surroundings);
  const reports = await eachOwner(found, async (owner, winners) => {
    const named = winners.map(({ counterId, rule }) => ({ id: counterId, limit: rule.limit! }));
    const reply = await callOwner(surroundings.ports, owner, { inspect: named });
    return winners.map((winner) =>
      describe(
        winner,
        reply.inspected?.find(({ id }) => id === winner.counterId),
      ),
    );
  });
  return { counters: reports.flat(), ...besides(found) };
}

export async function reset(domain: AdminDomain, attributes: Attributes, surroundings: Surroundings) {
  const found = await countersOf(domain, attributes, surroundings);
  const ids = await eachOwner(found, async (owner, winners) => {
    const owned = winners.map(({ counterId }) => counterId);
    await callOwner(surroundings.ports, owner, { reset: owned });
    return owned;
  });
  domain.forget(ids.flat());
  return { reset: ids.flat(), ...besides(found) };
}

interface Found {
  readonly owned: readonly Winner[];
  /** Counted in each isolate by itself, where nobody can look. */
  readonly local: readonly Winner[];
  readonly ignored: readonly string[];
  /** What an operator has decided about the caller: counters alone do not say why it is refused. */
  readonly clamp: string | null;
}

/** Policies that isolates count by themselves, and attributes that no rule of this domain knows. */
function besides({ local, ignored, clamp }: Found) {
  return { local: local.map(({ rule }) => rule.policy), ignored, clamp };
}

async function countersOf(
  domain: AdminDomain,
  attributes: Attributes,
  surroundings: Surroundings,
): Promise<Found> {
  const { facts, ignored } = await resolve(domain, attributes, surroundings);
  const { enforced, shadow, clamped } = domain.match(facts);
  const regions = regionsOf(domain.ruleset);
  const winners = [...enforced, ...shadow].flatMap((winner) => placesOf(winner, regions));
  return {
    owned: winners.filter(({ rule }) => rule.scope !== 'local'),
    local: winners.filter(({ rule }) => rule.scope === 'local'),
    ignored,
    clamp: clamped?.clamp.action ?? null,
  };
}

/** Owners in parallel; if one does not answer, nothing is said of the others, or it would look like all there is. */
function eachOwner<Value>(
  { owned }: Found,
  ask: (owner: string, winners: readonly Winner[]) => Promise<Value>,
): Promise<Value[]> {
  const byOwner = Map.groupBy(owned, ({ owner }) => owner.name);
  return Promise.all([...byOwner].map(([owner, winners]) => ask(owner, winners)));
}

async function callOwner(ports: AdminPorts, owner: string, wish: Pick<OwnerCall, 'inspect' | 'reset'>) {
  const call: OwnerCall = {
    format: MESSAGE_FORMAT,
    holder: 'admin',
    version: { activation: 0, builtAtMs: 0 },
    ...wish,
  };
  try {
    return await ports.callOwner(owner, call);
  } catch {
    throw new ProblemError({
      status: 503,
      error: 'owner_unavailable',
      message: 'An owner of these counters did not answer. Try again shortly.',
      headers: { 'Retry-After': '1' },
    });
  }
}

function describe({ rule, counterId, owner, pairs }: Winner, report: CounterReport | undefined) {
  const limit = report?.limit ?? rule.limit!;
  return {
    policy: rule.policy,
    rule: ruleLabel(rule),
    shadow: rule.shadow,
    caller: Object.fromEntries(pairs),
    counter: counterId,
    owner: owner.name,
    /** `null` for what is counted wherever it was first asked for. */
    region: owner.hint ?? null,
    algorithm: limit.algorithm,
    limit: limit.quota,
    windowSeconds: limit.windowMs / 1_000,
    burst: limit.burst,
    remaining: report?.remaining ?? null,
    resetSeconds: report === undefined ? null : wholeSeconds(report.resetMs, 0),
    activeHolders: report?.activeHolders ?? 0,
  };
}
