/** A proxy between a client and the limiter that notes when each attempt came and what it was told. */
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Attempt {
  readonly atMs: number;
  readonly status: number;
  readonly retryAfterMs: number | undefined;
}

export interface Recorder {
  readonly url: string;
  readonly attempts: readonly Attempt[];
  close(): Promise<void>;
}

/** `address` is where the limiter is to think that the client is. */
export async function startRecorder(target: string, address: string): Promise<Recorder> {
  const attempts: Attempt[] = [];
  const server: Server = createServer((incoming, outgoing) => {
    const atMs = performance.now();
    const headers = { ...incoming.headers, 'cf-connecting-ip': address };
    const upstream = httpRequest(
      `${target}${incoming.url}`,
      { method: incoming.method, headers },
      (response) => {
        const status = response.statusCode ?? 0;
        const retryAfter = response.headers['retry-after'];
        attempts.push({
          atMs,
          status,
          retryAfterMs: retryAfter === undefined ? undefined : Number(retryAfter) * 1_000,
        });
        outgoing.writeHead(status, response.headers);
        response.pipe(outgoing);
      },
    );
    incoming.pipe(upstream);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    attempts,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
