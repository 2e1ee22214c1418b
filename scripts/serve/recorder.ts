/** Takes decided requests from the gateways and appends them to a file, as they come. */
import { createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { finished } from 'node:stream/promises';
import { UsageError } from '../command.ts';

export interface RecorderServer {
  /** `127.0.0.1:PORT` */
  readonly address: string;
  /** Settles when all that has come is in the file. */
  close(): Promise<void>;
}

export async function startRecorder(path: string): Promise<RecorderServer> {
  const file = await open(path, 'a').catch((error: Error) => {
    throw new UsageError(`cannot write to ${path}: ${error.message}`);
  });
  await file.close();
  const output = createWriteStream(path, { flags: 'a' });
  const server = createServer((request, response) => {
    // A batch is written as a whole: two gateways' lines must not mix.
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      output.write(Buffer.concat(chunks));
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    async close() {
      server.close();
      server.closeAllConnections();
      output.end();
      await finished(output);
    },
  };
}
