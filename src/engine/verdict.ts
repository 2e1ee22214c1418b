/**
 * What the gate is asked about a request, and what it answers.
 */
import type { Decision, Limit } from '../core/decision.ts';
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
  readonly deadlineMs: number;
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
}

export interface PolicyReport {
  readonly policy: string;
  readonly limit: Limit;
  readonly outcome: VerdictOutcome;
  readonly source: Source;
  /** `undefined` when nothing is known: the policy was not asked. */
  readonly level: { readonly remaining: number; readonly resetMs: number } | undefined;
}

export const WORST_FIRST: readonly VerdictOutcome[] = ['impossible', 'denied', 'unavailable', 'allowed'];
