/** A gateway in workerd with real owners, in front of an origin that the test writes. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { createHash } from 'node:crypto';
import { createGateway, type GatewayBindings, type GatewayOptions } from '../../src/gateway/app.ts';
import { bundledSnapshot } from '../../src/gateway/snapshot.ts';
import { compile } from '../../src/policy/compile.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';

export const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

export interface WorldOptions extends Partial<GatewayOptions> {
  readonly rules?: GatewayOptions['rules'];
  /** `null` where none is bound, as on a zone's own routes. */
  readonly origin?: ((request: Request) => Response | Promise<Response>) | null;
  readonly bindings?: Partial<GatewayBindings>;
}

export interface Asked extends Omit<RequestInit, 'cf'> {
  readonly address?: string;
  readonly key?: string;
  readonly cf?: Record<string, unknown>;
}

/** A rule file as an object; what is wrong with it fails the test. */
export function rulesetOf(file: Record<string, unknown>): Ruleset {
  const compiled = compile(file, { sha256, builtAtMs: 1 });
  if (!compiled.ok)
    throw new Error(compiled.errors.map(({ path, message }) => `${path.join('.')}: ${message}`).join('\n'));
  return compiled.ruleset;
}

/** An isolate has one limiter for each namespace; a test that brings its own namespace is an isolate of its own. */
export function isolateOf(owners: DurableObjectNamespace): DurableObjectNamespace {
  const getByName: DurableObjectNamespace['getByName'] = (...asked) => owners.getByName(...asked);
  return { getByName } as unknown as DurableObjectNamespace;
}

/** The same, with who was asked and where each was to be made. */
export function recordedOwners(owners: DurableObjectNamespace) {
  const placed = new Map<string, string | undefined>();
  const getByName: DurableObjectNamespace['getByName'] = (name, options) => {
    placed.set(name, options?.locationHint);
    return owners.getByName(name, options);
  };
  return { placed, owners: { getByName } as unknown as DurableObjectNamespace };
}

export class GatewayWorld {
  readonly seen: Request[] = [];
  readonly #gateway: ReturnType<typeof createGateway>;
  readonly #bindings: GatewayBindings;

  constructor(file: Record<string, unknown>, options: WorldOptions = {}) {
    const { origin = () => new Response('from the origin'), bindings, ...gateway } = options;
    const snapshot = bundledSnapshot(rulesetOf(file));
    this.#gateway = createGateway({ rules: () => snapshot, ...gateway });
    const fetcher = {
      fetch: async (input: Request, init?: RequestInit) => {
        const request = new Request(input, init);
        this.seen.push(request);
        return origin?.(request);
      },
    };
    this.#bindings = {
      OWNER: isolateOf(env.OWNER),
      ...(origin && { ORIGIN: fetcher as unknown as Fetcher }),
      ...bindings,
    } as GatewayBindings;
  }

  /** Sends a request and waits for everything that it left to do. */
  async send(path: string, { address = '192.0.2.1', key, ...init }: Asked = {}): Promise<Response> {
    const request = new Request(
      path.includes('://') ? path : `https://api.example.com${path}`,
      init as RequestInit,
    );
    request.headers.set('CF-Connecting-IP', address);
    if (key !== undefined) request.headers.set('Authorization', `Bearer ${key}`);
    return this.sendAsIs(request);
  }

  /** Sends a request and does not wait for what it left to do; `done` does. */
  async begin(request: Request): Promise<{ response: Response; done: () => Promise<void> }> {
    const context = createExecutionContext();
    const response = await this.#gateway.fetch(request, this.#bindings, context);
    return { response, done: () => waitOnExecutionContext(context) };
  }

  async sendAsIs(request: Request): Promise<Response> {
    const context = createExecutionContext();
    const response = await this.#gateway.fetch(request, this.#bindings, context);
    await waitOnExecutionContext(context);
    return response;
  }
}
