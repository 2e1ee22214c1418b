/**
 * What a valid rule file probably does not mean.
 *
 * Most warnings come from asking the matcher itself. A *witness* of a rule is a request that holds what the rule asks for and little
 * else; more attributes never undo a match, so a rule that loses every witness of its own to others loses everywhere.
 */
import { countsSlots } from '../core/decision.ts';
import { fillNetwork, parseNetwork } from './address.ts';
import type { PlacedRule } from './compile-descriptors.ts';
import { type Facts, Matcher } from './match.ts';
import { formatPath, type Path, type Problem, show } from './problem.ts';
import { compareRoutes, mustParse } from './route-pattern.ts';
import type { Rule, RuleNode, Ruleset } from './ruleset.ts';
import { objectWarnings } from './warnings-objects.ts';

/** A fallback's bucket refills at this much more than its share, so that errors fall on the caller's side. */
const FALLBACK_MARGIN = 1.2;

/** A value that no rule file spells out, so that only rules over any value (or a pattern that covers it) match. */
const UNHEARD_OF = ['\u0001', '\u0002'] as const;
const UNHEARD_OF_ADDRESS = '203.0.113.241';

export function warningsOf(ruleset: Ruleset, placed: readonly PlacedRule[]): readonly Problem[] {
  const matcher = new Matcher(ruleset, { seed: 0 });
  return [
    ...clientWritable(ruleset),
    ...placed.flatMap((item) => [
      ...neverWins(matcher, item),
      ...unlistedKey(ruleset, item),
      ...objectWarnings(ruleset, item),
      ...fallbackAboveLimit(item),
      ...windowToldOtherwise(ruleset, item),
      ...narrowFloodTier(matcher, item, placed),
    ]),
    ...uncovered(matcher),
  ];
}

/** `RateLimit-Policy` has whole seconds, so a client would reckon with another rate than the one that holds. */
function windowToldOtherwise({ headers }: Ruleset, { rule: { limit }, at }: PlacedRule): readonly Problem[] {
  const isTold = headers === 'ietf' || headers === 'both';
  if (!isTold || limit === undefined || countsSlots(limit) || limit.windowMs % 1_000 === 0) return [];
  const seconds = Math.ceil(limit.windowMs / 1_000);
  return [
    {
      path: [...at, 'window'],
      message: `is ${limit.windowMs} ms, which clients are told as ${seconds} s: RateLimit-Policy has whole seconds only`,
    },
  ];
}

function clientWritable(ruleset: Ruleset): readonly Problem[] {
  return Object.entries(ruleset.attributes).map(([name, { header }]) => ({
    path: ['attributes', name],
    message: `comes from the header ${header}, which any client can write: do not grant more by it than to strangers`,
  }));
}

/** A key that is mistyped looks just like one that only the key directory holds. */
function unlistedKey({ identity }: Ruleset, { rule, at }: PlacedRule): readonly Problem[] {
  if (identity.unknownKeys === 'subject') return [];
  const unlisted = rule.path.some((node) => {
    return node.key === 'api_key' && node.match === 'exact' && !Object.hasOwn(identity.keys, node.value);
  });
  const message =
    'names an API key that is not in identity.keys: it matches only if the key directory holds that key';
  return unlisted ? [{ path: at, message }] : [];
}

function neverWins(matcher: Matcher, { rule, at }: PlacedRule): readonly Problem[] {
  const impossible = whyImpossible(matcher.ruleset, rule);
  if (impossible !== undefined) return [{ path: at, message: `can never win: ${impossible}` }];
  const outcomes = witnesses(matcher.ruleset, rule).flatMap((facts) => {
    const contest = matcher.contests(facts).find(({ winner, beaten }) => {
      return winner.rule === rule || beaten.some((placed) => placed.rule === rule);
    });
    return contest === undefined ? [] : [contest.winner.rule];
  });
  // Without an outcome, the samples did not fit the rule's own patterns, and nothing is known.
  if (outcomes.length === 0 || outcomes.includes(rule)) return [];
  const message = `can never win: another rule of policy ${show(rule.policy)} beats it wherever it matches`;
  return [{ path: at, message }];
}

/** Why no request can match, as far as the rule and the directory tell. */
function whyImpossible(ruleset: Ruleset, rule: Rule): string | undefined {
  const exact = new Map<string, string>();
  for (const node of rule.path) {
    if (node.match !== 'exact') continue;
    const earlier = exact.get(node.key);
    if (earlier !== undefined && earlier !== node.value) return `${node.key} cannot have two values at once`;
    exact.set(node.key, node.value);
  }
  const apiKey = exact.get('api_key');
  if (apiKey !== undefined) return contradiction(ruleset, apiKey, exact);
  const asksForRoute = rule.path.some((node) => node.key === 'route');
  return asksForRoute && ruleset.routes.length === 0 ? 'the file names no route pattern' : undefined;
}

function contradiction(
  ruleset: Ruleset,
  apiKey: string,
  exact: ReadonlyMap<string, string>,
): string | undefined {
  const known = Object.hasOwn(ruleset.identity.keys, apiKey) ? ruleset.identity.keys[apiKey] : undefined;
  if (known === undefined) {
    return undefined;
  }
  for (const attribute of ['tier', 'org', 'user']) {
    const wanted = exact.get(attribute);
    if (wanted !== undefined && known[attribute] !== wanted) {
      return `its API key has the ${attribute} ${show(known[attribute])}`;
    }
  }
  return undefined;
}

/** Requests that match the rule and hold little else; several where a pattern covers unlike things. */
function witnesses(ruleset: Ruleset, rule: Rule): readonly Facts[] {
  return UNHEARD_OF.flatMap((sample) => {
    const attributes: Record<string, string> = {
      remote_address: UNHEARD_OF_ADDRESS,
      method: sample,
      host: sample,
    };
    // Exact values last: where a key is asked for twice, they are what fits both.
    const nodes = rule.path.filter(({ key }) => key !== 'route' && key !== 'subject');
    for (const node of nodes.toSorted((a, b) => Number(a.match === 'exact') - Number(b.match === 'exact'))) {
      attributes[node.key] = sampleOf(node, sample);
    }
    const directory = ruleset.identity.keys[attributes.api_key ?? ''] ?? {};
    return pathsOf(rule, ruleset, sample).map((path) => ({
      attributes: { ...directory, ...attributes },
      path,
    }));
  });
}

function sampleOf(node: RuleNode, sample: string): string {
  switch (node.match) {
    case 'any':
      return node.key === 'remote_address' ? UNHEARD_OF_ADDRESS : sample;
    case 'pattern':
      return node.value.replaceAll('*', sample);
    case 'cidr':
      return addressIn(node.value, sample);
    default:
      return node.value;
  }
}

/** An address somewhere inside a network, away from its ends, where narrower networks tend to start. */
function addressIn(network: string, sample: string): string {
  const parsed = parseNetwork(network);
  return parsed === undefined
    ? UNHEARD_OF_ADDRESS
    : fillNetwork(parsed, sample === UNHEARD_OF[0] ? 0x55 : 0xaa);
}

/** Paths that the rule's route patterns cover: of an open pattern also the path itself and one further down. */
function pathsOf(rule: Rule, ruleset: Ruleset, sample: string): readonly (string | undefined)[] {
  const asked = rule.path.filter(({ key }) => key === 'route');
  if (asked.length === 0) return [undefined];
  const own = asked
    .flatMap((node) => (node.match === 'any' ? [] : [mustParse(node.value)]))
    .sort(compareRoutes)[0];
  const pattern = own?.text ?? ruleset.routes.at(-1);
  if (pattern === undefined) return [undefined];
  const filled = pattern.replace(/:\w+/g, sample);
  if (!filled.endsWith('/*')) return [filled];
  const stem = filled.slice(0, -2);
  return [stem === '' ? '/' : stem, `${stem}/${sample}`, `${stem}/${sample}/${sample}`];
}

function fallbackAboveLimit({ rule, at }: PlacedRule): readonly Problem[] {
  if (rule.scope === 'local' || rule.limit === undefined || rule.failureMode === 'closed') return [];
  if (countsSlots(rule.limit)) return [];
  const share = rule.blindShare * FALLBACK_MARGIN;
  if (share <= 1) return [];
  const message = `lets a single isolate admit ${share.toFixed(2)} times the limit while its owner is away (blind_share x ${FALLBACK_MARGIN})`;
  return [{ path: at, message }];
}

/**
 * A local rule that sees the requests of one caller under a global rule, and admits fewer of them: the caller is refused inside its
 * quota, by a tier that was meant for floods.
 */
function narrowFloodTier(
  matcher: Matcher,
  { rule, at }: PlacedRule,
  placed: readonly PlacedRule[],
): readonly Problem[] {
  if (rule.scope === 'local' || rule.shadow || rule.limit === undefined || !countsOneCaller(rule)) return [];
  if (countsSlots(rule.limit)) return [];
  const rate = rule.limit.quota / rule.limit.windowMs;
  const shields = new Set<Rule>();
  for (const facts of witnesses(matcher.ruleset, rule)) {
    const winners = matcher.contests(facts).map(({ winner }) => winner.rule);
    if (!winners.includes(rule)) continue;
    for (const winner of winners) if (winner.scope === 'local' && !winner.shadow) shields.add(winner);
  }
  const narrower = placed.filter((item) => {
    const { limit } = item.rule;
    return shields.has(item.rule) && limit !== undefined && limit.quota / limit.windowMs < rate;
  });
  return narrower.map((item) => ({
    path: item.at,
    message: `is a flood tier with a lower rate than ${formatPath(at)}, which it shields: it denies callers inside their quota`,
  }));
}

function countsOneCaller(rule: Rule): boolean {
  return rule.per.some((attribute) => ['subject', 'api_key', 'user', 'remote_address'].includes(attribute));
}

/** Callers of each kind that the file names, on a path that it does not: some rule should be about them. */
function uncovered(matcher: Matcher): readonly Problem[] {
  const { identity } = matcher.ruleset;
  const classes = new Set<string>();
  const add = (name: string, attributes: Readonly<Record<string, string>>) => {
    const facts = {
      attributes: { remote_address: UNHEARD_OF_ADDRESS, method: UNHEARD_OF[0], ...attributes },
    };
    if (matcher.contests(facts).every(({ winner }) => winner.rule.shadow)) classes.add(name);
  };
  add('callers without a known key', identity.defaults);
  for (const [hash, attributes] of Object.entries(identity.keys)) {
    const tier = attributes.tier === undefined ? 'without a tier' : `of the tier ${show(attributes.tier)}`;
    add(`known keys ${tier}`, { ...attributes, api_key: hash });
  }
  const path: Path = ['descriptors'];
  return [...classes].map((name) => ({
    path,
    message: `cover no request of ${name} outside the routes that the file names: those pass uncounted`,
  }));
}
