/**
 * The numbers of a `rate_limit`: defaults filled in, and every combination refused that could not mean what it says.
 *
 * What this lets through, the algorithms take as sound.
 */
import type { Limit } from '../core/decision.ts';
import type { Report } from './problem.ts';
import { type RateLimitNode, UNIT_MS } from './schema.ts';

export const DEFAULT_POLICY = 'default';
export const DEFAULT_BLIND_SHARE = 0.05;

const DEFAULT_MAX_DELAY_MS = 1000;
/** A request that waits holds a connection; Workers' own limits and clients' patience end soon after. */
const MAX_DELAY_MS_MAX = 30_000;
/** The rate up to which states in microseconds are exact. */
const UNITS_PER_SECOND_MAX = 1_000_000;
/** A log keeps one entry for each request of a window: 10,000 of 16 bytes are 160 KB a counter. */
const LOG_QUOTA_MAX = 10_000;

/** Twice the time that most clients wait for an answer; a stream that takes longer renews its slot. */
const DEFAULT_SLOT_SECONDS = 30;

const RATE_FIELDS = ['unit', 'window', 'requests_per_unit', 'burst', 'max_delay'] as const;
const SLOT_FIELDS = ['max_in_flight', 'slot_seconds'] as const;
const NUMBER_FIELDS = ['algorithm', ...RATE_FIELDS, ...SLOT_FIELDS] as const;

/** The limit of a node, or `undefined` when it has none (`unlimited`) or a problem was reported. Paths are within the node. */
export function limitOf(node: RateLimitNode, report: Report): Limit | undefined {
  if (node.unlimited === true) {
    const numbers = NUMBER_FIELDS.filter((field) => node[field] !== undefined);
    for (const field of numbers) report([field], 'has no meaning beside "unlimited: true"');
    return undefined;
  }
  const algorithm = node.algorithm ?? 'token_bucket';
  if (algorithm === 'concurrency') return slotLimitOf(node, report);
  for (const field of SLOT_FIELDS)
    if (node[field] !== undefined) report([field], 'belongs to "algorithm: concurrency"');
  const windowMs = windowOf(node, report);
  const quota = node.requests_per_unit;
  if (quota === undefined)
    report(['requests_per_unit'], 'is required: a whole number from 0 (or "unlimited: true")');
  if (windowMs === undefined || quota === undefined) return undefined;
  const limit: Limit = {
    algorithm,
    quota,
    windowMs,
    burst: node.burst ?? quota,
    maxDelayMs: algorithm === 'leaky_bucket' ? (node.max_delay ?? DEFAULT_MAX_DELAY_MS) : 0,
  };
  return checkNumbers(node, limit, report) ? limit : undefined;
}

/** How many at once, and for how long a slot is held that nobody renews. */
function slotLimitOf(node: RateLimitNode, report: Report): Limit | undefined {
  const problems: [string, string][] = [];
  for (const field of RATE_FIELDS) {
    if (node[field] !== undefined)
      problems.push([
        field,
        'has no meaning for concurrency, which counts requests in progress: write "max_in_flight"',
      ]);
  }
  if (takesBucketsOnly(node)) problems.push(['algorithm', noSuchScope('concurrency', node)]);
  if (node.consistency === 'leased')
    problems.push(['consistency', 'cannot be leased: a slot is taken from its owner by each request']);
  const quota = node.max_in_flight;
  if (quota === undefined)
    problems.push(['max_in_flight', 'is required: how many requests may be in progress at once']);
  for (const [field, message] of problems) report([field], message);
  if (quota === undefined || problems.length > 0) return undefined;
  const windowMs = (node.slot_seconds ?? DEFAULT_SLOT_SECONDS) * 1000;
  return { algorithm: 'concurrency', quota, windowMs, burst: quota, maxDelayMs: 0 };
}

function windowOf(node: RateLimitNode, report: Report): number | undefined {
  if (node.unit !== undefined && node.window !== undefined)
    report(['window'], 'stands beside "unit": write one of them');
  else if (node.window !== undefined) return node.window;
  else if (node.unit !== undefined) return UNIT_MS[node.unit];
  else report(['unit'], `is required: one of ${Object.keys(UNIT_MS).join(', ')} (or "window: 90s")`);
  return undefined;
}

function checkNumbers(node: RateLimitNode, limit: Limit, report: Report): boolean {
  const { algorithm, quota, windowMs } = limit;
  const problems: [string, string][] = [];
  if (quota / (windowMs / 1000) > UNITS_PER_SECOND_MAX) {
    problems.push(['requests_per_unit', `is more than ${UNITS_PER_SECOND_MAX} a second`]);
  }
  if (algorithm === 'sliding_log' && quota > LOG_QUOTA_MAX) {
    problems.push([
      'requests_per_unit',
      `is above ${LOG_QUOTA_MAX}, the most that a sliding_log keeps; use sliding_window`,
    ]);
  }
  if (node.burst !== undefined && algorithm !== 'token_bucket') {
    problems.push(['burst', `belongs to token_bucket; ${algorithm} has none`]);
  }
  if (node.burst !== undefined && quota === 0) {
    problems.push(['burst', 'has no meaning beside a quota of 0, which denies everything']);
  }
  if (node.max_delay !== undefined && algorithm !== 'leaky_bucket') {
    problems.push(['max_delay', `belongs to leaky_bucket; ${algorithm} never makes a request wait`]);
  }
  if (limit.maxDelayMs > MAX_DELAY_MS_MAX)
    problems.push(['max_delay', `is above ${MAX_DELAY_MS_MAX / 1000}s`]);
  if (takesBucketsOnly(node) && algorithm !== 'token_bucket')
    problems.push(['algorithm', noSuchScope(algorithm, node)]);
  for (const [field, message] of problems) report([field], message);
  return problems.length === 0;
}

/** What is counted in several places at once, or borrowed, is a bucket. */
function takesBucketsOnly({ scope }: RateLimitNode): boolean {
  return scope === 'local' || scope === 'regional';
}

function noSuchScope(algorithm: string, { scope }: RateLimitNode): string {
  return `cannot be ${algorithm} with "scope: ${scope}", which takes token_bucket only`;
}
