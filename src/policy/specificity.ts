/**
 * Which of the rules that match a request wins in its policy.
 *
 * In order: a rule that names one caller; the deeper rule; level by level from the leaf to the root, exact before pattern before any
 * value; for the same key the longer literal; the first in the file. All but the last two are known before any request is, and
 * order the rules once (`compareStatic`). The longer literal is no order of rules (three rules over different keys could each beat
 * the next), so `breakTie` applies it as it reads: at each level, among the rules with the same key there, only those with the
 * longest literal stay; the first in the file of those that are left wins.
 */
import { CALLER_ATTRIBUTES } from './attributes.ts';
import { mustParse } from './route-pattern.ts';
import type { Rule, RuleNode } from './ruleset.ts';

export type Reason =
  | 'names one caller'
  | 'is deeper'
  | 'is more exact'
  | 'has the longer literal'
  | 'comes first in the file';

/** A rule with its place in the file, and how much of the value of each level is spelt out. */
export interface Placed {
  readonly rule: Rule;
  readonly index: number;
  readonly literals: readonly number[];
}

export function place(rule: Rule, index: number): Placed {
  return { rule, index, literals: rule.path.map(literalLength) };
}

export function namesOneCaller(rule: Rule): boolean {
  return rule.path.some((node) => node.match === 'exact' && CALLER_ATTRIBUTES.has(node.key));
}

/** Negative when `a` is the more specific; 0 when only `breakTie` can tell. */
export function compareStatic(a: Rule, b: Rule): number {
  const byCaller = Number(namesOneCaller(b)) - Number(namesOneCaller(a));
  if (byCaller !== 0) return byCaller;
  if (a.path.length !== b.path.length) return b.path.length - a.path.length;
  return compareExactness(a, b);
}

function compareExactness(a: Rule, b: Rule): number {
  for (let level = a.path.length - 1; level >= 0; level -= 1) {
    const difference = exactness(nodeAt(b, level)) - exactness(nodeAt(a, level));
    if (difference !== 0) return difference;
  }
  return 0;
}

function exactness(node: RuleNode): number {
  if (node.match === 'any') return 0;
  return node.match === 'exact' ? 2 : 1;
}

/** The winner among rules that all match one request and that `compareStatic` holds equal. */
export function breakTie<Candidate extends Placed>(candidates: readonly Candidate[]): Candidate {
  let left = candidates;
  const depth = left[0]?.rule.path.length ?? 0;
  for (let level = depth - 1; level >= 0; level -= 1) {
    const longest = new Map<string, number>();
    for (const { rule, literals } of left) {
      const { key } = nodeAt(rule, level);
      longest.set(key, Math.max(longest.get(key) ?? 0, literals[level] as number));
    }
    left = left.filter(({ rule, literals }) => literals[level] === longest.get(nodeAt(rule, level).key));
  }
  return left.reduce((first, other) => (other.index < first.index ? other : first));
}

/** Why the winner beat this other match. */
export function reasonOver(winner: Placed, loser: Placed): Reason {
  if (namesOneCaller(winner.rule) !== namesOneCaller(loser.rule)) return 'names one caller';
  if (winner.rule.path.length !== loser.rule.path.length) return 'is deeper';
  if (compareExactness(winner.rule, loser.rule) !== 0) return 'is more exact';
  // Against a loser that comes earlier, a literal decided; the file's order decided the rest.
  const differs = winner.rule.path.some((node, level) => {
    return node.key === nodeAt(loser.rule, level).key && winner.literals[level] !== loser.literals[level];
  });
  return differs || loser.index < winner.index ? 'has the longer literal' : 'comes first in the file';
}

/** How much of a value is spelt out: characters of a pattern or route, bits of a network. */
function literalLength(node: RuleNode): number {
  switch (node.match) {
    case 'any':
      return 0;
    case 'route':
      return mustParse(node.value).literalLength;
    case 'cidr':
      return Number(node.value.split('/')[1]);
    case 'pattern':
      return node.value.replaceAll('*', '').length;
    case 'exact':
      return node.value.length;
  }
}

function nodeAt(rule: Rule, level: number): RuleNode {
  return rule.path[level] as RuleNode;
}
