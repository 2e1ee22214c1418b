/**
 * From the tree of a rule file (as YAML or JSON gives it) to a ruleset.
 *
 * Pure and total: whatever the tree is, the result is a ruleset with warnings, or every error at once, each with its place. Nothing
 * is half accepted.
 */
import { countsSlots } from '../core/decision.ts';
import { canonicalMethod, HEAD_IS_GET, isHead } from './attributes.ts';
import { compileDescriptors, type PlacedRule } from './compile-descriptors.ts';
import { compileAttributes, compileCors, compileIdentity, type Sha256 } from './compile-identity.ts';
import { compileRegions } from './compile-regional.ts';
import { formatPath, type Path, type Problem, type Report } from './problem.ts';
import { REGIONS } from './region.ts';
import { compareRoutes, mustParse, parseRoutePattern } from './route-pattern.ts';
import { type CostRule, type Identity, RULESET_FORMAT, type Rule, type Ruleset } from './ruleset.ts';
import { COST_MAX, type CostNode, costSchema, fileSchema, isMap, read } from './schema.ts';
import { warningsOf } from './warnings.ts';

export type { Sha256 } from './compile-identity.ts';
export { formatPath, type Path, type Problem } from './problem.ts';

export interface CompileOptions {
  readonly sha256: Sha256;
  /** Milliseconds since the Unix epoch. */
  readonly builtAtMs: number;
}

export type Compiled =
  | { readonly ok: true; readonly ruleset: Ruleset; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly errors: readonly Problem[] };

const DEFAULT_DEADLINE_MS = 150;
/** The longest that a request may wait for an owner. */
const DEADLINE_MS_MAX = 1000;

export function compile(raw: unknown, options: CompileOptions): Compiled {
  const errors: Problem[] = [];
  const warnings: Problem[] = [];
  const error: Report = (path, message) => errors.push({ path, message });
  const warn: Report = (path, message) => warnings.push({ path, message });

  const file = read(fileSchema, raw, [], error);
  // Parts are read from the raw file, so that a mistake at the top does not hide those further in.
  const parts = isMap(raw) ? raw : {};
  const domain = file?.domain ?? '';
  const deadlineMs = file?.deadline ?? DEFAULT_DEADLINE_MS;
  if (deadlineMs > DEADLINE_MS_MAX)
    error(['deadline'], `is above ${DEADLINE_MS_MAX}ms, the longest that a request may wait`);
  const identity = compileIdentity(isMap(parts.identity) ? parts.identity : {}, options.sha256, {
    error,
    warn,
  });
  const attributes = compileAttributes(isMap(parts.attributes) ? parts.attributes : {}, identity, error);
  const descriptors = Array.isArray(parts.descriptors)
    ? (parts.descriptors as readonly unknown[])
    : undefined;
  const regions = compileRegions(Array.isArray(parts.regions) ? parts.regions : undefined, error);
  const context = {
    domain,
    identity,
    attributes,
    regions: regions?.length ? regions : REGIONS,
    sha256: options.sha256,
    error,
  };
  const placed = descriptors === undefined ? [] : compileDescriptors(descriptors, context);
  const costs = compileCosts(Array.isArray(parts.costs) ? parts.costs : [], error);
  const corsOrigins = compileCors(isMap(parts.cors) ? parts.cors : undefined, error);
  checkUnknownKeys(identity, placed, error);
  if (file === undefined || errors.length > 0) return { ok: false, errors };

  const rules = placed.map(({ rule }) => rule);
  const ruleset: Ruleset = {
    format: RULESET_FORMAT,
    domain,
    builtAtMs: options.builtAtMs,
    headers: file.headers ?? 'ietf',
    deadlineMs,
    identity,
    attributes,
    corsOrigins,
    routes: routesOf(rules, costs),
    ...(regions && { regions }),
    rules,
    costs,
  };
  return { ok: true, ruleset, warnings: [...warnings, ...warningsOf(ruleset, placed)] };
}

function compileCosts(raw: readonly unknown[], error: Report): readonly CostRule[] {
  const firstAt = new Map<string, Path>();
  const costs: CostRule[] = [];
  for (const [index, item] of raw.entries()) {
    const at: Path = ['costs', index];
    const fields = read(costSchema, item, at, error);
    if (fields === undefined) continue;
    if (fields.method !== undefined && isHead(fields.method)) error([...at, 'method'], HEAD_IS_GET);
    const method = fields.method === undefined ? undefined : canonicalMethod(fields.method);
    const route = fields.route === undefined ? undefined : parseRoutePattern(fields.route);
    if (route !== undefined && 'problem' in route) {
      error([...at, 'route'], `wants a route: ${route.problem}`);
      continue;
    }
    const identity = JSON.stringify([route?.pattern.text, method]);
    const first = firstAt.get(identity);
    if (first !== undefined) error(at, `repeats ${formatPath(first)}: same route and method`);
    firstAt.set(identity, at);
    costs.push({
      ...(route === undefined ? {} : { route: route.pattern.text }),
      ...(method === undefined ? {} : { method }),
      ...unitsOf(fields, (path, message) => error([...at, ...path], message)),
    });
  }
  return costs;
}

/** A cost that is known beforehand, or an estimate and where to learn better. */
function unitsOf(
  { cost, reserve, cost_header: header, default: defaultCost }: CostNode,
  report: Report,
): Pick<CostRule, 'cost' | 'estimate'> {
  if (cost !== undefined && reserve !== undefined)
    report(['reserve'], 'stands beside "cost": write one of them');
  if (reserve !== undefined)
    return { cost: reserve, estimate: { ...(header && { header }), defaultCost: defaultCost ?? reserve } };
  if (cost === undefined)
    report(['cost'], `is required: a whole number from 0 to ${COST_MAX} (or "reserve")`);
  if (header !== undefined) report(['cost_header'], 'has no meaning without "reserve"');
  if (defaultCost !== undefined) report(['default'], 'has no meaning without "reserve"');
  return { cost: cost ?? 0 };
}

/** Every pattern that the file names, once, the most specific first; equals in the order of the file. */
function routesOf(rules: readonly Rule[], costs: readonly CostRule[]): readonly string[] {
  const ofRules = rules.flatMap(({ path }) => {
    return path.flatMap((node) => (node.key === 'route' && node.match !== 'any' ? [node.value] : []));
  });
  const ofCosts = costs.flatMap(({ route }) => (route === undefined ? [] : [route]));
  const patterns = [...new Set([...ofRules, ...ofCosts])].map(mustParse);
  return patterns.sort(compareRoutes).map((pattern) => pattern.text);
}

/**
 * With `unknown_keys: subject`, whoever invents keys makes an object for each. A rule that counts every such caller by address bounds
 * how many one address can invent.
 */
function checkUnknownKeys(identity: Identity, placed: readonly PlacedRule[], error: Report): void {
  if (identity.unknownKeys !== 'subject') return;
  const bounds = placed.some(({ rule }) => {
    const coversUnknown = rule.path.every((node) => {
      if (node.match === 'any')
        return node.key === 'remote_address' || Object.hasOwn(identity.defaults, node.key);
      return node.match === 'exact' && identity.defaults[node.key] === node.value;
    });
    return (
      coversUnknown &&
      !rule.shadow &&
      rule.limit !== undefined &&
      !countsSlots(rule.limit) &&
      rule.per.length === 1 &&
      rule.per[0] === 'remote_address'
    );
  });
  if (!bounds) {
    error(
      ['identity', 'unknown_keys'],
      'is "subject", so each invented key is counted by itself; it needs an enforced rule over "key: remote_address" beside it',
    );
  }
}
