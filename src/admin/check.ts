/**
 * The check API: the decision without the proxy. Same engine and same answer as the gateway for the same attributes.
 *
 * A check holds no slot of a concurrency limit, since nobody says when the request ends, and charges an estimate as it stands.
 */
import { countsSlots } from '../core/decision.ts';
import { mostConstrainedFirst, remainingOf, wholeSeconds } from '../engine/level.ts';
import type { Background } from '../engine/ports.ts';
import type { PolicyReport, Verdict } from '../engine/verdict.ts';
import { resolve } from './facts.ts';
import type { AdminDecision, AdminDomain, AdminPorts } from './ports.ts';
import type { CheckAnswer, CheckBody } from './schemas.ts';

export async function check(
  domain: AdminDomain,
  { attributes, cost, peek = false }: Pick<CheckBody, 'attributes' | 'cost' | 'peek'>,
  surroundings: { ports: AdminPorts; background: Background },
): Promise<CheckAnswer> {
  const { facts, ignored } = await resolve(domain, attributes, surroundings);
  const decided = await domain.decide(facts, peek ? 0 : cost, surroundings.background);
  const asked = peek ? (cost ?? decided.match.cost) : decided.cost;
  decided.verdict.stay?.settle(decided.cost);
  decided.verdict.stay?.end();
  return answerOf(peek ? foreseen(decided.verdict, asked) : decided.verdict, {
    decided,
    cost: asked,
    ignored,
  });
}

/** What a request of this cost would meet: a peek is decided at cost 0, which always fits, so the levels are compared here. */
function foreseen(verdict: Verdict, cost: number): Verdict {
  if (verdict.outcome !== 'allowed') return verdict;
  const policies = verdict.policies.map((report): PolicyReport => {
    const needed = countsSlots(report.limit) ? Math.min(1, cost) : cost;
    const isRoom = report.level === undefined || report.level.remaining >= needed;
    return isRoom ? report : { ...report, outcome: 'denied', waitMs: waitFor(report, needed) };
  });
  const denying = policies.filter(({ outcome }) => outcome === 'denied');
  if (denying.length === 0) return verdict;
  return {
    ...verdict,
    outcome: 'denied',
    policies,
    retryAfterMs: Math.max(...denying.map(({ waitMs }) => waitMs)),
  };
}

/** A bucket fills unit by unit; of the others the reset is the time from which a unit is certain. */
function waitFor({ limit, level }: PolicyReport, cost: number): number {
  const resetMs = level?.resetMs ?? 0;
  if (limit.algorithm !== 'token_bucket' || limit.quota === 0) return Math.max(1, resetMs);
  return Math.max(1, ((cost - (level?.remaining ?? 0)) * limit.windowMs) / limit.quota);
}

interface About {
  readonly decided: AdminDecision;
  readonly cost: number;
  readonly ignored: readonly string[];
}

function answerOf(verdict: Verdict, { decided, cost, ignored }: About): CheckAnswer {
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
