/**
 * `limiter explain FILE --attr key=value ...`: which rules match a request, which win and why, what they count on, and how
 * much more than its limit each could admit.
 *
 * The request is resolved as the gateway would: a raw API key is hashed and looked up in the static directory, and a key that
 * is not there leaves the caller to its address, unless the file says that unknown keys are subjects.
 */
import { type Command, InvalidArgumentError } from 'commander';
import { type Bound, boundOf, type Topology } from '../../src/engine/bound.ts';
import { type OwnerPrice, type Price, priceOf, ROOT_CALLS_PER_SECOND } from '../../src/engine/price.ts';
import { callerAttributes, namedKeysOf } from '../../src/policy/caller.ts';
import {
  type Counted,
  countedRule,
  type Explanation,
  explain,
  numbersOf,
  type PolicyExplanation,
} from '../../src/policy/explain.ts';
import { type Facts, Matcher } from '../../src/policy/match.ts';
import { regionsOf } from '../../src/policy/place.ts';
import { isRegion, REGIONS, type Region } from '../../src/policy/region.ts';
import { normalisePath } from '../../src/policy/route-pattern.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { command, UsageError } from '../command.ts';
import { type Attributes, collect, pairsOf } from './admin/attributes.ts';
import { sha256 } from './load.ts';
import { readRuleFile } from './validate.ts';

const EXAMPLES = `
Attributes: api_key (the key itself), user, org, tier, route or path, method, host, remote_address, country, asn, and those
that the file declares.

Examples:
  npm run limiter -- explain rules/default.yaml --attr api_key=demo_free_key --attr route=/v1/search
  npm run limiter -- explain rules/default.yaml --attr remote_address=203.0.113.9 --attr path=/login --attr method=POST
  npm run limiter -- explain rules/default.yaml --attr tier=premium --cost 10 --json`;

interface Options {
  readonly attr?: readonly string[];
  readonly cost?: number;
  readonly region?: Region;
  readonly regions?: number;
  readonly isolates: number;
  readonly blindIsolates: number;
  readonly json?: boolean;
}

/** A policy with its worst cases: none where nothing is counted, nor in shadow, which decides nothing. */
interface BoundedPolicy extends PolicyExplanation {
  readonly bound: Bound | undefined;
}

interface BoundedExplanation extends Explanation {
  readonly topology: Topology;
  readonly policies: readonly BoundedPolicy[];
  /** Absent when no such request is ever admitted. */
  readonly price: Price | undefined;
}

/** A caller that is busy in one place: the isolates that serve it there, and as many more that meet an owner's silence unprepared. */
const ISOLATES = 4;
const BLIND_ISOLATES = 4;

/** The caller's address where none is given: from a range that documentation may use. */
const SAMPLE_ADDRESS = '203.0.113.1';

export function explainCommand(finish: (exitCode: number) => void): Command {
  return command(
    'explain',
    'Shows which rules a request meets, which of them win and why, what they count on, their worst cases, and what their owners cost.',
  )
    .argument('<file>', 'a rule file (YAML or JSON)')
    .option('--attr <key=value>', 'an attribute of the request; may be repeated', collect)
    .option('--cost <n>', "what the request costs, in place of the file's costs", parseCount)
    .option(
      '--region <region>',
      `where it comes from, for rules of regions: ${REGIONS.join(', ')} (default: the file's first)`,
      parseRegion,
    )
    .option('--isolates <n>', 'how many isolates the worst cases are for', parseIsolates, ISOLATES)
    .option(
      '--blind-isolates <n>',
      'how many more that the owner had never answered when it fell silent',
      parseCount,
      BLIND_ISOLATES,
    )
    .option(
      '--regions <n>',
      'how many regions the worst cases of rules of regions are for (default: those of the file)',
      parseRegions,
    )
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, options: Options) => {
      const rules = await readRuleFile(file);
      if ('errors' in rules) {
        for (const line of rules.errors) console.error(line);
        finish(1);
        return;
      }
      const facts = factsOf(rules.ruleset, pairsOf(options.attr ?? [], '--attr'));
      const found = explain(new Matcher(rules.ruleset, { seed: 0 }), facts, options.region);
      const explanation = withBounds({ ...found, cost: options.cost ?? found.cost }, rules.ruleset, options);
      console.log(options.json ? JSON.stringify(explanation, undefined, 2) : textOf(explanation, facts));
    });
}

function parseCount(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count))
    throw new InvalidArgumentError('wants a whole number from 0.');
  return count;
}

function parseRegion(text: string): Region {
  if (!isRegion(text)) throw new InvalidArgumentError(`wants one of ${REGIONS.join(', ')}.`);
  return text;
}

function parseIsolates(text: string): number {
  const isolates = parseCount(text);
  if (isolates === 0) throw new InvalidArgumentError('wants a whole number from 1.');
  return isolates;
}

function parseRegions(text: string): number {
  const regions = parseCount(text);
  if (regions < 1 || regions > REGIONS.length)
    throw new InvalidArgumentError(`wants a whole number from 1 to ${REGIONS.length}.`);
  return regions;
}

function withBounds(
  explanation: Explanation,
  ruleset: Ruleset,
  { isolates, blindIsolates, regions = regionsOf(ruleset).length }: Options,
): BoundedExplanation {
  const largestCost = Math.max(1, explanation.cost, ...ruleset.costs.map(({ cost }) => cost));
  const topology = { isolates, blindIsolates, largestCost, regions };
  const policies = explanation.policies.map((policy) => ({
    ...policy,
    bound: policy.shadow
      ? undefined
      : boundOf(countedRule(policy), { ...topology, isShared: policy.counted?.owner.shared }),
  }));
  const price = priceOf(explanation.policies, { isolates, cost: explanation.cost, largestCost });
  return { ...explanation, topology, policies, price };
}

function factsOf(ruleset: Ruleset, given: Attributes): Facts {
  const { path, route, method, api_key: apiKey, ...attributes } = given;
  if (path !== undefined && route !== undefined) {
    throw new UsageError('--attr path and --attr route both name the path: give one of them.');
  }
  refuseUnknown(ruleset, Object.keys(attributes));
  const asked = path ?? route;
  return {
    attributes: {
      remote_address: SAMPLE_ADDRESS,
      ...callerAttributes(apiKey === undefined ? undefined : sha256(apiKey), {
        ruleset,
        namedKeys: namedKeysOf(ruleset),
      }),
      ...attributes,
    },
    path: asked === undefined ? undefined : normalisePath(asked),
    method,
  };
}

function refuseUnknown(ruleset: Ruleset, names: readonly string[]): void {
  const ours = ['user', 'org', 'tier', 'host', 'remote_address', 'country', 'asn'];
  const unknown = names.find((name) => !ours.includes(name) && !Object.hasOwn(ruleset.attributes, name));
  if (unknown !== undefined) {
    throw new UsageError(
      `--attr ${unknown}: no request has this attribute under this rule file (--help lists those there are).`,
    );
  }
}

function textOf(explanation: BoundedExplanation, facts: Facts): string {
  const { domain, region, route, cost, estimate, unmatched, policies, price } = explanation;
  const isRegional = policies.some(({ counted }) => counted?.inRegion !== undefined);
  const told = estimate?.header === undefined ? 'the Worker’s code says' : `${estimate.header} says`;
  const corrected = estimate && ` (an estimate: then what ${told}, else ${estimate.defaultCost})`;
  const attributes = Object.entries(facts.attributes).map(([key, value]) => `${key}=${value}`);
  return [
    `domain ${domain}, cost ${cost}${corrected ?? ''}, route ${route ?? '(none matches)'}${isRegional ? `, from ${region}` : ''}`,
    `caller ${attributes.join(' ')}`,
    ...(unmatched ? ['no rule matches: the request passes, and is counted as unmatched'] : []),
    ...policies.flatMap(policyLines),
    '',
    ...priceLines(price),
  ].join('\n');
}

function policyLines(policy: BoundedPolicy): readonly string[] {
  const mode = policy.shadow
    ? 'shadow'
    : policy.rule.scope === 'local'
      ? 'enforced in each isolate'
      : 'enforced';
  const rivals = policy.beaten.map(({ title, because }) => `  ${because}: beats ${title}`);
  return [
    '',
    `policy ${JSON.stringify(policy.policy)}, ${mode}`,
    `  wins: ${policy.title}`,
    ...(rivals.length === 0 ? ['  no other rule of this policy matches'] : rivals),
    ...countedLines(policy),
    ...boundLines(policy),
  ];
}

function countedLines({ counted, rule }: PolicyExplanation): readonly string[] {
  if (counted === undefined) return ['  counts nothing: unlimited'];
  const pairs = counted.pairs.map(([attribute, value]) => `${attribute}=${value}`).join(', ');
  const isLocal = rule.scope === 'local';
  const unanswered =
    rule.failureMode === 'open' ? 'a local share decides (open)' : 'denied with 503 (closed)';
  return [
    `  counts per: ${pairs === '' ? '(one counter for all)' : pairs}`,
    ...(isLocal
      ? [`  counter: ${counted.counterId}`, "  held by: each isolate's own memory"]
      : holderLines(counted)),
    ...(isLocal ? [] : [`  without an answer: ${unanswered}`]),
  ];
}

function holderLines(counted: Counted): readonly string[] {
  const { inRegion } = counted;
  const { counterId, owner } = inRegion ?? counted;
  const shared = owner.shared ? ' (shared: clients can invent such values)' : '';
  const lines = [`  counter: ${counterId}`, `  held by: owner ${owner.name}${shared}`];
  if (inRegion === undefined) return lines;
  return inRegion.isSplit
    ? [...lines, `  with the part of ${inRegion.region} for itself: ${numbersOf(inRegion.limit)}`]
    : [...lines, `  which borrows from: owner ${counted.owner.name}, counter ${counted.counterId}`];
}

function boundLines({ bound }: BoundedPolicy): readonly string[] {
  return bound === undefined
    ? []
    : ['  worst cases:', ...bound.sentences.map((sentence) => `    ${sentence}`)];
}

function priceLines(price: Price | undefined): readonly string[] {
  if (price === undefined) return ['price: no such request is ever admitted'];
  if (price.owners.length === 0) return ['price: no owner is asked, so nothing beside the Worker requests'];
  const rate = Number(price.requestsPerSecond.toPrecision(3)).toLocaleString('en', {
    maximumFractionDigits: 9,
  });
  return [
    `price of a million requests, at ${rate} a second, beside the Worker requests, at list prices of late 2026:`,
    ...price.owners.map(ownerLine),
  ];
}

function ownerLine(price: OwnerPrice): string {
  const { owner, calls, rows, objectSeconds, dollars } = price;
  const told = (amount: number) => Math.round(amount).toLocaleString('en');
  return (
    `  ${usesOf(price).join('; ')}: about $${dollars.toFixed(2)}: ${told(calls)} calls, ` +
    `${told(rows)} rows and ${told(objectSeconds)} s of owner ${owner}`
  );
}

function usesOf({ policies, lent, isLeased }: OwnerPrice): readonly string[] {
  const names = (all: OwnerPrice['policies']) =>
    all.map(({ policy, shadow }) => (shadow ? `${policy} (shadow)` : policy)).join(', ');
  const asked = `${names(policies)}, ${isLeased ? 'leased' : 'asked for each'}`;
  const told = `${names(lent)}, borrowed by a region in at most ${ROOT_CALLS_PER_SECOND} calls a second`;
  return [...(policies.length > 0 ? [asked] : []), ...(lent.length > 0 ? [told] : [])];
}
