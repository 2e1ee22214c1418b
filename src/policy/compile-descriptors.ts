/**
 * The descriptor tree, flattened: each `rate_limit` in it becomes a rule with the path that leads to it.
 */
import { parseAddress, parseNetwork } from './address.ts';
import { canonicalValue, HEAD_IS_GET, isHead, KNOWN_ATTRIBUTES } from './attributes.ts';
import { isClampPolicy } from './clamp.ts';
import type { Sha256 } from './compile-identity.ts';
import { regionalOf } from './compile-regional.ts';
import { rulePrefix } from './counter.ts';
import { isLabelAttribute } from './directory.ts';
import { DEFAULT_BLIND_SHARE, DEFAULT_POLICY, limitOf } from './limit.ts';
import { formatPath, type Path, type Report, show, suggestion } from './problem.ts';
import type { Region } from './region.ts';
import { parseRoutePattern } from './route-pattern.ts';
import type { AttributeSource, Identity, Rule, RuleNode } from './ruleset.ts';
import { elements, isMap, nodeSchema, type RateLimitNode, rateLimitSchema, read } from './schema.ts';

/** Deeper than any tree that people write, and a bound for the walk. */
const DEPTH_MAX = 16;

export interface TreeContext {
  readonly domain: string;
  readonly identity: Identity;
  readonly attributes: Readonly<Record<string, AttributeSource>>;
  /** Where the file is served. */
  readonly regions: readonly Region[];
  readonly sha256: Sha256;
  readonly error: Report;
}

export interface PlacedRule {
  readonly rule: Rule;
  /** Where its `rate_limit` stands. */
  readonly at: Path;
}

interface Parent {
  readonly at: Path;
  /** `undefined` once a node on the way was wrong: what is below is checked, but makes no rule. */
  readonly path: readonly RuleNode[] | undefined;
  readonly depth: number;
}

export function compileDescriptors(raw: readonly unknown[], context: TreeContext): readonly PlacedRule[] {
  const rules: PlacedRule[] = [];
  walk(raw, { at: ['descriptors'], path: [], depth: 0 }, context, rules);
  reportDuplicates(rules, context);
  return rules;
}

function walk(raw: readonly unknown[], parent: Parent, context: TreeContext, rules: PlacedRule[]): void {
  const { error } = context;
  if (raw.length === 0) error(parent.at, 'is an empty list: nothing would be limited');
  if (parent.depth >= DEPTH_MAX) {
    error(parent.at, `is nested more than ${DEPTH_MAX} levels deep`);
    return;
  }
  for (const [index, item] of raw.entries()) {
    const at = [...parent.at, index];
    const node = read(nodeSchema, item, at, error);
    const compiled = node === undefined ? undefined : compileNode(node.key, node.value, at, context);
    const path = compiled === undefined || parent.path === undefined ? undefined : [...parent.path, compiled];
    // Parts are read from the raw node, so that a mistake in it does not hide those further in.
    const { rate_limit: limits, descriptors } = isMap(item) ? item : {};
    if (node !== undefined && limits === undefined && descriptors === undefined) {
      error(at, 'has neither "rate_limit" nor "descriptors", so it limits nothing');
    }
    if (limits !== undefined) compileLimits(limits, { at, path, depth: parent.depth }, context, rules);
    if (Array.isArray(descriptors)) {
      walk(descriptors, { at: [...at, 'descriptors'], path, depth: parent.depth + 1 }, context, rules);
    }
  }
}

function compileLimits(raw: unknown, node: Parent, context: TreeContext, rules: PlacedRule[]): void {
  const isList = Array.isArray(raw);
  const at: Path = [...node.at, 'rate_limit'];
  if (isList && raw.length === 0) context.error(at, 'is an empty list: it limits nothing');
  for (const [index, item] of (isList ? raw : [raw]).entries()) {
    const here = isList ? [...at, index] : at;
    const fields = read(rateLimitSchema, item, here, context.error);
    if (fields === undefined) continue;
    const report: Report = (path, message) => context.error([...here, ...path], message);
    if (isClampPolicy(fields.policy ?? DEFAULT_POLICY))
      report(['policy'], 'is the name under which an operator’s clamps show; give yours another');
    const limit = limitOf(fields, report);
    const regional = regionalOf(fields, { limit, served: context.regions }, report);
    const per = compilePer(fields.per, node.path ?? [], here, context);
    const hasLimit = limit !== undefined || fields.unlimited === true;
    if (node.path === undefined || !hasLimit) continue;
    rules.push({ at: here, rule: ruleOf(fields, node.path, { limit, regional, per }) });
  }
}

interface CompiledParts {
  readonly limit: Rule['limit'] | undefined;
  readonly regional: Rule['regional'] | undefined;
  readonly per: readonly string[];
}

function ruleOf(
  fields: RateLimitNode,
  path: readonly RuleNode[],
  { limit, regional, per }: CompiledParts,
): Rule {
  return {
    path,
    policy: fields.policy ?? DEFAULT_POLICY,
    shadow: fields.shadow_mode ?? false,
    unlimited: fields.unlimited ?? false,
    ...(limit === undefined ? {} : { limit }),
    scope: fields.scope ?? 'global',
    ...(regional === undefined ? {} : { regional }),
    consistency: fields.consistency ?? 'auto',
    failureMode: fields.failure_mode ?? 'open',
    blindShare: fields.blind_share ?? DEFAULT_BLIND_SHARE,
    per,
  };
}

/** The keys without a value, or the subject where there are none; unless the rule says. */
function compilePer(
  raw: readonly unknown[] | undefined,
  path: readonly RuleNode[],
  limitAt: Path,
  context: TreeContext,
): readonly string[] {
  if (raw === undefined) {
    const open = new Set(path.filter((node) => node.match === 'any').map((node) => node.key));
    return open.size === 0 ? ['subject'] : [...open].sort();
  }
  const per = new Set<string>();
  for (const [index, item] of raw.entries()) {
    const at = [...limitAt, 'per', index];
    const name = read(elements.text, item, at, context.error);
    if (name === undefined) continue;
    checkAttribute(name, at, context);
    if (per.has(name)) context.error(at, 'stands in this list already');
    per.add(name);
  }
  return [...per].sort();
}

function checkAttribute(name: string, at: Path, { attributes, error }: TreeContext): void {
  const known = [...KNOWN_ATTRIBUTES, ...Object.keys(attributes)];
  if (known.includes(name) || isLabelAttribute(name)) return;
  error(
    at,
    `is not an attribute: ${show(name)}${suggestion(name, known)}; declare your own under "attributes"`,
  );
}

function compileNode(
  key: string,
  value: string | undefined,
  at: Path,
  context: TreeContext,
): RuleNode | undefined {
  checkAttribute(key, [...at, 'key'], context);
  if (value === undefined) return { key, match: 'any' };
  const result = compileValue(key, value, context);
  if (!('problem' in result)) return { key, ...result };
  context.error([...at, 'value'], result.problem);
  return undefined;
}

type Value = { readonly match: 'exact' | 'pattern' | 'route' | 'cidr'; readonly value: string };
type ValueResult = Value | { readonly problem: string };

function compileValue(key: string, value: string, context: TreeContext): ValueResult {
  if (/^\*+$/.test(value)) return { problem: 'is "*", which is any value: leave "value" out instead' };
  switch (key) {
    case 'subject':
      return {
        problem: 'cannot stand beside "subject": name what it resolves to (api_key, user or remote_address)',
      };
    case 'route':
      return routeValue(value);
    case 'remote_address':
      return addressValue(value);
    case 'api_key':
      return apiKeyValue(value, context);
    default:
      return textValue(key, value, context);
  }
}

function routeValue(value: string): ValueResult {
  const result = parseRoutePattern(value);
  if ('problem' in result) return { problem: `wants a route: ${result.problem}` };
  return { match: result.pattern.exact ? 'exact' : 'route', value: result.pattern.text };
}

/** A network of a single address is that address: it names one caller, however it is written. */
function addressValue(value: string): ValueResult {
  const network = parseNetwork(value);
  const address = parseAddress(value.includes('/') ? '' : value);
  if (network !== undefined && network.prefixBits === network.bytes.length * 8) {
    return { match: 'exact', value: network.text.slice(0, network.text.indexOf('/')) };
  }
  if (network !== undefined) return { match: 'cidr', value: network.text };
  if (address !== undefined) return { match: 'exact', value: address.text };
  return {
    problem: `wants an address or a network such as 203.0.113.0/24 or 2001:db8::/32, not ${show(value)}`,
  };
}

/** Rules hold a key's SHA-256, so only whole keys can be told apart. `sha256:` and 64 digits stand for a key that is not at hand. */
function apiKeyValue(value: string, { identity, sha256 }: TreeContext): ValueResult {
  if (value.includes('*'))
    return { problem: 'is a pattern, but keys are compared by their SHA-256: write a whole key' };
  const hash = /^(sha256:)?([0-9a-f]{64})$/i.exec(value);
  const digest = hash?.[2]?.toLowerCase();
  // A value that the directory lists as a hash is that hash, and no key whose text happens to look like one.
  const isHash = digest !== undefined && (hash?.[1] !== undefined || Object.hasOwn(identity.keys, digest));
  return { match: 'exact', value: isHash ? digest : sha256(value) };
}

function textValue(key: string, value: string, { attributes }: TreeContext): ValueResult {
  if (key === 'method' && isHead(value)) return { problem: HEAD_IS_GET };
  const canonical = canonicalValue(key, value, attributes);
  if (canonical === '') return { problem: 'is empty' };
  return { match: canonical.includes('*') ? 'pattern' : 'exact', value: canonical };
}

/** Two rules that would count on the same counters: the same path, policy and mode. */
function reportDuplicates(rules: readonly PlacedRule[], { domain, error }: TreeContext): void {
  const firstAt = new Map<string, Path>();
  for (const { rule, at } of rules) {
    const identity = rulePrefix(domain, rule);
    const first = firstAt.get(identity);
    if (first === undefined) firstAt.set(identity, at);
    else {
      const mode = rule.shadow ? 'shadow' : 'enforced';
      error(at, `repeats ${formatPath(first)}: same keys and values, policy ${show(rule.policy)}, ${mode}`);
    }
  }
}
