/**
 * What changes when one ruleset takes another's place: rule by rule, setting by setting, and for whom requests are decided otherwise.
 *
 * A rule is the same rule when its counters are the same (`rulePrefix`), whatever its numbers and its place in the file. All of it is
 * plain data that JSON holds, and no key is in it: of an API key the first digits of its hash are shown. Two rulesets of different
 * domains can be compared; rules are then told apart as if both had one.
 */
import { rulePrefix } from './counter.ts';
import { type Affected, affectedBy, type Probing } from './diff-affected.ts';
import {
  diffKeys,
  diffSettings,
  type KeyChanges,
  type SettingChange,
  titleWithoutKeys,
} from './diff-settings.ts';
import { REGIONS } from './region.ts';
import type { Regional, Rule, Ruleset } from './ruleset.ts';

export type { Affected, Decider, Effect, PolicyChange } from './diff-affected.ts';
export type { KeyChange, KeyChanges, SettingChange } from './diff-settings.ts';

export interface RulesetDiff extends Probing {
  /** Absent when both are of one domain. Counters carry the domain, so none of them is kept over such a change. */
  readonly domain?: { readonly before: string; readonly after: string };
  readonly rules: RuleChanges;
  readonly settings: readonly SettingChange[];
  /** The static key directory. */
  readonly keys: KeyChanges;
  /** Kinds of request that are decided by other rules or numbers, one of each kind. */
  readonly affected: readonly Affected[];
}

export interface RuleChanges {
  readonly added: readonly RuleRef[];
  readonly removed: readonly RuleRef[];
  readonly changed: readonly RuleChange[];
  /** From enforced to shadow or back. */
  readonly moved: readonly RuleChange[];
  /** The rules that both have stand in another order, which decides between rules that are equally specific. */
  readonly isReordered: boolean;
}

export interface RuleRef {
  readonly policy: string;
  readonly shadow: boolean;
  readonly title: string;
}

export interface RuleChange {
  readonly before: RuleRef;
  readonly after: RuleRef;
  /** Empty for a rule that was only moved. */
  readonly fields: readonly FieldChange[];
}

export interface FieldChange {
  readonly field: string;
  readonly before: string | number | boolean;
  readonly after: string | number | boolean;
}

export function diffRulesets(before: Ruleset, after: Ruleset): RulesetDiff {
  const isOtherDomain = before.domain !== after.domain;
  return {
    ...(isOtherDomain && { domain: { before: before.domain, after: after.domain } }),
    rules: diffRules(before.rules, after.rules),
    settings: diffSettings(before, after),
    keys: diffKeys(before.identity.keys, after.identity.keys),
    ...affectedBy(before, after),
  };
}

export function isEmptyDiff({ domain, rules, settings, keys, affected }: RulesetDiff): boolean {
  const lists = [rules.added, rules.removed, rules.changed, rules.moved, settings, affected];
  const directory = [keys.added, keys.removed, keys.changed];
  return (
    domain === undefined && !rules.isReordered && [...lists, ...directory].every(({ length }) => length === 0)
  );
}

function diffRules(before: readonly Rule[], after: readonly Rule[]): RuleChanges {
  const [old, young] = [byIdentity(before), byIdentity(after)];
  const added: RuleRef[] = [];
  const removed: RuleRef[] = [];
  const changed: RuleChange[] = [];
  const moved: RuleChange[] = [];
  for (const [identity, rule] of old) {
    const [same, other] = [young.get(identity), young.get(identityOf(inOtherMode(rule)))];
    if (same !== undefined) changed.push(...changesOf(rule, same));
    // Where both modes were there before, the one that stays is no move of the one that goes.
    else if (other !== undefined && !old.has(identityOf(other))) moved.push(changeOf(rule, other));
    else removed.push(refOf(rule));
  }
  for (const [identity, rule] of young) {
    const other = identityOf(inOtherMode(rule));
    const isMoved = old.has(other) && !young.has(other);
    if (!old.has(identity) && !isMoved) added.push(refOf(rule));
  }
  const kept = (one: ReadonlyMap<string, Rule>, two: ReadonlyMap<string, Rule>) =>
    JSON.stringify([...one.keys()].filter((identity) => two.has(identity)));
  return { added, removed, changed, moved, isReordered: kept(old, young) !== kept(young, old) };
}

/** In the order of the file. */
function byIdentity(rules: readonly Rule[]): ReadonlyMap<string, Rule> {
  return new Map(rules.map((rule) => [identityOf(rule), rule]));
}

/** What a rule's counters are named by, but for the domain. */
function identityOf(rule: Rule): string {
  return rulePrefix('', rule);
}

function inOtherMode(rule: Rule): Rule {
  return { ...rule, shadow: !rule.shadow };
}

function refOf(rule: Rule): RuleRef {
  return { policy: rule.policy, shadow: rule.shadow, title: titleWithoutKeys(rule) };
}

function changesOf(before: Rule, after: Rule): readonly RuleChange[] {
  const change = changeOf(before, after);
  return change.fields.length === 0 ? [] : [change];
}

function changeOf(before: Rule, after: Rule): RuleChange {
  const [old, young] = [fieldsOf(before), fieldsOf(after)];
  // A burst that was not asked for follows the quota.
  const follows = before.limit?.burst === before.limit?.quota && after.limit?.burst === after.limit?.quota;
  const fields = Object.keys(old).flatMap((field): FieldChange[] => {
    const [was, is] = [old[field], young[field]];
    if (was === undefined || is === undefined || was === is || (field === 'burst' && follows)) return [];
    return [{ field, before: was, after: is }];
  });
  return { before: refOf(before), after: refOf(after), fields };
}

function fieldsOf(rule: Rule): Readonly<Record<string, FieldChange['before'] | undefined>> {
  const { limit, unlimited, per, scope, regional, consistency, failureMode, blindShare } = rule;
  return {
    unlimited,
    algorithm: limit?.algorithm,
    quota: limit?.quota,
    windowMs: limit?.windowMs,
    burst: limit?.burst,
    maxDelayMs: limit?.maxDelayMs,
    per: per.join(', '),
    scope,
    startCredit: regional?.weights === undefined ? regional?.startCredit : undefined,
    regionWeights: regional && weightsText(regional.weights),
    consistency,
    failureMode,
    blindShare,
  };
}

/** In one order, whatever that of the file. */
function weightsText(weights: Regional['weights']): string {
  const shares = REGIONS.flatMap((region) => {
    const weight = weights?.[region];
    return weight === undefined ? [] : [`${region} ${weight}`];
  });
  return shares.length === 0 ? 'none' : shares.join(', ');
}
