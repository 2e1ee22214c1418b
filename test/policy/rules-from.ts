/** Rule files written inside tests, and winners told in one readable line. */
import { type LoadedRules, loadRules } from '../../scripts/limiter/load.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { type Facts, Matcher } from '../../src/policy/match.ts';
import type { RuleNode, Ruleset } from '../../src/policy/ruleset.ts';

export const SEED = 7;
export const BUILT_AT_MS = 1_790_000_000_000;

export function load(yaml: string): LoadedRules {
  return loadRules(new TextEncoder().encode(yaml), { name: 'rules.yaml', builtAtMs: BUILT_AT_MS });
}

export function rulesetFrom(yaml: string): Ruleset {
  const rules = load(yaml);
  if ('errors' in rules) throw new Error(rules.errors.join('\n'));
  return rules.ruleset;
}

export function matcherFrom(yaml: string): Matcher {
  return new Matcher(rulesetFrom(yaml), { seed: SEED });
}

export function warningsFrom(yaml: string): readonly string[] {
  const rules = load(yaml);
  if ('errors' in rules) throw new Error(rules.errors.join('\n'));
  return rules.warnings.map((line) => line.replace(/^rules\.yaml:/, ''));
}

export function errorsFrom(yaml: string): readonly string[] {
  const rules = load(yaml);
  return 'errors' in rules ? rules.errors.map((line) => line.replace(/^rules\.yaml:/, '')) : [];
}

/** A rule file of the given descriptors, in flow style or block style. */
export function withDescriptors(descriptors: string, head = ''): string {
  return `domain: test\n${head}\ndescriptors:\n${descriptors}\n`;
}

/** `policy: key=value > key @ attribute=value`. */
export function tell({ rule, pairs }: Winner): string {
  const counted = pairs.map(([attribute, value]) => `${attribute}=${value}`).join(' ');
  return `${rule.policy}: ${rule.path.map(tellNode).join(' > ')} @ ${counted}`;
}

function tellNode(node: RuleNode): string {
  return node.match === 'any' ? node.key : `${node.key}=${node.value}`;
}

export function factsOf(attributes: Record<string, string>, path?: string, method = 'GET'): Facts {
  return { attributes: { remote_address: '192.0.2.1', ...attributes }, path, method };
}
