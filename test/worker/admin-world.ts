/** Gateways with a control plane in workerd: isolates that share real objects, and what an operator says to them. */
import { createExecutionContext, waitOnExecutionContext } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { adminApi } from '../../src/admin/api.ts';
import { type AdminBindings, adminPorts } from '../../src/admin-ports.ts';
import { createGateway, type GatewayBindings } from '../../src/gateway/app.ts';
import { Isolate } from '../../src/gateway/isolate.ts';
import { isolateOf, rulesetOf } from './gateway-world.ts';

export const TOKEN = 'canary-token-5f1e';

export interface Spoken {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly text: string;
  readonly headers: Headers;
}

export interface Saying {
  readonly method?: string;
  readonly body?: unknown;
  /** As it is, in place of a body made of JSON. */
  readonly raw?: BodyInit;
  readonly headers?: Record<string, string>;
  readonly token?: string | null;
  readonly address?: string;
  readonly cf?: Record<string, unknown>;
}

/** One isolate: a gateway of its own, in front of an origin that says so. */
export class AdminWorld {
  readonly isolate: Isolate;
  readonly #bindings: AdminBindings & GatewayBindings;
  readonly #gateway: ReturnType<typeof createGateway>;

  constructor(file: Record<string, unknown>, bindings: Partial<AdminBindings> = {}) {
    this.#bindings = {
      OWNER: isolateOf(env.OWNER),
      CONTROL: env.CONTROL,
      METRICS: env.METRICS,
      ADMIN_TOKEN: TOKEN,
      ORIGIN: { fetch: async () => new Response('from the origin') } as unknown as Fetcher,
      ...bindings,
    } as unknown as AdminBindings & GatewayBindings;
    this.isolate = new Isolate(this.#bindings, rulesetOf(file));
    const ports = adminPorts(this.isolate, this.#bindings);
    this.#gateway = createGateway({
      rules: () => this.isolate.snapshot,
      // Without the beat: tests refresh when they want to.
      services: () => ({
        limiter: this.isolate.limiter,
        lookUp: (background) => this.isolate.lookUp(background),
        attend: () => {},
      }),
      admin: adminApi(() => ports),
    });
  }

  /** What the control plane has to say is heard. */
  refresh(): Promise<void> {
    return this.isolate.own.source.refresh({ nowMs: Date.now(), wallMs: Date.now() });
  }

  /** A caller's request. */
  async get(path: string, { key, address = '192.0.2.1' }: { key?: string; address?: string } = {}) {
    const headers = { 'CF-Connecting-IP': address, ...(key && { Authorization: `Bearer ${key}` }) };
    return this.#fetch(new Request(`https://api.example.com${path}`, { headers }));
  }

  /** An operator's. */
  async say(path: string, saying: Saying = {}): Promise<Spoken> {
    const { body, raw, headers, token = TOKEN, address = '192.0.2.99', cf } = saying;
    const content = raw ?? (body === undefined ? undefined : JSON.stringify(body));
    const request = new Request(`https://api.example.com/_limiter${path}`, {
      method: saying.method ?? (content === undefined ? 'GET' : 'POST'),
      ...(content !== undefined && { body: content }),
      ...(cf !== undefined && { cf }),
      headers: {
        'CF-Connecting-IP': address,
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...headers,
      },
    });
    const response = await this.#fetch(request);
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type')?.includes('json') === true;
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: isJson ? JSON.parse(text) : {},
    };
  }

  /** What a request leaves to do is done when this is over. */
  async #fetch(request: Request): Promise<Response> {
    const context = createExecutionContext();
    const response = await this.#gateway.fetch(request, this.#bindings, context);
    await waitOnExecutionContext(context);
    return response;
  }
}

export function perDay(quota: number, domain = 'test'): Record<string, unknown> {
  return {
    domain,
    descriptors: [{ key: 'remote_address', rate_limit: { unit: 'day', requests_per_unit: quota } }],
  };
}

/** These fields of each item of a list in an answer. */
export function rows(list: unknown, ...names: readonly string[]): readonly unknown[][] {
  return (list as readonly Record<string, unknown>[]).map((item) => names.map((name) => item[name]));
}
