/** Runs commands of the `limiter` against a server, as an operator does, and keeps all that they said. */
import { spawn } from 'node:child_process';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Outcome } from './run.ts';

const LIMITER = join(import.meta.dirname, '..', '..', 'scripts', 'limiter.ts');

export interface RunOptions {
  /** On top of the operator's own; `undefined` takes a variable away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly stdin?: string;
  /** Called with what stderr has said so far. */
  readonly onStderr?: (soFar: string, kill: (signal: NodeJS.Signals) => void) => void;
}

export class Operator {
  /** Everything that any command wrote. */
  said = '';
  readonly #env: Readonly<Record<string, string | undefined>>;

  constructor(env: Readonly<Record<string, string | undefined>>) {
    this.#env = env;
  }

  run(args: readonly string[], { env = {}, stdin = '', onStderr }: RunOptions = {}): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const child = spawn(process.execPath, [LIMITER, ...args], {
        env: { ...process.env, LIMITER_AUTHOR: undefined, ...this.#env, ...env },
      });
      let [stdout, stderr] = ['', ''];
      child.stdout.on('data', (chunk: Buffer) => {
        stdout += chunk.toString();
      });
      child.stderr.on('data', (chunk: Buffer) => {
        stderr += chunk.toString();
        onStderr?.(stderr, (signal) => child.kill(signal));
      });
      child.on('error', reject);
      child.on('close', (code) => {
        this.said += stdout + stderr;
        resolve({ code, stdout, stderr });
      });
      // A command that does not read it may have ended already.
      child.stdin.on('error', () => {});
      child.stdin.end(stdin);
    });
  }
}

export interface Relay {
  readonly url: string;
  /** What was asked, in order: address and body. */
  readonly requests: readonly string[];
  close(): void;
}

/** A server in between: `answer` takes the request with the number of its turn, from 0, or leaves it to the server at `target`. */
export async function startRelay(
  target: string,
  answer: (turn: number, response: ServerResponse) => boolean,
): Promise<Relay> {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    requests.push(`${request.url}\n${body}`);
    if (answer(requests.length - 1, response)) return;
    const forwarded = await fetch(`${target}${request.url}`, {
      method: request.method!,
      headers: forwardedOf(request),
      ...(body !== '' && { body }),
    });
    response.writeHead(forwarded.status, { 'content-type': `${forwarded.headers.get('content-type')}` });
    response.end(await forwarded.text());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function forwardedOf({ headers }: IncomingMessage): Record<string, string> {
  const { authorization = '', 'x-limiter-author': author } = headers;
  return { authorization, ...(typeof author === 'string' && { 'x-limiter-author': author }) };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request) body += chunk;
  return body;
}
