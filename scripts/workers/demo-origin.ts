/**
 * The demo origin: an API that answers everything and counts what reaches it.
 *
 * Each response carries `x-origin-count`, the number of requests seen so far, so anyone can see that a denied request never
 * arrives. `/slow?ms=N` waits, `/status/N` answers N, `/stream?chunks=N&ms=M` streams, `/ws` echoes over a WebSocket.
 */

/** An idle demo must not hold a request, or write a stream, for ever. */
const WAIT_MS_MAX = 60_000;
const CHUNKS_MAX = 10_000;

let seen = 0;

export default {
  async fetch(request: Request): Promise<Response> {
    seen += 1;
    const n = seen;
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === '/ws') return echoSocket(request, n);
    if (pathname === '/stream') return stream(searchParams, n);
    if (pathname === '/slow') await scheduler.wait(numberIn(searchParams, 'ms', 1_000, WAIT_MS_MAX));
    return echo(request, { path: pathname, n, status: statusIn(pathname) });
  },
} satisfies ExportedHandler;

interface Echo {
  readonly path: string;
  readonly n: number;
  readonly status: number;
}

function echo(request: Request, { path, n, status }: Echo): Response {
  const headers = { 'content-type': 'application/json', 'x-origin-count': String(n) };
  const body = bodiless(status) ? null : `${JSON.stringify({ method: request.method, path, n })}\n`;
  return new Response(body, { status, headers });
}

/** `/status/404` is 404; a number that no response can have, and every other path, is 200. */
function statusIn(path: string): number {
  const status = Number(/^\/status\/(\d{3})$/.exec(path)?.[1] ?? 200);
  return status >= 200 && status <= 599 ? status : 200;
}

function bodiless(status: number): boolean {
  return status === 204 || status === 205 || status === 304;
}

function stream(parameters: URLSearchParams, n: number): Response {
  const chunks = numberIn(parameters, 'chunks', 5, CHUNKS_MAX);
  const pauseMs = numberIn(parameters, 'ms', 100, WAIT_MS_MAX);
  const encoder = new TextEncoder();
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (sent === chunks) return controller.close();
      if (sent > 0) await scheduler.wait(pauseMs);
      sent += 1;
      controller.enqueue(encoder.encode(`chunk ${sent} of ${chunks}\n`));
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/plain', 'x-origin-count': String(n) } });
}

function echoSocket(request: Request, n: number): Response {
  const headers = { 'x-origin-count': String(n) };
  if (request.headers.get('upgrade')?.toLowerCase() !== 'websocket') {
    return new Response('/ws speaks WebSocket only\n', { status: 426, headers });
  }
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener('message', (event) => server.send(event.data));
  return new Response(null, { status: 101, webSocket: client, headers });
}

function numberIn(parameters: URLSearchParams, name: string, standard: number, most: number): number {
  const value = Number(parameters.get(name) ?? standard);
  return Number.isFinite(value) ? Math.min(most, Math.max(0, Math.floor(value))) : standard;
}
