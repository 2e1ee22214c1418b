/**
 * `npm run deploy` uploads the Worker; `npm run deploy:check` makes the same bundle offline and weighs it.
 *
 * Every cold start loads and compiles the bundle, so its size has a budget. Further arguments go to `wrangler deploy`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { makeBundle } from './bundle.ts';
import { command, runCommand, runScript, WRANGLER } from './command.ts';
import { COMPILE_RULES } from './rules.ts';

/** Rules are validated in the Worker, by a schema library that is a sixth of it; whatever else is as large goes over. */
const GZIP_BUDGET_BYTES = 120 * 1024;

await runCommand(async () => {
  const program = command('npm run deploy --', 'Deploys the Worker with wrangler.')
    .option('--check', 'bundle offline, print the gzip size and fail over the budget')
    .argument('[wrangler arguments...]', 'passed to `wrangler deploy`')
    .allowUnknownOption()
    .parse();
  const { check } = program.opts<{ check?: boolean }>();
  // Compiled first, so that a mistake in the rules is the last thing that is printed, and not wrangler's account of it.
  const compiled = await runScript(COMPILE_RULES, []);
  if (compiled !== 0) return compiled;
  return check ? weigh() : runScript(WRANGLER, ['deploy', ...program.args]);
});

async function weigh(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-bundle-'));
  try {
    const { gzipBytes } = await makeBundle(folder);
    const [size, budget] = [gzipBytes, GZIP_BUDGET_BYTES].map((bytes) => `${(bytes / 1024).toFixed(1)} KiB`);
    const fits = gzipBytes <= GZIP_BUDGET_BYTES;
    console.log(`bundle: ${size} gzip, budget ${budget}: ${fits ? 'fits' : 'too large'}`);
    return fits ? 0 : 1;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
