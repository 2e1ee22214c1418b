/**
 * The ruleset in force, made ready to match: what a request takes one snapshot of and uses to its end.
 */
import type { Activated } from '../policy/activation.ts';
import { namedKeysOf } from '../policy/caller.ts';
import { ClampTable } from '../policy/clamp.ts';
import { Matcher } from '../policy/match.ts';
import { normalisePath, routeTable } from '../policy/route-pattern.ts';
import { RULESET_FORMAT, type Rule, type Ruleset, type Version } from '../policy/ruleset.ts';
import { preflightMatcher } from './preflight.ts';

export interface Snapshot {
  readonly ruleset: Ruleset;
  readonly version: Version;
  readonly matcher: Matcher;
  /** Finds what counts a preflight where the ruleset has no flood tier. */
  readonly preflights: Matcher;
  /** The attributes that a rule asks about or counts by. */
  readonly attributes: ReadonlySet<string>;
  /** Hashes of keys that a rule names exactly. */
  readonly namedKeys: ReadonlySet<string>;
  /** Where the ruleset came from: deployed with the code, or published since. */
  readonly source: 'bundled' | 'published';
  /** When it was put in force, in milliseconds since the Unix epoch; 0 for bundled rules. */
  readonly activatedAtMs: number;
  /** What operators have decided about single callers. It outlives the ruleset, and changes while the snapshot does not. */
  readonly clamps: ClampTable;
  /** Whether a rule is counted by regions, so that it matters where a request comes from. */
  readonly isRegional: boolean;
  /** The largest cost that the ruleset gives any request, in units. */
  readonly largestCost: number;
  /** Whether a request for this path (as it stands in a URL) may go on when the limiter itself is broken. */
  isOpen(path: string): boolean;
}

export interface SnapshotOptions {
  /** Spreads invented values over the shared owners: any text, the same in every isolate, best not known outside. */
  readonly seed: string;
  readonly clamps: ClampTable;
}

export function bundledSnapshot(ruleset: Ruleset, seed = ''): Snapshot {
  if (ruleset.format !== RULESET_FORMAT) {
    throw new Error(
      `The ruleset has format ${String(ruleset.format)}; this version reads ${RULESET_FORMAT}. Compile it again.`,
    );
  }
  const version = { activation: 0, builtAtMs: ruleset.builtAtMs };
  const options = { seed, clamps: new ClampTable() };
  return snapshotOf({ ruleset, version, activatedAtMs: 0 }, 'bundled', options);
}

export function publishedSnapshot(activated: Activated, options: SnapshotOptions): Snapshot {
  return snapshotOf(activated, 'published', options);
}

function snapshotOf(
  { ruleset, version, activatedAtMs }: Activated,
  source: Snapshot['source'],
  { seed, clamps }: SnapshotOptions,
): Snapshot {
  const closed = ruleset.rules.filter(
    (rule) => rule.failureMode === 'closed' && !rule.shadow && !rule.unlimited,
  );
  const closedRoutes = closed.map(routeOf);
  const table = routeTable(closedRoutes.filter((route) => route !== undefined));
  return {
    ruleset,
    version,
    matcher: new Matcher(ruleset, { seed: seedOf(seed) }),
    preflights: preflightMatcher(ruleset),
    attributes: new Set(ruleset.rules.flatMap(({ path, per }) => [...path.map(({ key }) => key), ...per])),
    namedKeys: namedKeysOf(ruleset),
    source,
    activatedAtMs,
    clamps,
    isRegional: ruleset.rules.some(({ regional }) => regional !== undefined),
    largestCost: Math.max(1, ...ruleset.costs.map(({ cost }) => cost)),
    isOpen: (path) => !closedRoutes.includes(undefined) && table.matching(normalisePath(path)).length === 0,
  };
}

/** The route pattern that a closed rule is about; a rule about no route is about all of them. */
function routeOf(rule: Rule): string | undefined {
  const node = rule.path.findLast(({ key, match }) => key === 'route' && match !== 'any');
  return node !== undefined && node.match !== 'any' ? node.value : undefined;
}

/** FNV-1a. */
export function seedOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}
