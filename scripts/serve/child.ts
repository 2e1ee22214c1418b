/** `serve` as another program starts it: a child process that is ready when it says so, and is stopped by a signal. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { FailureError, PROJECT_ROOT } from '../command.ts';

const SERVE = join(PROJECT_ROOT, 'scripts', 'serve.ts');

export interface ServeChild {
  /** The line that it printed when every port answered. */
  readonly readyLine: string;
  readonly pid: number;
  /** Asks it to stop, and answers with its exit code (null when a signal had to end it). */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export async function startServe(...flags: string[]): Promise<ServeChild> {
  const child = spawn(process.execPath, [SERVE, ...flags], { stdio: ['ignore', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => {
    log += chunk.toString();
  });
  const readyLine = await Promise.race([
    firstLine(child),
    exited.then(([code]) => Promise.reject(new FailureError(`serve ended with ${code}:\n${log}`))),
  ]);
  return {
    readyLine,
    pid: child.pid!,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await exited;
      return code;
    },
  };
}

async function firstLine(child: ChildProcess): Promise<string> {
  for await (const line of createInterface(child.stdout!)) return line;
  // Its output ended without a word: how it exited tells why, and settles the race above.
  return new Promise<never>(() => {});
}
