/**
 * Spreads the retries of callers that share a counter. All of them would be told the same second, and would come back in it together;
 * each is told up to `RETRY_SPREAD_SECONDS` more instead, and never less: whoever waits as told is still admitted. A counter of one
 * caller tells the exact wait, and so does a limit on requests in progress, whose wait is a guess.
 */
import { countsSlots } from '../core/decision.ts';
import { isAboutOneCaller, type Winner } from '../policy/counter.ts';
import type { PolicyReport, Verdict } from './verdict.ts';

/** The most under which nobody waits a second longer in the end (p99) than with the least spread that helps: `npm run sim -- retry-storm`. */
export const RETRY_SPREAD_SECONDS = 2;

/** `seconds` is drawn for each answer anew: a whole number, since clients are told whole seconds. */
export function spreadRetry(verdict: Verdict, enforced: readonly Winner[], seconds: number): Verdict {
  if (verdict.outcome !== 'denied' || seconds === 0 || enforced.every(isAboutOneCaller)) return verdict;
  const shared = new Set(
    enforced.filter((winner) => !isAboutOneCaller(winner)).map(({ rule }) => rule.policy),
  );
  const laterMs = seconds * 1_000;
  const policies = verdict.policies.map((report) =>
    report.outcome === 'denied' && shared.has(report.policy) && !countsSlots(report.limit)
      ? later(report, laterMs)
      : report,
  );
  const waits = policies.filter(({ outcome }) => outcome === 'denied').map(({ waitMs }) => waitMs);
  return { ...verdict, policies, retryAfterMs: Math.max(...waits) };
}

function later(report: PolicyReport, laterMs: number): PolicyReport {
  const { waitMs, level } = report;
  return {
    ...report,
    waitMs: waitMs + laterMs,
    level: level && { ...level, resetMs: level.resetMs + laterMs },
  };
}
