/** `limiter validate FILE...`: every error of every file with its place, on stderr; warnings too, which do not fail. */
import type { Command } from 'commander';
import { command, UsageError } from '../command.ts';
import { type LoadedRules, loadRuleFile } from './load.ts';

const EXAMPLES = `
Examples:
  npm run limiter -- validate rules/default.yaml
  npm run limiter -- validate rules/examples/*.yaml

Ends with 0 when all files are valid (warnings do not fail), 1 when one is not, 2 when one cannot be read.`;

export function validateCommand(finish: (exitCode: number) => void): Command {
  return command('validate', 'Checks rule files: every error as "file:line:column path: message".')
    .argument('<file...>', 'rule files (YAML or JSON)')
    .addHelpText('after', EXAMPLES)
    .action(async (files: readonly string[]) => {
      const results = await Promise.all(
        files.map(async (file) => ({ file, rules: await readRuleFile(file).catch(asUsageError) })),
      );
      const unreadable: string[] = [];
      for (const { file, rules } of results) {
        if (rules instanceof UsageError) unreadable.push(...rules.lines);
        else print(file, rules);
      }
      if (unreadable.length > 0) throw new UsageError(...unreadable);
      finish(results.some(({ rules }) => 'errors' in rules) ? 1 : 0);
    });
}

/** What is said of the other files does not depend on this one. */
function asUsageError(error: unknown): UsageError {
  if (error instanceof UsageError) return error;
  throw error;
}

function print(file: string, rules: LoadedRules): void {
  if ('errors' in rules) {
    for (const line of rules.errors) console.error(line);
    return;
  }
  for (const line of rules.warnings) console.error(withSeverity(line));
  const { ruleset, warnings } = rules;
  console.log(
    `${file}: valid, ${counted(ruleset.rules.length, 'rule')}, ${counted(warnings.length, 'warning')}`,
  );
}

function counted(amount: number, noun: string): string {
  return `${amount} ${noun}${amount === 1 ? '' : 's'}`;
}

/** `file:line:column path: warning: message`, so that a warning is not taken for an error. */
function withSeverity(line: string): string {
  return line.replace(/^(\S+ [^:]+: )/, '$1warning: ');
}

/** A file that cannot be read is a wrong argument, not an invalid file. */
export async function readRuleFile(file: string): Promise<LoadedRules> {
  try {
    return await loadRuleFile(file, Date.now());
  } catch (error) {
    throw new UsageError(`cannot read ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
