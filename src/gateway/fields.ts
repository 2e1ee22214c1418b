/**
 * The response fields that tell a client where it stands: `RateLimit` and `RateLimit-Policy`
 * (draft-ietf-httpapi-ratelimit-headers-11, structured fields of RFC 9651), or the older `X-RateLimit-*`.
 *
 * The draft is about to rename its parameters, so this module is the only one that knows them. Every number is a whole one, since one bad
 * member voids the whole field for a client; waits are rounded up and units down, so nobody is promised too much.
 */
import { serializeItem } from 'structured-headers';
import { countsSlots } from '../core/decision.ts';
import { mostConstrainedFirst, remainingOf, wholeSeconds } from '../engine/level.ts';
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

/** Whether one of the fields is a time of day, which `limitFields` needs to know. */
export function tellsTimeOfDay(mode: HeaderMode): boolean {
  return mode === 'legacy' || mode === 'both';
}

/** The names that a browser's script may read. */
export function fieldNames(mode: HeaderMode): readonly string[] {
  const names = [
    ...(mode === 'legacy' || mode === 'none' ? [] : IETF_FIELDS),
    ...(mode === 'ietf' || mode === 'none' ? [] : LEGACY_FIELDS),
  ];
  return [...names, 'Retry-After'];
}

/** Field names and values; `undefined` is a field that must not be there, whoever wrote it. */
export type Fields = Readonly<Record<string, string | undefined>>;

/** The fields of these policies; they take the place of whatever the origin wrote under the same names. */
export function limitFields(policies: readonly PolicyReport[], options: FieldOptions): Fields {
  if (policies.length === 0 || options.mode === 'none') return {};
  const sorted = mostConstrainedFirst(policies);
  if (options.mode === 'ietf') return ietfFields(sorted);
  if (options.mode === 'legacy') return legacyFields(sorted, options);
  return { ...ietfFields(sorted), ...legacyFields(sorted, options) };
}

function ietfFields(policies: readonly PolicyReport[]): Fields {
  let contract = '';
  let levels = '';
  for (const report of policies) {
    contract += separator(contract) + contractOf(report);
    if (report.level === undefined) continue;
    const { resetMs } = report.level;
    levels += `${separator(levels)}${nameOf(report.policy)};r=${remainingOf(report)};t=${wholeSeconds(resetMs, 0)}`;
  }
  return { RateLimit: levels === '' ? undefined : levels, 'RateLimit-Policy': contract };
}

function separator(list: string): string {
  return list === '' ? '' : ', ';
}

/** A policy's name and numbers as an Item of a List. Requests in progress have no window. */
function contractOf({ policy, limit }: PolicyReport): string {
  if (countsSlots(limit)) return `${nameOf(policy)};q=${limit.quota};qu="concurrent-requests"`;
  return `${nameOf(policy)};q=${limit.quota};w=${wholeSeconds(limit.windowMs, 1)}`;
}

/** A policy's name as a String of RFC 9651, serialized once: names come from rule files, which are few and checked. */
function nameOf(policy: string): string {
  let name = names.get(policy);
  if (name === undefined) {
    name = serializeItem(policy);
    names.set(policy, name);
  }
  return name;
}

const names = new Map<string, string>();

function legacyFields(policies: readonly PolicyReport[], { cost, nowMs }: FieldOptions): Fields {
  const tightest = policies.find(({ level }) => level !== undefined);
  const resetMs = tightest?.level?.resetMs;
  return {
    'X-RateLimit-Limit': tightest && String(tightest.limit.quota),
    'X-RateLimit-Remaining': tightest && String(remainingOf(tightest)),
    'X-RateLimit-Reset': resetMs === undefined ? undefined : String(Math.ceil((nowMs + resetMs) / 1000)),
    'X-RateLimit-Cost': cost === undefined ? undefined : String(cost),
  };
}
