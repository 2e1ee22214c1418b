/**
 * One keep-alive HTTP/1.1 connection that sends ready-made requests, one at a time, and reads just enough of each response to know
 * its status and its end.
 *
 * A load generator of our own: a general client costs more per request than the server under test, and the usual C tools are
 * not everywhere that npm is. It knows `Content-Length` and chunked bodies, which is all that workerd sends.
 */
import { connect, type Socket } from 'node:net';

export type OnResponse = (status: number) => void;

const HEAD_END = '\r\n\r\n';

export class Connection {
  readonly #socket: Socket;
  #received: Buffer = Buffer.alloc(0);
  #onResponse: OnResponse | undefined;
  #onFailure: (error: Error) => void;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.#onFailure = () => {};
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.#receive(chunk));
    socket.on('error', (error) => this.#onFailure(error));
    socket.on('close', () => this.#onFailure(new Error('the server closed a connection')));
  }

  /** `onFailure` is told of a connection that breaks, until it is closed. */
  static open(port: number, onFailure: (error: Error) => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1' });
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.off('error', reject);
        const connection = new Connection(socket);
        connection.#onFailure = onFailure;
        resolve(connection);
      });
    });
  }

  /** Sends one request; nothing else may be sent before its response. */
  send(request: Buffer, onResponse: OnResponse): void {
    this.#onResponse = onResponse;
    this.#socket.write(request);
  }

  close(): void {
    this.#onFailure = () => {};
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#received = this.#received.length === 0 ? chunk : Buffer.concat([this.#received, chunk]);
    const response = parseResponse(this.#received);
    if (response === undefined) return;
    this.#received = this.#received.subarray(response.length);
    const onResponse = this.#onResponse;
    this.#onResponse = undefined;
    onResponse?.(response.status);
  }
}

interface ParsedResponse {
  readonly status: number;
  readonly length: number;
}

/** The response at the start of `bytes`, or undefined while some of it is missing. */
export function parseResponse(bytes: Buffer): ParsedResponse | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const status = Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length));
  const bodyStart = headEnd + HEAD_END.length;
  const bodyEnd = /\r\ntransfer-encoding: *chunked/i.test(head)
    ? chunkedEnd(bytes, bodyStart)
    : bodyStart + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
  return bodyEnd === undefined || bodyEnd > bytes.length ? undefined : { status, length: bodyEnd };
}

function chunkedEnd(bytes: Buffer, start: number): number | undefined {
  let at = start;
  for (;;) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return undefined;
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16);
    at = lineEnd + 2 + size + 2;
    if (size === 0) return at;
  }
}

export interface RequestOptions {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export function rawRequest({ path, headers }: RequestOptions): Buffer {
  const fields = Object.entries({ host: 'bench.example', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${fields.join('')}\r\n`);
}
