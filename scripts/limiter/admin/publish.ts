/**
 * `limiter publish FILE`: a rule file becomes a version of its domain.
 *
 * It is compiled here first, so a file with mistakes goes nowhere; and keys in it leave as their hashes. What the server, which may be of
 * another version, has to say of it is told by the lines of the file.
 */
import { readFile } from 'node:fs/promises';
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { formatPath, type Problem } from '../../../src/policy/problem.ts';
import { withoutRawKeys } from '../../../src/policy/redact.ts';
import { FailureError, UsageError } from '../../command.ts';
import { AdminFailure } from '../admin-client.ts';
import { loadRules, sha256 } from '../load.ts';
import { plainText } from '../text.ts';
import { parseYaml, type YamlTree } from '../yaml-tree.ts';
import {
  type ConnectionOptions,
  changeClient,
  changeCommand,
  printJson,
  rulesetsPath,
} from './connection.ts';

const EXAMPLES = `
The domain is the one that the file names. Isolates take up the new rules within seconds, one by one.

Examples:
  npm run limiter -- publish rules/default.yaml --message "Search: 60 a minute"
  npm run limiter -- publish new.yaml --message "For Monday" --no-activate

Ends with 0 when it is published (warnings do not fail), 1 when the file or the server says no, 2 when the file cannot be read.`;

interface Options extends ConnectionOptions {
  readonly message: string;
  readonly activate: boolean;
}

const published = z.looseObject({
  version: z.int(),
  activation: z.optional(z.int()),
  warnings: z.array(z.looseObject({ at: z.array(z.union([z.string(), z.number()])), message: z.string() })),
});

export function publishCommand(): Command {
  return changeCommand('publish', 'Publishes a rule file as a new version, and puts it in force.')
    .argument('<file>', 'a rule file (YAML or JSON)')
    .requiredOption('--message <text>', 'why; for whoever reads the history')
    .option('--no-activate', 'publish only: it is in force once `activate` says so')
    .addHelpText('after', EXAMPLES)
    .action(publish);
}

async function publish(file: string, options: Options): Promise<void> {
  const client = await changeClient(options);
  const { message, activate } = options;
  if (message.trim() === '')
    throw new UsageError('--message says nothing: tell why, for whoever reads the history.');
  const { domain, tree } = await readPublishable(file);
  const body = { rules: withoutRawKeys(tree.value, sha256), message, activate };
  const made = await client
    .ask(published, { method: 'PUT', path: rulesetsPath(domain), body })
    .catch((error: unknown) => {
      if (!(error instanceof AdminFailure) || error.problem?.error !== 'invalid_rules') throw error;
      const problems = error.problem.errors.map(({ at, message }) => ({ path: at, message }));
      throw new FailureError(linesOf(problems, { file, tree }).join('\n'));
    });
  const warnings = made.warnings.map(({ at, message }) => ({ path: at, message: `warning: ${message}` }));
  for (const line of linesOf(warnings, { file, tree })) console.error(line);
  if (options.json) printJson(made);
  else console.log(`published version ${made.version} of ${JSON.stringify(domain)}, ${forceText(made)}`);
}

function forceText({ version, activation }: z.output<typeof published>): string {
  return activation === undefined
    ? `not in force (npm run limiter -- activate ${version})`
    : `in force (activation ${activation})`;
}

/** Fails with every mistake of the file. */
async function readPublishable(file: string): Promise<{ domain: string; tree: YamlTree }> {
  const bytes = await readFile(file).catch((error: Error) => {
    throw new UsageError(`cannot read ${file}: ${error.message}`);
  });
  const loaded = loadRules(bytes, { name: file, builtAtMs: Date.now() });
  if ('errors' in loaded) throw new FailureError(loaded.errors.join('\n'));
  return { domain: loaded.ruleset.domain, tree: parseYaml(new TextDecoder().decode(bytes)) };
}

/** In the order of the file, as `validate` writes them. */
function linesOf(
  problems: readonly Problem[],
  { file, tree }: { readonly file: string; readonly tree: YamlTree },
): readonly string[] {
  return problems
    .map((problem) => ({ ...problem, place: tree.placeOf(problem.path) }))
    .toSorted((a, b) => a.place.line - b.place.line || a.place.column - b.place.column)
    .map(({ path, message, place }) =>
      plainText(`${file}:${place.line}:${place.column} ${formatPath(path)}: ${message}`),
    );
}
