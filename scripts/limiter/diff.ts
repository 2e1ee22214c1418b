/**
 * `limiter diff A B`: what changes when ruleset B takes the place of A, and for whom.
 *
 * What an argument stands for is for the caller of `diffCommand` to say: a rule file (`rulesetOfFile`), or a version that was published.
 */
import type { Command } from 'commander';
import {
  type Affected,
  type Decider,
  diffRulesets,
  type FieldChange,
  isEmptyDiff,
  type KeyChange,
  type KeyChanges,
  type PolicyChange,
  type RuleChanges,
  type RuleRef,
  type RulesetDiff,
} from '../../src/policy/diff.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { command, FailureError } from '../command.ts';
import { durationText, plainText, plural } from './text.ts';
import { readRuleFile } from './validate.ts';

const EXAMPLES = `
Rules are the same when they count the same: policy, mode, keys and values. "For whom" is found by asking both rulesets about a sample
of the requests that each rule of either is about.

Examples:
  npm run limiter -- diff rules/default.yaml new.yaml
  npm run limiter -- diff rules/default.yaml new.yaml --json

Ends with 0 whether or not they differ, 1 when a ruleset is invalid, 2 when one cannot be read.`;

/** More than these are counted and not listed. */
const REQUESTS_SHOWN_MAX = 6;
const KEYS_SHOWN_MAX = 10;

/** A rule that counts per nothing has one counter for all. */
const ALL_TOGETHER = '(all together)';

/** `resolve` turns an argument into a ruleset; a `FailureError` of its tells what is wrong with what the argument names. */
export function diffCommand(
  finish: (exitCode: number) => void,
  resolve: (name: string) => Promise<Ruleset>,
): Command {
  return command('diff', 'Compares two rulesets: what changes, and for whom.')
    .argument('<before>', 'a ruleset')
    .argument('<after>', 'the one that takes its place')
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (before: string, after: string, options: { readonly json?: boolean }) => {
      const rulesets = await bothOf(before, after, resolve);
      if (rulesets === undefined) {
        finish(1);
        return;
      }
      const diff = diffRulesets(...rulesets);
      console.log(options.json ? JSON.stringify(diff, undefined, 2) : formatDiff(diff));
      finish(0);
    });
}

/** Fails with every error of the file, each with its place. */
export async function rulesetOfFile(name: string): Promise<Ruleset> {
  const rules = await readRuleFile(name);
  if ('errors' in rules) throw new FailureError(rules.errors.join('\n'));
  return rules.ruleset;
}

/** Nothing when one of them is invalid; what is wrong with each has been said then. */
async function bothOf(
  before: string,
  after: string,
  resolve: (name: string) => Promise<Ruleset>,
): Promise<readonly [Ruleset, Ruleset] | undefined> {
  const results = await Promise.allSettled([resolve(before), resolve(after)]);
  const rulesets: Ruleset[] = [];
  for (const result of results) {
    if (result.status === 'fulfilled') rulesets.push(result.value);
    else if (!(result.reason instanceof FailureError)) throw result.reason;
  }
  for (const result of results) if (result.status === 'rejected') console.error(result.reason.message);
  const [one, two] = rulesets;
  return one === undefined || two === undefined ? undefined : [one, two];
}

export function formatDiff(diff: RulesetDiff): string {
  if (isEmptyDiff(diff)) return 'nothing changes';
  const { domain, settings, rules, keys } = diff;
  const renamed = domain && `domain ${domain.before} -> ${domain.after}: every counter starts anew`;
  const sections = [
    renamed === undefined ? [] : [renamed],
    section('rules', ruleLines(rules)),
    section(
      'settings',
      settings.map(({ setting, ...values }) => `${markOf(values)} ${setting}: ${valuesText(values)}`),
    ),
    section(keysTitle(keys), keyLines(keys)),
    section(affectedTitle(diff), affectedLines(diff.affected)),
  ];
  return sections
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join('\n'))
    .join('\n\n');
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : [title, ...lines.map((line) => `  ${line}`)];
}

/** `+` is new, `-` is gone, `~` is changed. */
function markOf({ before, after }: { readonly before?: unknown; readonly after?: unknown }): string {
  if (before === undefined) return '+';
  return after === undefined ? '-' : '~';
}

function valuesText({ before, after }: { readonly before?: string; readonly after?: string }): string {
  return [before, after]
    .filter((value) => value !== undefined)
    .map(plainText)
    .join(' -> ');
}

function ruleLines({ added, removed, changed, moved, isReordered }: RuleChanges): readonly string[] {
  return [
    ...removed.map((rule) => `- ${ruleText(rule)}`),
    ...added.map((rule) => `+ ${ruleText(rule)}`),
    ...moved.map(({ before, after, fields }) => {
      const also = fields.length === 0 ? '' : `; ${fieldsText(fields)}`;
      return `~ ${ruleText(after)}: ${modeOf(before)} -> ${modeOf(after)}${also}`;
    }),
    ...changed.map(({ before, fields }) => `~ ${ruleText(before)}: ${fieldsText(fields)}`),
    ...(isReordered
      ? ['~ stand in another order, which decides between rules that are equally specific']
      : []),
  ];
}

function ruleText({ policy, shadow, title }: RuleRef): string {
  return `policy ${JSON.stringify(policy)}${shadow ? ', shadow' : ''}, ${plainText(title)}`;
}

function modeOf({ shadow }: RuleRef): string {
  return shadow ? 'shadow' : 'enforced';
}

function fieldsText(fields: readonly FieldChange[]): string {
  return fields
    .map(({ field, before, after }) => {
      const isDuration = field.endsWith('Ms');
      const name = fileName(isDuration ? field.slice(0, -2) : field);
      const show = (value: FieldChange['before']) =>
        isDuration ? durationText(Number(value)) : plainText(String(value)) || ALL_TOGETHER;
      return `${name} ${show(before)} -> ${show(after)}`;
    })
    .join(', ');
}

/** As a rule file spells it. */
function fileName(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function keysTitle({ added, removed, changed }: KeyChanges): string {
  return `keys: ${added.length} added, ${removed.length} removed, ${changed.length} changed`;
}

function keyLines({ added, removed, changed }: KeyChanges): readonly string[] {
  const all = [...removed, ...added, ...changed];
  return shortened(all.map(keyLine), KEYS_SHOWN_MAX);
}

function keyLine({ key, before, after }: KeyChange): string {
  const show = (attributes: KeyChange['before']) =>
    attributes &&
    (Object.entries(attributes)
      .map((entry) => entry.join('='))
      .join(' ') ||
      '(no attributes)');
  const values = [show(before), show(after)].filter((text) => text !== undefined).map(plainText);
  return `${markOf({ before, after })} ${key} ${values.join(' -> ')}`;
}

function affectedTitle({ probes, probesLeftOut }: RulesetDiff): string {
  const leftOut = probesLeftOut === 0 ? '' : `; ${probesLeftOut} more were not`;
  return `for whom (${plural(probes, 'kind')} of request ${probes === 1 ? 'was' : 'were'} tried${leftOut})`;
}

/** Requests to which the same happens are told together. */
function affectedLines(affected: readonly Affected[]): readonly string[] {
  const requests = new Map<string, string[]>();
  for (const { request, policies } of affected) {
    for (const change of policies) {
      const line = changeLine(change);
      const known = requests.get(line);
      if (known === undefined) requests.set(line, [request]);
      else known.push(request);
    }
  }
  return [...requests].flatMap(([line, those]) => [
    line,
    ...shortened(those.map(plainText), REQUESTS_SHOWN_MAX).map((request) => `    ${request}`),
  ]);
}

function changeLine({ policy, before, after, effect }: PolicyChange): string {
  const isPer = before !== undefined && after !== undefined && perText(before) !== perText(after);
  const sides = [before, after].map((decider) => deciderText(decider, isPer));
  return `${effect}: policy ${JSON.stringify(policy)}, ${sides.join(' -> ')}`;
}

function deciderText(decider: Decider | undefined, isPer: boolean): string {
  if (decider === undefined) return 'none';
  const per = isPer ? ` per ${perText(decider)}` : '';
  return `${plainText(decider.title)}${per}${decider.shadow ? ' (shadow)' : ''}`;
}

function perText({ per }: Decider): string {
  return per.join(', ') || ALL_TOGETHER;
}

function shortened(lines: readonly string[], shownMax: number): readonly string[] {
  if (lines.length <= shownMax + 1) return lines;
  return [...lines.slice(0, shownMax), `and ${lines.length - shownMax} more`];
}
