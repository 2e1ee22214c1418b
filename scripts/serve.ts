/**
 * `npm run serve`: the production bundle on raw workerd, for load tests and for self-hosting.
 *
 * Prints one line, `ready http://127.0.0.1:PORT`, when every port answers; logs go to stderr. SIGTERM or SIGINT stops everything
 * within two seconds and exits 0; a wrong flag, rule file or port exits 2; a server that dies by itself exits 1.
 */
import { InvalidArgumentError } from 'commander';
import {
  command,
  FailureError,
  parseHttpUrl,
  parsePort,
  runCommand,
  stopOnSignals,
  UsageError,
} from './command.ts';
import { makeFolder } from './places.ts';
import { readRules } from './rules.ts';
import { BESIDE_NAMES, type Beside } from './serve/beside.ts';
import { portProblem } from './serve/ports.ts';
import { portsOf, type ServerOptions, startServer } from './serve/server.ts';

interface Flags extends Omit<ServerOptions, 'ruleset'> {
  readonly baseline?: number;
  readonly objectBaseline?: number;
  readonly fieldsBaseline?: number;
  readonly rules?: string;
  readonly quiet?: boolean;
}

/** Each gateway is an isolate with a heap of its own: more than this tells nothing new and fills a small machine. */
const GATEWAYS_MAX = 64;

/** Ten times as long as a middle owner waits for an answer. */
const LATENCY_MS_MAX = 10_000;

await runCommand(async () => {
  const signal = stopOnSignals();
  const { rules, quiet, ...flags } = parseFlags();
  const options: ServerOptions = {
    ...flags,
    beside: allBeside(flags),
    ruleset: rules === undefined ? undefined : await readRules(rules),
    adminToken: flags.adminToken ?? process.env.LIMITER_ADMIN_TOKEN,
  };
  await refuseBadPlaces(options);
  try {
    const onLog = quiet ? () => {} : (chunk: Buffer) => process.stderr.write(chunk);
    const server = await startServer(options, { signal, onLog });
    console.log(`ready http://127.0.0.1:${options.port}`);
    const how = await server.ended;
    if (!signal.aborted) throw new FailureError(`workerd ended by itself: ${how}`);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return 0;
});

function parseFlags(): Flags {
  return command('npm run serve --', 'Serves the production bundle on raw workerd, on loopback.')
    .option('--port <port>', 'where the first gateway listens', parsePort, 8787)
    .option('--rules <file>', 'a rule file in place of the bundled one')
    .option(
      '--origin <url>',
      'what is protected (default: the demo origin, in the same process)',
      parseHttpUrl,
    )
    .option(
      '--gateways <count>',
      'isolates that share the owners; gateway i listens on port + i',
      parseGateways,
      1,
    )
    .option('--baseline <port>', 'also a Worker that only forwards to the same origin', parsePort)
    .option(
      '--object-baseline <port>',
      'also one that makes an object call that does nothing, then forwards',
      parsePort,
    )
    .option(
      '--fields-baseline <port>',
      'also one that forwards and writes constant limit fields on the response',
      parsePort,
    )
    .option(
      '--beside <name=port>',
      `also one of ${BESIDE_NAMES.join(', ')} (repeat it for more)`,
      parseBeside,
      [],
    )
    .option('--state <folder>', 'durable storage (default: a temporary folder, removed at the end)')
    .option(
      '--admin-token <token>',
      'opens the admin API below /_limiter/ (default: LIMITER_ADMIN_TOKEN, else no API)',
    )
    .option(
      '--record <file>',
      'append each decided request as a JSON line, keys as hashes: for `limiter replay`',
    )
    .option(
      '--v8-flag <flag>',
      'a flag for V8, such as --max-semi-space-size=1 to trade speed for memory (repeat it for more)',
      (flag: string, before: readonly string[]) => [...before, flag],
      [],
    )
    .option(
      '--faults <port>',
      'a test control: PUT /owner {"mode":"ok"|"down"|"slow","delayMs":N}, PUT /control {"mode":M}, PUT /region {"name":R,"mode":"cut"|"ok"}, GET and DELETE /counts',
      parsePort,
    )
    .option(
      '--region-latency <ms>',
      'how long a call from one region to the owner of the whole in another takes, and its answer',
      parseLatency,
    )
    .option('--quiet', 'no logs')
    .parse()
    .opts<Flags>();
}

function parseGateways(text: string): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || count < 1 || count > GATEWAYS_MAX) {
    throw new InvalidArgumentError(`a whole number from 1 to ${GATEWAYS_MAX} is needed.`);
  }
  return count;
}

function parseLatency(text: string): number {
  const latencyMs = Number(text);
  if (!/^\d+$/.test(text) || latencyMs > LATENCY_MS_MAX) {
    throw new InvalidArgumentError(`a whole number of milliseconds from 0 to ${LATENCY_MS_MAX} is needed.`);
  }
  return latencyMs;
}

function parseBeside(text: string, before: readonly Beside[]): readonly Beside[] {
  const [name, port] = text.split('=');
  const known = BESIDE_NAMES.find((candidate) => candidate === name);
  if (known === undefined)
    throw new InvalidArgumentError(`NAME=PORT, NAME being ${BESIDE_NAMES.join(', ')}.`);
  return [...before, { name: known, port: parsePort(port ?? '') }];
}

/** The usual baselines have flags of their own. */
function allBeside({ beside, baseline, objectBaseline, fieldsBaseline }: Flags): readonly Beside[] {
  const named = [
    { name: 'baseline', port: baseline },
    { name: 'object-baseline', port: objectBaseline },
    { name: 'fields-baseline', port: fieldsBaseline },
  ] as const;
  return [...beside, ...named.flatMap(({ name, port }) => (port === undefined ? [] : [{ name, port }]))];
}

async function refuseBadPlaces(options: ServerOptions): Promise<void> {
  const problem = await portProblem(portsOf(options));
  if (problem !== undefined) throw new UsageError(problem);
  if (options.state !== undefined) await makeFolder('--state', options.state);
}
