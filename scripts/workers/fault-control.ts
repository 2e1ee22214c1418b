/** The test control of `serve --faults`: one address for the outages of owners, of the control plane and between regions, and for the counts of all gateways. */

type ControlEnv = Record<string, Fetcher> & { readonly OWNER_FAULTS: Fetcher };

/** Calls of isolates to owners, and of middle owners to roots. */
interface OwnerCounts {
  readonly ownerCalls: number;
  readonly rootCalls: number;
}

const ANY_URL = 'http://control/';

export default {
  fetch(request: Request, env: ControlEnv): Promise<Response> | Response {
    const { pathname } = new URL(request.url);
    if (/^\/(owner|control|region)$/.test(pathname) && request.method === 'PUT')
      return env.OWNER_FAULTS.fetch(request);
    if (pathname === '/counts' && /^(GET|DELETE)$/.test(request.method)) return totals(request.method, env);
    return Response.json(
      { error: 'PUT /owner, PUT /control, PUT /region, GET /counts and DELETE /counts are all there is' },
      { status: 404 },
    );
  },
};

async function totals(method: string, env: ControlEnv): Promise<Response> {
  const ask = (service: Fetcher) => service.fetch(ANY_URL, { method }).then((response) => response.json());
  const gateways = Object.keys(env).filter((name) => name.startsWith('GATEWAY_'));
  const [owner, ...parts] = (await Promise.all([
    ask(env.OWNER_FAULTS),
    ...gateways.map((name) => ask(env[name]!)),
  ])) as [OwnerCounts, ...Record<string, number>[]];
  const bySource: Record<string, number> = {};
  for (const part of parts) {
    for (const [source, count] of Object.entries(part)) bySource[source] = (bySource[source] ?? 0) + count;
  }
  return Response.json({ ...owner, bySource });
}
