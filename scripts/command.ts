/**
 * What every command shares: where the project stands, how flags are read, and what a wrong one looks like.
 *
 * A command ends with 0 when it did its work, 1 when the work failed, and 2 when it was asked wrongly: a `UsageError` is
 * a sentence (or several) for the person at the keyboard, never a stack.
 */
import { spawn } from 'node:child_process';
import { delimiter, dirname, join } from 'node:path';
import { Command, CommanderError, InvalidArgumentError } from 'commander';

export const PROJECT_ROOT = dirname(import.meta.dirname);

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** The command was asked wrongly; each line goes to stderr as it is. */
export class UsageError extends Error {
  readonly lines: readonly string[];

  constructor(...lines: string[]) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}

/** The work failed for a reason that the message tells in full: no stack would add to it. */
export class FailureError extends Error {}

/** A commander program that throws instead of ending the process, so that `runCommand` alone chooses the exit code. */
export function command(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .exitOverride()
    .showHelpAfterError('(--help shows the flags)');
}

/** Runs a command's body, which answers with the exit code, and sets that code. */
export async function runCommand(body: () => Promise<number>): Promise<void> {
  try {
    process.exitCode = await body();
  } catch (error) {
    process.exitCode = exitCodeOf(error);
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  if (error instanceof UsageError) {
    for (const line of error.lines) console.error(line);
    return EXIT_USAGE;
  }
  console.error(error instanceof FailureError ? error.message : error);
  return EXIT_FAILED;
}

export const STOP_SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Aborted by the first signal that asks this process to end; what is running then ends in order. */
export function stopOnSignals(): AbortSignal {
  const stop = new AbortController();
  for (const name of STOP_SIGNALS) process.on(name, () => stop.abort());
  return stop.signal;
}

/** Reads a TCP port; for commander, which puts the flag's name before the message. */
export function parsePort(text: string): number {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port < 1 || port > 65_535) {
    throw new InvalidArgumentError('a port is a whole number from 1 to 65535.');
  }
  return port;
}

export function parseHttpUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new InvalidArgumentError('an origin is an http:// or https:// URL.');
  }
  return url;
}

/** The path of a tool's script in this project's own `node_modules`: no PATH, no shell and no npx in between. */
export function toolPath(...parts: string[]): string {
  return join(PROJECT_ROOT, 'node_modules', ...parts);
}

export const WRANGLER = toolPath('wrangler', 'bin', 'wrangler.js');
export const VITEST = toolPath('vitest', 'vitest.mjs');
export const BIOME = toolPath('@biomejs', 'biome', 'bin', 'biome');
export const TSC = toolPath('typescript', 'bin', 'tsc');

/**
 * What a tool finds around it. Without the settings, wrangler waits for a network that may not be there; and what it starts by the
 * name `node` must be the project's own, also where the machine's is older.
 */
const TOOL_ENVIRONMENT = {
  ...process.env,
  PATH: [toolPath('.bin'), process.env.PATH].join(delimiter),
  WRANGLER_SEND_METRICS: 'false',
  CLOUDFLARE_CF_FETCH_ENABLED: 'false',
  WRANGLER_HIDE_BANNER: 'true',
};

/** Runs a Node script with this terminal as its own, and answers with its exit code (1 when a signal ended it). */
export function runScript(script: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: PROJECT_ROOT,
      stdio: 'inherit',
      env: TOOL_ENVIRONMENT,
    });
    child.on('error', reject);
    child.on('exit', (code) => resolve(code ?? EXIT_FAILED));
  });
}

/** Runs a Node script in silence. What it wrote, on either stream, is in the error when it fails. */
export function captureScript(
  script: string,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [script, ...args], {
      cwd: PROJECT_ROOT,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: TOOL_ENVIRONMENT,
      ...(signal && { signal }),
    });
    let output = '';
    const collect = (chunk: Buffer) => {
      output += chunk.toString();
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve(output);
      else reject(new FailureError(`${script} ${args.join(' ')} failed:\n${output}`));
    });
  });
}
