/**
 * `npm run check`: format, lint, types of every room, generated binding types and the tidy rules. Changes nothing.
 *
 * `npm run check -- --fix` formats, applies safe lint fixes and generates the binding types anew before it checks.
 */
import { BIOME, command, runCommand, runScript, TSC, VITEST, WRANGLER } from './command.ts';
import { COMPILE_RULES } from './rules.ts';

interface Step {
  readonly name: string;
  readonly script: string;
  readonly args: readonly string[];
}

/**
 * Binding types follow `wrangler.toml` alone: what a developer keeps in `.dev.vars` is no business of the check. The runtime's own
 * types come from the package `@cloudflare/workers-types`, which is pinned with the rest.
 */
const BINDING_TYPES = ['types', '--include-runtime=false', '--env-file', '/dev/null'];

const FIXES: readonly Step[] = [
  { name: 'fix format and lint', script: BIOME, args: ['check', '--write', '.'] },
  { name: 'generate binding types', script: WRANGLER, args: BINDING_TYPES },
];

const STEPS: readonly Step[] = [
  { name: 'format and lint', script: BIOME, args: ['ci', '.'] },
  { name: 'rules compile', script: COMPILE_RULES, args: [] },
  { name: 'binding types are current', script: WRANGLER, args: [...BINDING_TYPES, '--check'] },
  { name: 'types of the Worker', script: TSC, args: ['-p', 'tsconfig.json'] },
  { name: 'types of the commands', script: TSC, args: ['-p', 'scripts/tsconfig.json'] },
  { name: 'types of the tests under Node', script: TSC, args: ['-p', 'test/tsconfig.json'] },
  { name: 'types of the tests of the Worker', script: TSC, args: ['-p', 'test/worker/tsconfig.json'] },
  { name: 'tidy rules', script: VITEST, args: ['run', '--project', 'unit', 'test/tidy.test.ts'] },
];

await runCommand(async () => {
  const { fix } = command('npm run check --', 'Checks format, lint, types and tidy rules.')
    .option('--fix', 'repair what can be repaired first')
    .parse()
    .opts<{ fix?: boolean }>();
  const failed: string[] = [];
  for (const { name, script, args } of fix ? [...FIXES, ...STEPS] : STEPS) {
    console.error(`check: ${name}`);
    if ((await runScript(script, args)) !== 0) failed.push(name);
  }
  console.log(failed.length === 0 ? 'check passed' : `check failed: ${failed.join(', ')}`);
  return failed.length === 0 ? 0 : 1;
});
