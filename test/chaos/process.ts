/** One workerd process, to be killed, held and started again at any time. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';

/** The native program itself: a signal must reach it, and not a script that stands before it. */
const WORKERD: string = createRequire(import.meta.url)('workerd').default;

/** What is alive goes with this process, however it ends: one that is held would otherwise stay for ever. */
const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

export class WorkerdProcess {
  readonly #args: readonly string[];
  #child: ChildProcess | undefined;
  #log = '';

  constructor(args: readonly string[]) {
    this.#args = args;
  }

  /** Everything that it wrote, in all its lives. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when its one socket, or its debug port, listens. */
  async start(): Promise<void> {
    // Calls to other processes are experimental in workerd.
    const args = ['serve', '--experimental', '--control-fd=3', ...this.#args];
    const child = spawn(WORKERD, args, { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] });
    this.#child = child;
    alive.add(child);
    child.once('exit', () => alive.delete(child));
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.#log += chunk.toString();
      });
    }
    const ended = once(child, 'exit').then(() => Promise.reject(new Error(`workerd ended:\n${this.#log}`)));
    // Later on it is killed, which is no error.
    ended.catch(() => {});
    await Promise.race([isListening(child.stdio[3] as Readable), ended]);
  }

  /** Ends it without a chance to save anything; resolves when it is gone. A held process ends as well. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** From now on it does nothing, but its connections stay open. */
  hold(): void {
    this.#child?.kill('SIGSTOP');
  }

  goOn(): void {
    this.#child?.kill('SIGCONT');
  }
}

async function isListening(control: Readable): Promise<void> {
  for await (const line of createInterface(control)) if (JSON.parse(line).event === 'listen') return;
  // The process has ended, and how it did is the better story.
  await new Promise<never>(() => {});
}
