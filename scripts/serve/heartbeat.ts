/**
 * Keeps idle gateways going: an isolate refreshes its rules and hands on its counts beside its requests, and under `serve` a change is
 * to be in force within two seconds in every gateway, also in one that nobody has asked yet.
 */

/** Twice in each of a gateway's own intervals, which are a second long here. */
const INTERVAL_MS = 500;

/** Asks each port for its health until `ended` settles. */
export function keepAwake(ports: readonly number[], ended: Promise<unknown>): void {
  const timer = setInterval(() => {
    for (const port of ports) {
      // Whatever is wrong with a gateway, its own log tells better.
      fetch(`http://127.0.0.1:${port}/_limiter/health`)
        .then((response) => response.arrayBuffer())
        .catch(() => {});
    }
  }, INTERVAL_MS);
  ended.finally(() => clearInterval(timer));
}
