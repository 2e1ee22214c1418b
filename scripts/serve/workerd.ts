/**
 * One workerd process: started, ready when every socket listens, and stopped for certain.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { FailureError } from '../command.ts';

/** The native program itself: the script in `.bin` would stand between it and our signals. */
const WORKERD: string = createRequire(import.meta.url)('workerd').default;

/** workerd finishes the requests in flight when asked to stop; a connection that stays busy may not hold it longer than this. */
const GRACE_MS = 1_000;

export interface WorkerdOptions {
  readonly configPath: string;
  /** How many sockets must listen before the server counts as ready. */
  readonly sockets: number;
  /** Stops the process, ready or not. */
  readonly signal: AbortSignal;
  readonly onLog: (chunk: Buffer) => void;
}

export interface Workerd {
  /** Settles when the process is gone, asked or not, with how it ended. */
  readonly ended: Promise<string>;
}

/** Resolves when every socket listens; rejects when the process ends before that. */
export async function startWorkerd({ configPath, sockets, signal, onLog }: WorkerdOptions): Promise<Workerd> {
  signal.throwIfAborted();
  // A process group of its own: Ctrl-C reaches this process only, which then stops workerd in order.
  const child = spawn(WORKERD, ['serve', '--control-fd=3', configPath], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    detached: true,
  });
  child.stdout?.on('data', onLog);
  child.stderr?.on('data', onLog);
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, by) => resolve(by === null ? `exit code ${code}` : `signal ${by}`));
  });
  signal.addEventListener('abort', () => stop(child, ended));
  await Promise.race([
    allListening(child, sockets),
    ended.then((how) => Promise.reject(new FailureError(`workerd did not start: ${how}`))),
  ]);
  return { ended };
}

async function allListening(child: ChildProcess, sockets: number): Promise<void> {
  let listening = 0;
  for await (const line of createInterface(child.stdio[3] as Readable)) {
    if (JSON.parse(line).event === 'listen') listening += 1;
    if (listening === sockets) return;
  }
  // The pipe closes when the process ends, and how it ended is the better story: that promise settles the race.
  await new Promise<never>(() => {});
}

async function stop(child: ChildProcess, ended: Promise<string>): Promise<void> {
  child.kill('SIGTERM');
  const kill = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
  await ended;
  clearTimeout(kill);
}
