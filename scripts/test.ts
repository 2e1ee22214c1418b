/**
 * `npm test`: compiles the bundled rules, then runs every test. Arguments go to vitest (`npm test -- test/core`).
 *
 * The run ends with a line `N passed, N failed`, written by `test/totals-reporter.ts`.
 */
import { runCommand, runScript, VITEST } from './command.ts';
import { COMPILE_RULES } from './rules.ts';

await runCommand(async () => {
  const compiled = await runScript(COMPILE_RULES, []);
  if (compiled !== 0) return compiled;
  return runScript(VITEST, ['run', ...process.argv.slice(2)]);
});
