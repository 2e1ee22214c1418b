/**
 * When a response has ended: its body has gone out, has failed or was cancelled, or the client has gone.
 *
 * The body goes through a pipe of the platform's own, so no script touches its bytes and nothing is held. A response without a body ends
 * at once, and so does a WebSocket upgrade: what comes after it is no response.
 */
import type { Background } from '../engine/ports.ts';

/** The same response; `onEnd` is called once. */
export function untilEnd(
  response: Response,
  request: Request,
  onEnd: () => void,
  background: Background,
): Response {
  const { body } = response;
  if (body === null || response.webSocket || request.method === 'HEAD') {
    onEnd();
    return response;
  }
  const { readable, writable } = pipeFor(response.headers);
  background(body.pipeTo(writable).then(onEnd, onEnd));
  return new Response(readable, response);
}

/** A body of known length keeps it. The length of an encoded body is not the length of what goes through the pipe. */
function pipeFor(headers: Headers): IdentityTransformStream {
  const length = headers.get('content-length') ?? '';
  const isKnown = /^\d+$/.test(length) && !headers.has('content-encoding');
  return isKnown ? new FixedLengthStream(Number(length)) : new IdentityTransformStream();
}
