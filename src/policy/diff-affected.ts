/**
 * For whom two rulesets decide otherwise, found by asking both matchers about the same requests.
 *
 * A probe is a sample of the requests that a rule is about: its exact values as they are, and a value that fits for each pattern, network
 * or open key. Rules that changed are probed first. Beside them stand the keys of the directory whose attributes changed, and a caller that
 * no rule names. What a probe finds is true of that request; that no other kind of request is affected, it does not prove.
 */
import { capacity, countsSlots, type Limit } from '../core/decision.ts';
import { fillNetwork, parseNetwork } from './address.ts';
import { rulePrefix } from './counter.ts';
import { haveSameEntries, shortKey, titleWithoutKeys } from './diff-settings.ts';
import { type Facts, Matcher } from './match.ts';
import { REGIONS } from './region.ts';
import { compareRoutes, mustParse } from './route-pattern.ts';
import type { Regional, Rule, RuleNode, Ruleset } from './ruleset.ts';

export interface Probing {
  /** In the order of the probes. */
  readonly affected: readonly Affected[];
  /** How many kinds of request were tried, and how many were not for want of room. */
  readonly probes: number;
  readonly probesLeftOut: number;
}

export interface Affected {
  /** `tier=free, route=/v1/search`. */
  readonly request: string;
  readonly policies: readonly PolicyChange[];
}

/** Without `before` the policy is new to this request; without `after` it does not apply any more. */
export interface PolicyChange {
  readonly policy: string;
  readonly before?: Decider;
  readonly after?: Decider;
  readonly effect: Effect;
}

/** The rule that wins. */
export interface Decider {
  readonly title: string;
  readonly shadow: boolean;
  readonly per: readonly string[];
}

/**
 * `tighter`: rate and burst are at most what they were, and one of them is less; `looser` the reverse. No enforced limit is the loosest.
 * `other`: neither, or they cannot be compared.
 */
export type Effect = 'tighter' | 'looser' | 'other';

interface Probe {
  /** An API key that is looked up in each ruleset's directory. */
  readonly key?: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly path?: string;
  readonly text: string;
}

/** More kinds of request than anybody reads about, and a fraction of a second. */
const PROBES_MAX = 1_000;

const OTHER_CALLER: Probe = { attributes: {}, text: 'any other caller' };

/** Whoever has one of these has been resolved, so the defaults are not about it. */
const RESOLVED = ['api_key', 'user', 'org', 'tier'] as const;

/** From a range that documentation may use (RFC 5737). */
const SAMPLE_ADDRESS = '192.0.2.1';

/** Values that no rule file spells out. */
const SAMPLES: Readonly<Record<string, string>> = {
  api_key: '0'.repeat(64),
  method: 'ANY',
  country: 'ZZ',
  asn: '64496',
  remote_address: SAMPLE_ADDRESS,
};

const OTHER_SAMPLE = '(any)';

export function affectedBy(before: Ruleset, after: Ruleset): Probing {
  const probes = probesOf(before, after);
  const tried = probes.slice(0, PROBES_MAX);
  const matchers = [new Matcher(before, { seed: 0 }), new Matcher(after, { seed: 0 })] as const;
  const affected = tried.flatMap((probe): Affected[] => {
    const [old, young] = matchers.map((matcher) => winnersOf(matcher, probe));
    const policies = policyChanges(old!, young!);
    return policies.length === 0 ? [] : [{ request: probe.text, policies }];
  });
  return { affected, probes: tried.length, probesLeftOut: probes.length - tried.length };
}

/** All of them, each once, those that are likeliest to find something in front. */
function probesOf(before: Ruleset, after: Ruleset): readonly Probe[] {
  const [old, young] = [new Set(before.rules.map(fingerprint)), new Set(after.rules.map(fingerprint))];
  const both = [
    ...before.rules.map((rule) => ({ rule, ruleset: before })),
    ...after.rules.map((rule) => ({ rule, ruleset: after })),
  ];
  const isKept = (rule: Rule) => old.has(fingerprint(rule)) && young.has(fingerprint(rule));
  const changed = both.filter(({ rule }) => !isKept(rule));
  const kept = both.filter(({ rule }) => isKept(rule));
  const probes = [
    OTHER_CALLER,
    ...changed.flatMap(({ rule, ruleset }) => probeOf(rule, ruleset)),
    ...changedKeys(before, after).map(keyProbe),
    ...kept.flatMap(({ rule, ruleset }) => probeOf(rule, ruleset)),
  ];
  return [...new Map(probes.map((probe) => [JSON.stringify(probe), probe])).values()];
}

/** Equal for rules that decide alike. */
function fingerprint(rule: Rule): string {
  const { unlimited, scope, regional, limit, per } = rule;
  return JSON.stringify([rulePrefix('', rule), unlimited, scope, sharesOf(regional), numbersOf(limit), per]);
}

function numbersOf(limit: Limit | undefined): readonly unknown[] | undefined {
  return limit && [limit.algorithm, limit.quota, limit.windowMs, limit.burst, limit.maxDelayMs];
}

/** How a limit is spread over regions; equal whatever the order of the file. */
function sharesOf(regional: Regional | undefined): readonly unknown[] | undefined {
  return regional && REGIONS.map((region) => regional.weights?.[region] ?? null);
}

function changedKeys(before: Ruleset, after: Ruleset): readonly string[] {
  const [old, young] = [before.identity.keys, after.identity.keys];
  return [...new Set([...Object.keys(old), ...Object.keys(young)])].filter((key) => {
    const isInBoth = Object.hasOwn(old, key) && Object.hasOwn(young, key);
    return !isInBoth || !haveSameEntries(old[key]!, young[key]!);
  });
}

function keyProbe(key: string): Probe {
  return { key, attributes: {}, text: `api_key=${shortKey(key)}` };
}

/** None where the rule is about routes and no route is named. */
function probeOf(rule: Rule, ruleset: Ruleset): readonly Probe[] {
  const attributes: Record<string, string> = {};
  const shown: string[] = [];
  let key: string | undefined;
  let path: string | undefined;
  for (const node of mostExact(rule.path)) {
    if (node.key === 'route') {
      path = pathFor(rule, ruleset);
      if (path === undefined) return [];
      shown.push(`route=${path}`);
    } else if (node.key === 'api_key' && node.match === 'exact') {
      key = node.value;
      shown.push(`api_key=${shortKey(key)}`);
    } else if (!isForEverybody(node)) {
      attributes[node.key] = sampleOf(node);
      shown.push(`${node.key}=${node.match === 'any' ? OTHER_SAMPLE : attributes[node.key]}`);
    }
  }
  if (shown.length === 0) return [OTHER_CALLER];
  const text = shown.join(', ');
  return [{ attributes, text, ...(key !== undefined && { key }), ...(path !== undefined && { path }) }];
}

/** One node for each key, in the order of the path: what fits the most exact of them is likeliest to fit the others. */
function mostExact(path: readonly RuleNode[]): Iterable<RuleNode> {
  const exactness = ({ match }: RuleNode) => (match === 'exact' ? 2 : match === 'any' ? 0 : 1);
  const nodes = new Map<string, RuleNode>();
  for (const node of path) {
    const known = nodes.get(node.key);
    if (known === undefined || exactness(node) >= exactness(known)) nodes.set(node.key, node);
  }
  return nodes.values();
}

/** Every request has a subject and an address. */
function isForEverybody({ key, match }: RuleNode): boolean {
  return match === 'any' && (key === 'subject' || key === 'remote_address');
}

function sampleOf(node: RuleNode): string {
  switch (node.match) {
    case 'any':
      return SAMPLES[node.key] ?? OTHER_SAMPLE;
    case 'pattern':
      return node.value.replaceAll('*', 'x');
    case 'cidr': {
      const network = parseNetwork(node.value);
      return network === undefined ? SAMPLE_ADDRESS : fillNetwork(network, 1);
    }
    default:
      return node.value;
  }
}

/** A path that the rule's own most specific pattern covers; for a rule about any route, the file's least specific one. */
function pathFor(rule: Rule, { routes }: Ruleset): string | undefined {
  const own = rule.path
    .flatMap((node) => (node.key === 'route' && node.match !== 'any' ? [mustParse(node.value)] : []))
    .sort(compareRoutes)[0];
  return (own?.text ?? routes.at(-1))?.replace(/\/:\w+/g, '/1').replace(/\*$/, 'x');
}

/** The request as this ruleset sees it. A key is what its directory says, whatever else the rule asks of its caller. */
function factsFor({ key, attributes, path }: Probe, { identity }: Ruleset): Facts {
  const { method, ...others } = attributes;
  const caller = key === undefined ? withDefaults(others, identity) : resolved(key, others, identity);
  return { attributes: { remote_address: SAMPLE_ADDRESS, ...caller }, path, method };
}

function withDefaults(
  attributes: Probe['attributes'],
  { defaults }: Ruleset['identity'],
): Probe['attributes'] {
  const isResolved = RESOLVED.some((name) => attributes[name] !== undefined);
  return isResolved ? attributes : { ...defaults, ...attributes };
}

function resolved(
  key: string,
  { user: _user, org: _org, tier: _tier, ...attributes }: Probe['attributes'],
  { keys, defaults, unknownKeys }: Ruleset['identity'],
): Probe['attributes'] {
  if (Object.hasOwn(keys, key)) return { ...attributes, ...keys[key], api_key: key };
  return { ...attributes, ...defaults, ...(unknownKeys === 'subject' && { api_key: key }) };
}

/** The winners of one policy. */
interface Winners {
  readonly enforced?: Rule;
  readonly shadow?: Rule;
}

function winnersOf(matcher: Matcher, probe: Probe): ReadonlyMap<string, Winners> {
  const winners = new Map<string, Winners>();
  for (const { winner } of matcher.contests(factsFor(probe, matcher.ruleset))) {
    const { rule } = winner;
    const mode = rule.shadow ? 'shadow' : 'enforced';
    winners.set(rule.policy, { ...winners.get(rule.policy), [mode]: rule });
  }
  return winners;
}

function policyChanges(
  before: ReadonlyMap<string, Winners>,
  after: ReadonlyMap<string, Winners>,
): readonly PolicyChange[] {
  return [...new Set([...before.keys(), ...after.keys()])].flatMap((policy) =>
    pairsOf(before.get(policy) ?? {}, after.get(policy) ?? {}).flatMap((pair) => policyChange(policy, pair)),
  );
}

type RulePair = readonly [before: Rule | undefined, after: Rule | undefined];

/** A policy that is in one mode before and only in the other after has moved: that is one change and not two. */
function pairsOf(before: Winners, after: Winners): readonly RulePair[] {
  const isRaised = before.enforced === undefined && after.shadow === undefined;
  const isLowered = before.shadow === undefined && after.enforced === undefined;
  if (isRaised) return [[before.shadow, after.enforced]];
  if (isLowered) return [[before.enforced, after.shadow]];
  return [
    [before.enforced, after.enforced],
    [before.shadow, after.shadow],
  ];
}

function policyChange(policy: string, [before, after]: RulePair): readonly PolicyChange[] {
  if (before === undefined && after === undefined) return [];
  if (before !== undefined && after !== undefined && fingerprint(before) === fingerprint(after)) return [];
  const effect = effectOf(before, after);
  return [
    {
      policy,
      ...(before && { before: deciderOf(before) }),
      ...(after && { after: deciderOf(after) }),
      effect,
    },
  ];
}

function deciderOf(rule: Rule): Decider {
  return { title: titleWithoutKeys(rule), shadow: rule.shadow, per: rule.per };
}

function effectOf(before: Rule | undefined, after: Rule | undefined): Effect {
  const [was, is] = [before, after].map((rule) => rule !== undefined && !rule.shadow && !rule.unlimited);
  if (was !== is) return is ? 'tighter' : 'looser';
  if (before?.limit === undefined || after?.limit === undefined) return 'other';
  const shares = [before, after].map(({ regional }) => JSON.stringify(sharesOf(regional)));
  const isSameCounting =
    before.scope === after.scope && before.per.join() === after.per.join() && shares[0] === shares[1];
  return isSameCounting ? compareNumbers(before.limit, after.limit) : 'other';
}

function compareNumbers(before: Limit, after: Limit): Effect {
  if (countsSlots(before) || countsSlots(after)) return 'other';
  const rates = after.quota / after.windowMs - before.quota / before.windowMs;
  const bursts = capacity(after) - capacity(before);
  if (rates <= 0 && bursts <= 0 && rates + bursts < 0) return 'tighter';
  return rates >= 0 && bursts >= 0 && rates + bursts > 0 ? 'looser' : 'other';
}
