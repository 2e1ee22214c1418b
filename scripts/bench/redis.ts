/** A Redis server of the bench's own: nothing on disk, loopback only, gone when it is stopped. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { FailureError } from '../command.ts';

export interface RedisServer {
  stop(): Promise<void>;
}

/** Resolves when it takes connections; undefined where `redis-server` is not installed. */
export async function startRedis(port: number): Promise<RedisServer | undefined> {
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'ignore'] });
  const started = await Promise.race([
    once(child, 'spawn').then(() => true),
    once(child, 'error').then(() => false),
  ]).catch(() => false);
  if (!started) return undefined;
  const exited = once(child, 'exit');
  await Promise.race([
    ready(child),
    exited.then(([code]) => Promise.reject(new FailureError(`redis-server ended with ${code}`))),
  ]);
  return {
    async stop() {
      child.kill();
      await exited;
    },
  };
}

async function ready(child: ChildProcess): Promise<void> {
  const lines = createInterface(child.stdout!);
  for await (const line of lines) {
    if (line.includes('Ready to accept connections')) break;
  }
  // What it says from now on is nobody's business, but must not fill the pipe.
  child.stdout?.resume();
}
