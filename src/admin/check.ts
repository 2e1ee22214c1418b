/**
 * The check API: the decision without the proxy. Same engine and same answer as the gateway for the same attributes.
 *
 * A check holds no slot of a concurrency limit, since nobody says when the request ends, and charges an estimate as it stands.
 */
import { countsSlots } from '../core/decision.ts';
import { boundOf, type Topology } from '../engine/bound.ts';
import { mostConstrainedFirst, remainingOf, wholeSeconds } from '../engine/level.ts';
import { MESSAGE_FORMAT, type OwnerCall } from '../engine/messages.ts';
import type { Background } from '../engine/ports.ts';
import { answered } from '../engine/reports.ts';
import { type PolicyReport, refusedByClamp, type Verdict, verdictOf } from '../engine/verdict.ts';
import type { Winner } from '../policy/counter.ts';
import type { Facts } from '../policy/match.ts';
import { matchIn, servedRegion } from '../policy/place.ts';
import type { Region } from '../policy/region.ts';
import type { Rule } from '../policy/ruleset.ts';
import { topologyOf } from './bounds.ts';
import { resolve } from './facts.ts';
import type { AdminDecision, AdminDomain, AdminPorts, AdminQuestion } from './ports.ts';
import type { CheckAnswer, CheckBody } from './schemas.ts';

export async function check(
  domain: AdminDomain,
  { attributes, cost, peek = false, bound = false, region }: Omit<CheckBody, 'domain'>,
  surroundings: Surroundings,
): Promise<CheckAnswer> {
  const { facts, ignored } = await resolve(domain, attributes, surroundings);
  const question = { cost, region: region ?? surroundings.region };
  const decided = peek
    ? await foresee(domain, facts, question, surroundings.ports)
    : await domain.decide(facts, question, surroundings.background);
  decided.verdict.stay?.settle(decided.cost);
  decided.verdict.stay?.end();
  const answer = answerOf(decided, ignored);
  return bound ? withBounds(answer, decided, topologyOf(domain.ruleset, decided.cost)) : answer;
}

/** A clamp that denies is no rule, and has none. */
function withBounds(answer: CheckAnswer, { match }: AdminDecision, topology: Topology): CheckAnswer {
  const policies = answer.policies.map((policy) => {
    const winner = match.enforced.find(({ rule }) => rule.policy === policy.policy);
    const found = winner && boundOf(winner.rule, { ...topology, isShared: winner.owner.shared });
    return { ...policy, bound: found === undefined ? null : { ...found, sentences: [...found.sentences] } };
  });
  return { ...answer, policies };
}

interface Surroundings {
  readonly ports: AdminPorts;
  readonly background: Background;
  /** Where a request comes from that does not say. */
  readonly region: Region;
}

/**
 * What a request of this cost would meet, charging nobody and counting nothing: owners are asked what they would decide. What isolates
 * hold on lease they do not count, and a rule that each isolate counts by itself is taken to admit.
 */
async function foresee(
  domain: AdminDomain,
  facts: Facts,
  { cost: wanted, region }: AdminQuestion,
  ports: AdminPorts,
): Promise<AdminDecision> {
  const match = matchIn(domain.match(facts), servedRegion(domain.ruleset, region));
  const cost = wanted ?? match.cost;
  const { clamped, enforced } = match;
  if (clamped?.clamp.action === 'deny') {
    const verdict = refusedByClamp(Math.max(1, clamped.clamp.untilMs - ports.nowMs()));
    return { verdict, match, cost };
  }
  const owned = enforced.filter(({ rule }) => rule.scope !== 'local');
  const byOwner = Map.groupBy(owned, ({ owner }) => owner.name);
  const asked = await Promise.all(
    [...byOwner].map(([owner, winners]) => ask(ports, { owner, winners, cost })),
  );
  const reports = new Map(asked.flat().map((report) => [report.policy, report]));
  const policies = enforced.map(({ rule }) => reports.get(rule.policy) ?? unasked(rule, 'local'));
  return { verdict: verdictOf(policies), match, cost };
}

async function ask(
  ports: AdminPorts,
  { owner, winners, cost }: { owner: string; winners: readonly Winner[]; cost: number },
): Promise<readonly PolicyReport[]> {
  const call: OwnerCall = {
    format: MESSAGE_FORMAT,
    holder: 'admin',
    version: { activation: 0, builtAtMs: 0 },
    inspect: winners.map(({ counterId, rule }) => ({ id: counterId, limit: rule.limit! })),
    inspectCost: cost,
  };
  const reply = await ports.callOwner(owner, call).catch(() => undefined);
  return winners.map((winner) => {
    const report = reply?.inspected?.find(({ id }) => id === winner.counterId);
    return report === undefined ? unasked(winner.rule, 'fallback') : answered(winner, report);
  });
}

/** An owner that does not answer leaves it to the rule: open or closed. */
function unasked({ policy, limit, failureMode }: Rule, source: 'local' | 'fallback'): PolicyReport {
  const isClosed = source === 'fallback' && failureMode === 'closed';
  const outcome = isClosed ? 'unavailable' : 'allowed';
  return {
    policy,
    limit: limit!,
    outcome,
    source,
    waitMs: isClosed ? UNAVAILABLE_RETRY_MS : 0,
    level: undefined,
  };
}

/** An owner's breaker looks again twice a second, so by then there is something new to hear. */
const UNAVAILABLE_RETRY_MS = 1_000;

function answerOf(decided: AdminDecision, ignored: readonly string[]): CheckAnswer {
  const { verdict, cost } = decided;
  const { outcome, source, delayMs, retryAfterMs } = verdict;
  const policies = mostConstrainedFirst(verdict.policies);
  const first = policies[0];
  const hasWait = outcome === 'denied' || outcome === 'unavailable';
  return {
    allowed: outcome === 'allowed',
    reason: reasonOf(verdict, decided),
    policy: first?.policy ?? null,
    limit: first?.limit.quota ?? null,
    remaining: first?.level === undefined ? null : remainingOf(first),
    resetSeconds: first?.level === undefined ? null : wholeSeconds(first.level.resetMs, 0),
    retryAfterSeconds: hasWait ? wholeSeconds(retryAfterMs, 1) : null,
    delayMs: Math.ceil(delayMs),
    cost,
    source,
    shadowDenied: [...verdict.shadowDenied],
    policies: policies.map(policyAnswer),
    ignored: [...ignored],
  };
}

function policyAnswer(report: PolicyReport): CheckAnswer['policies'][number] {
  const { policy, outcome, source, limit, level, waitMs } = report;
  const hasWait = outcome === 'denied' || outcome === 'unavailable';
  return {
    policy,
    outcome,
    source,
    limit: limit.quota,
    windowSeconds: countsSlots(limit) ? null : wholeSeconds(limit.windowMs, 1),
    remaining: level === undefined ? null : remainingOf(report),
    resetSeconds: level === undefined ? null : wholeSeconds(level.resetMs, 0),
    retryAfterSeconds: hasWait ? wholeSeconds(waitMs, 1) : null,
  };
}

function reasonOf({ outcome }: Verdict, { match }: AdminDecision): CheckAnswer['reason'] {
  switch (outcome) {
    case 'allowed':
      return match.unmatched ? 'unmatched' : 'allowed';
    case 'denied':
      return match.clamped?.clamp.action === 'deny' ? 'clamped' : 'rate_limited';
    case 'impossible':
      return 'cost_exceeds_limit';
    case 'unavailable':
      return 'limiter_unavailable';
  }
}
