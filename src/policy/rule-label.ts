/**
 * A rule's name in metrics: its path, without numbers and without callers, so that it stays the same when a limit changes and there are
 * never more of them than the file has kinds of rules.
 */
import { CALLER_ATTRIBUTES } from './attributes.ts';
import type { Rule } from './ruleset.ts';

/** `tier=free > route=/v1/search`; a rule that names one caller says `api_key=(one)`, whoever that is. */
export function ruleLabel({ path }: Pick<Rule, 'path'>): string {
  return path
    .map((node) => {
      if (node.match === 'any') return node.key;
      return `${node.key}=${CALLER_ATTRIBUTES.has(node.key) && node.match === 'exact' ? '(one)' : node.value}`;
    })
    .join(' > ');
}
