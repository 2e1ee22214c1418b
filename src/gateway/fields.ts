/**
 * The response fields that tell a client where it stands: `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-11, structured fields of RFC 9651), or the older `X-RateLimit-*`.
 *
 * The draft is about to rename its parameters, so this module is the only one that knows them. Every number is a whole one, since one bad
 * member voids the whole field for a client; waits are rounded up and units down, so nobody is promised too much.
 */
import { type Item, type List, serializeList } from 'structured-headers';
import { capacity } from '../core/decision.ts';
import type { PolicyReport } from '../engine/verdict.ts';
import type { HeaderMode } from '../policy/ruleset.ts';

const IETF_FIELDS = ['RateLimit', 'RateLimit-Policy'] as const;
const LEGACY_FIELDS = [
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
  'X-RateLimit-Cost',
] as const;

export interface FieldOptions {
  readonly mode: HeaderMode;
  /** What the request cost, in rulesets that name costs. */
  readonly cost: number | undefined;
  readonly nowMs: number;
}

/** The names that a browser's script may read. */
export function fieldNames(mode: HeaderMode): readonly string[] {
  const names = [
    ...(mode === 'legacy' || mode === 'none' ? [] : IETF_FIELDS),
    ...(mode === 'ietf' || mode === 'none' ? [] : LEGACY_FIELDS),
  ];
  return [...names, 'Retry-After'];
}

/** Writes the fields of these policies in place of whatever the origin wrote under the same names. */
export function writeFields(
  headers: Headers,
  policies: readonly PolicyReport[],
  options: FieldOptions,
): void {
  if (policies.length === 0 || options.mode === 'none') return;
  const sorted = policies.length === 1 ? policies : [...policies].sort((a, b) => room(a) - room(b));
  if (options.mode !== 'legacy') writeIetf(headers, sorted);
  if (options.mode !== 'ietf') writeLegacy(headers, sorted, options);
}

function writeIetf(headers: Headers, policies: readonly PolicyReport[]): void {
  headers.set('RateLimit-Policy', serializeList(policies.map(policyItem)));
  const levels: List = policies.flatMap((report) => levelItem(report) ?? []);
  if (levels.length > 0) headers.set('RateLimit', serializeList(levels));
  else headers.delete('RateLimit');
}

function policyItem({ policy, limit }: PolicyReport): Item {
  return [
    policy,
    new Map([
      ['q', limit.quota],
      ['w', wholeSeconds(limit.windowMs, 1)],
    ]),
  ];
}

function levelItem(report: PolicyReport): [Item] | undefined {
  const { level } = report;
  if (level === undefined) return undefined;
  return [
    [
      report.policy,
      new Map([
        ['r', remainingOf(report)],
        ['t', wholeSeconds(level.resetMs, 0)],
      ]),
    ],
  ];
}

function writeLegacy(
  headers: Headers,
  policies: readonly PolicyReport[],
  { cost, nowMs }: FieldOptions,
): void {
  for (const name of LEGACY_FIELDS) headers.delete(name);
  const tightest = policies.find(({ level }) => level !== undefined);
  if (tightest?.level === undefined) return;
  headers.set('X-RateLimit-Limit', String(tightest.limit.quota));
  headers.set('X-RateLimit-Remaining', String(remainingOf(tightest)));
  headers.set('X-RateLimit-Reset', String(Math.ceil((nowMs + tightest.level.resetMs) / 1000)));
  if (cost !== undefined) headers.set('X-RateLimit-Cost', String(cost));
}

/** How constrained a policy is: the part of its capacity that is left, with those that deny before all others. */
function room(report: PolicyReport): number {
  if (report.outcome !== 'allowed') return -1;
  if (report.level === undefined) return Number.POSITIVE_INFINITY;
  return remainingOf(report) / Math.max(1, capacity(report.limit));
}

function remainingOf({ level, limit }: PolicyReport): number {
  return Math.min(Math.max(0, Math.floor(level?.remaining ?? 0)), Math.max(limit.quota, limit.burst));
}

/** Rounded up: a client that waits exactly so long finds what it was told. A billionth of slack keeps float noise from adding a second. */
export function wholeSeconds(ms: number, leastSeconds: number): number {
  return Math.max(leastSeconds, Math.ceil(ms / 1000 - 1e-9));
}
