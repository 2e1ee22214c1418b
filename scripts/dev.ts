/**
 * `npm run dev`: the limiter at http://127.0.0.1:8787 in front of a demo origin, with rules and code that reload on save.
 *
 * A rule file or a source that does not compile changes nothing: what is wrong is printed, and what ran before goes on.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { buildHelpers, compatibilityDate } from './bundle.ts';
import {
  command,
  FailureError,
  PROJECT_ROOT,
  parseHttpUrl,
  parsePort,
  runCommand,
  runScript,
  stopOnSignals,
  UsageError,
} from './command.ts';
import { DevServer } from './dev/server.ts';
import { watchCode, watchRules } from './dev/sources.ts';
import { COMPILE_RULES, readRules } from './rules.ts';
import { portProblem } from './serve/ports.ts';

/** For trying things out on one's own machine; a deploy has a secret. */
const DEV_TOKEN = 'dev';

interface Flags {
  readonly adminToken?: string;
  readonly port: number;
  readonly rules: string;
  readonly origin?: URL;
}

await runCommand(async () => {
  const signal = stopOnSignals();
  const flags = parseFlags();
  const ruleset = await readRules(flags.rules);
  const problem = await portProblem([flags.port]);
  if (problem !== undefined) throw new UsageError(problem);
  // The sources import the bundled rules, even where others take their place.
  if ((await runScript(COMPILE_RULES, [])) !== 0) throw new FailureError('the bundled rules do not compile');

  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-dev-'));
  const server = new DevServer({
    port: flags.port,
    origin: flags.origin,
    compatibilityDate: await compatibilityDate(),
    demoOriginCode: await demoOriginCode(folder),
    stateDir: join(folder, 'state'),
    adminToken: flags.adminToken ?? process.env.LIMITER_ADMIN_TOKEN ?? DEV_TOKEN,
  });
  try {
    await server.replace({ ruleset });
    await runUntilStopped(server, { flags, signal });
  } finally {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
  return 0;
});

async function runUntilStopped(
  server: DevServer,
  { flags, signal }: { flags: Flags; signal: AbortSignal },
): Promise<void> {
  const reloaded = (what: string) => console.log(`reloaded ${what}`);
  let greeted = false;
  await watchCode({
    signal,
    async onChange(code) {
      await server.replace({ code });
      if (greeted) return reloaded('the code');
      greeted = true;
      console.log(greeting(flags));
    },
  });
  await watchRules(flags.rules, {
    signal,
    onChange: (ruleset) => server.replace({ ruleset }).then(() => reloaded(flags.rules)),
  }).catch((error: Error) => {
    if (!signal.aborted) throw error;
  });
}

function parseFlags(): Flags {
  const rules = relative(process.cwd(), join(PROJECT_ROOT, 'rules', 'default.yaml'));
  return command('npm run dev --', 'Runs the limiter in front of a demo origin, and reloads on save.')
    .option('--port <port>', 'where it listens', parsePort, 8787)
    .option('--rules <file>', 'the rule file', rules)
    .option('--origin <url>', 'what is protected (default: the demo origin)', parseHttpUrl)
    .option(
      '--admin-token <token>',
      `opens the admin API (default: LIMITER_ADMIN_TOKEN, else "${DEV_TOKEN}")`,
    )
    .parse()
    .opts<Flags>();
}

function demoOriginCode(folder: string): Promise<string> {
  buildHelpers(['demo-origin'], folder);
  return readFile(join(folder, 'demo-origin.js'), 'utf8');
}

function greeting({ port, rules, origin }: Flags): string {
  const url = `http://127.0.0.1:${port}`;
  return `
The limiter listens at ${url}, in front of ${origin?.href ?? 'a demo origin'}. Rules: ${rules} (save to reload). Try:

  curl -i ${url}/v1/items
  curl -i -H 'Authorization: Bearer demo_premium_key' ${url}/v1/items
  for n in $(seq 50); do curl -s -o /dev/null -w '%{http_code} ' ${url}/v1/items; done; echo

The first has no key and is counted by its address; the second has one of the demo keys in rules/default.yaml; the loop goes on
until the answer is 429. Ctrl-C stops.`;
}
