/** Reads a rule file for a command: a compiled ruleset with its warnings, or a usage error with every mistake in it. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Ruleset } from '../src/policy/ruleset.ts';
import { PROJECT_ROOT, UsageError } from './command.ts';
import { compileRuleFile } from './compile-rules.ts';

/** The script that compiles `rules/default.yaml` into the ruleset that is bundled. */
export const COMPILE_RULES = join(PROJECT_ROOT, 'scripts', 'compile-rules.ts');

export async function readRules(path: string): Promise<Ruleset> {
  await readFile(path).catch((error: Error) => {
    throw new UsageError(`cannot read the rule file ${path}: ${error.message}`);
  });
  const result = await compileRuleFile(path);
  if ('errors' in result) throw new UsageError(...result.errors);
  for (const warning of result.warnings) console.error(warning);
  return result.ruleset;
}
