/**
 * The production gateway with a count of what decided its responses: a wrapper that exists under `serve --faults` only.
 *
 * It reads the source from the `Server-Timing` field, so it counts what a client was told and not what some counter believes.
 */
import worker from '../../src/index.ts';

export * from '../../src/index.ts';

const bySource = new Map<string, number>();

export default {
  async fetch(...args: Parameters<typeof worker.fetch>): Promise<Response> {
    const response = await worker.fetch(...args);
    const source = /(?:^|,)\s*limiter;desc="?(\w+)/.exec(response.headers.get('server-timing') ?? '')?.[1];
    if (source !== undefined) bySource.set(source, (bySource.get(source) ?? 0) + 1);
    return response;
  },
};

/** The entrypoint that the test control asks; DELETE starts the count anew. */
export const counts = {
  fetch(request: Request): Response {
    if (request.method === 'DELETE') bySource.clear();
    return Response.json(Object.fromEntries(bySource));
  },
};
