/**
 * Compiles the rule file that is bundled with the Worker, so that the Worker needs no YAML parser.
 *
 * `RULES_FILE` names another file than `rules/default.yaml`. The result is written only when something but its build time has
 * changed: a watcher that compiles on every change must not be set off by its own work.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import type { Ruleset } from '../src/policy/ruleset.ts';
import { command, PROJECT_ROOT, runCommand, UsageError } from './command.ts';
import { type LoadedRules, loadRuleFile } from './limiter/load.ts';

export const BUNDLED_RULESET = join(PROJECT_ROOT, 'src', 'generated', 'ruleset.json');

/** The compiled file with its warnings, or all its errors, as lines for a terminal. Rejects when it cannot be read. */
export function compileRuleFile(path: string): Promise<LoadedRules> {
  return loadRuleFile(path, Date.now());
}

async function main(argv: readonly string[]): Promise<number> {
  const program = command('compile-rules', 'Compiles the bundled rule file to src/generated/ruleset.json.')
    .option('--out <file>', 'where to write', BUNDLED_RULESET)
    .addHelpText('after', '\nRULES_FILE=path names another rule file than rules/default.yaml.')
    .allowExcessArguments(false);
  program.parse(argv, { from: 'user' });
  const path = process.env.RULES_FILE ?? relative(process.cwd(), join(PROJECT_ROOT, 'rules', 'default.yaml'));
  const result = await compileRuleFile(path).catch((error: Error) => {
    throw new UsageError(`cannot read the rule file ${path}: ${error.message}`);
  });
  for (const line of 'errors' in result ? result.errors : result.warnings) console.error(line);
  if ('errors' in result) return 1;
  await writeIfChanged(program.opts<{ out: string }>().out, result.ruleset);
  return 0;
}

async function writeIfChanged(output: string, ruleset: Ruleset): Promise<void> {
  const before = await readFile(output, 'utf8').catch(() => undefined);
  if (before !== undefined && isSameButForTime(before, ruleset)) return;
  await mkdir(dirname(output), { recursive: true });
  await writeFile(output, `${JSON.stringify(ruleset, undefined, 2)}\n`);
}

function isSameButForTime(before: string, ruleset: Ruleset): boolean {
  const builtAt = /^ {2}"builtAtMs": (\d+),$/m.exec(before)?.[1];
  const rebuilt = { ...ruleset, builtAtMs: Number(builtAt) };
  return before === `${JSON.stringify(rebuilt, undefined, 2)}\n`;
}

if (import.meta.main) await runCommand(() => main(process.argv.slice(2)));
