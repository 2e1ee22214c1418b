/** Rules and their winners without a rule file: the engine takes them from the matcher and never asks where they come from. */
import type { AlgorithmName, Limit } from '../../src/core/decision.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { FailureMode, Rule } from '../../src/policy/ruleset.ts';

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 3_600_000;
export const DAY_MS = 86_400_000;

export interface LimitOptions {
  readonly quota: number;
  readonly windowMs?: number;
  readonly algorithm?: AlgorithmName;
  readonly burst?: number;
  readonly maxDelayMs?: number;
}

export function limitOf({
  quota,
  windowMs = MINUTE_MS,
  algorithm = 'token_bucket',
  burst = quota,
  maxDelayMs = 0,
}: LimitOptions): Limit {
  return { algorithm, quota, windowMs, burst, maxDelayMs };
}

export interface WinnerOptions extends LimitOptions {
  readonly policy?: string;
  /** The name of the owner that holds the counter; a counter is one policy at one owner. */
  readonly owner?: string;
  /** Tells apart the counters of several callers at one owner. */
  readonly caller?: string;
  readonly shadow?: boolean;
  readonly scope?: Rule['scope'];
  readonly consistency?: Rule['consistency'];
  readonly failureMode?: FailureMode;
  readonly blindShare?: number;
  /** What part of a regional limit a region admits on credit. */
  readonly startCredit?: number;
}

export function winner(options: WinnerOptions): Winner {
  const { policy = 'default', owner = 'anne', caller = '', shadow = false } = options;
  const rule: Rule = {
    path: [{ key: 'user', match: 'any' }],
    policy,
    shadow,
    unlimited: false,
    limit: limitOf(options),
    scope: options.scope ?? 'global',
    consistency: options.consistency ?? 'strict',
    failureMode: options.failureMode ?? 'open',
    blindShare: options.blindShare ?? 0.05,
    per: ['user'],
    ...(options.scope === 'regional' && { regional: { startCredit: options.startCredit ?? 0.25 } }),
  };
  return {
    rule,
    counterId: `${policy}${shadow ? ' (shadow)' : ''} of ${owner}${caller}`,
    owner: { name: owner, shared: false },
    pairs: [['user', owner]],
  };
}
