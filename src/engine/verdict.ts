/**
 * What the gate is asked about a request, and what it answers.
 */
import type { Decision, Limit } from '../core/decision.ts';
import { CLAMP_POLICY } from '../policy/clamp.ts';
import type { Winner } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';

/** What made a decision; `none` when no rule had to. */
export type Source = 'owner' | 'lease' | 'local' | 'deny_memory' | 'fallback' | 'none';

export interface GateRequest {
  readonly version: Version;
  /** The winning rule of each policy; all of them must admit the request. */
  readonly enforced: readonly Winner[];
  /** Winners of shadow rules: charged and reported, never deciding. */
  readonly shadow: readonly Winner[];
  /** Whole units, >= 0; 0 is a peek. */
  readonly cost: number;
  /** The largest cost that the ruleset gives any request: a fallback bucket holds at least this. */
  readonly largestCost: number;
  /** The cost is an estimate, which `Verdict.stay` will correct. */
  readonly isEstimate?: boolean;
  readonly deadlineMs: number;
  /** An operator has decided to refuse this caller, whatever the rules say. */
  readonly denyUntilMs?: number | undefined;
}

/**
 * - `allowed`: go on, after `delayMs`.
 * - `denied`: a policy is used up.
 * - `impossible`: the cost is above what a policy can ever hold.
 * - `unavailable`: an owner did not answer, and a rule says that it is then closed.
 */
export type VerdictOutcome = Decision['outcome'] | 'unavailable';

export interface Verdict {
  readonly outcome: VerdictOutcome;
  readonly source: Source;
  /** How long the gateway holds the request back before it goes on. */
  readonly delayMs: number;
  /** The longest wait among the denying policies; 0 unless `denied` or `unavailable`. */
  readonly retryAfterMs: number;
  /** One per enforced limited policy, in the order of the rules. */
  readonly policies: readonly PolicyReport[];
  /** Shadow policies that would have denied, as far as known when the verdict fell. */
  readonly shadowDenied: readonly string[];
  /** Of an admitted request that holds slots or was charged an estimate: to be told how it ends. */
  readonly stay?: InProgress;
}

/** An admitted request that is still in progress. */
export interface InProgress {
  /** What it has turned out to cost, in whole units; only the first word counts. */
  settle(units: number): void;
  /** Its response has ended, in whatever way. */
  end(): void;
}

export interface PolicyReport {
  readonly policy: string;
  readonly limit: Limit;
  readonly outcome: VerdictOutcome;
  readonly source: Source;
  /** Allowed: how long to hold the request back. Denied or unavailable: how long until it is worth another try. */
  readonly waitMs: number;
  /** `undefined` when nothing is known: the policy was not asked. */
  readonly level: Level | undefined;
}

export interface Level {
  /** Whole units that can be spent now. */
  readonly remaining: number;
  /** For how long `remaining` is all there is: until the full quota is back or, on a denial, until the request would fit. */
  readonly resetMs: number;
}

const SEVERITY: Readonly<Record<VerdictOutcome, number>> = {
  allowed: 0,
  unavailable: 1,
  denied: 2,
  impossible: 3,
};

/** Of several sources that all admitted, the one that says most about how the request was decided. */
const WEIGHT: Readonly<Record<Source, number>> = {
  none: 0,
  deny_memory: 1,
  local: 2,
  lease: 3,
  owner: 4,
  fallback: 5,
};

export function verdictOf(policies: readonly PolicyReport[], shadowDenied: readonly string[] = []): Verdict {
  const outcome = worstOutcome(policies);
  let source: Source = 'none';
  let waitMs = 0;
  for (const report of policies) {
    if (report.outcome !== outcome) continue;
    if (report.waitMs > waitMs) waitMs = report.waitMs;
    if (WEIGHT[report.source] > WEIGHT[source]) source = report.source;
  }
  const isWait = outcome === 'denied' || outcome === 'unavailable';
  return {
    outcome,
    source,
    delayMs: outcome === 'allowed' ? waitMs : 0,
    retryAfterMs: isWait ? waitMs : 0,
    policies,
    shadowDenied,
  };
}

/** What a caller is told whom an operator refuses: nothing is left, until the clamp ends. */
export function refusedByClamp(retryAfterMs: number): Verdict {
  const limit: Limit = { algorithm: 'token_bucket', quota: 0, windowMs: 60_000, burst: 0, maxDelayMs: 0 };
  const level = { remaining: 0, resetMs: retryAfterMs };
  return verdictOf([
    { policy: CLAMP_POLICY, limit, outcome: 'denied', source: 'local', waitMs: retryAfterMs, level },
  ]);
}

export function worstOutcome(policies: readonly PolicyReport[]): VerdictOutcome {
  let worst: VerdictOutcome = 'allowed';
  for (const { outcome } of policies) if (SEVERITY[outcome] > SEVERITY[worst]) worst = outcome;
  return worst;
}
