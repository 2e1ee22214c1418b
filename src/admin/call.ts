/**
 * One call of the admin API: what an endpoint is, what its handler is given, and how it finds what the call is about.
 */
import type * as z from 'zod/mini';
import type { Background } from '../engine/ports.ts';
import type { ControlApi } from '../policy/control.ts';
import type { Region } from '../policy/region.ts';
import type { AdminDomain, AdminPorts } from './ports.ts';
import { notFound, ProblemError } from './problems.ts';
import { domainName, versionNumber } from './schemas.ts';

export interface Call {
  readonly ports: AdminPorts;
  readonly background: Background;
  /** Checked against the endpoint's schemas. */
  readonly body: unknown;
  readonly query: unknown;
  readonly parameters: Readonly<Record<string, string>>;
  readonly author: string;
  /** Where the call comes from. */
  readonly region: Region;
}

export interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

export interface Endpoint {
  readonly method: 'get' | 'put' | 'post' | 'delete';
  /** With `:parameters`. */
  readonly path: string;
  readonly summary: string;
  readonly body?: z.ZodMiniType;
  /** Of a body that may have several shapes, the one that this input is meant to have: so that mistakes are told of that one. */
  readonly bodyOf?: (input: unknown) => z.ZodMiniType;
  readonly query?: z.ZodMiniObject;
  readonly bytesMax?: number;
  readonly status: number;
  readonly answer?: z.ZodMiniType;
  readonly contentType?: string;
  handle(call: Call): Promise<Answer | Response>;
}

export async function domainOf({ ports }: Call, name = ports.ownDomain): Promise<AdminDomain> {
  const domain = await ports.domain(name);
  if (domain === undefined) {
    throw new ProblemError({
      ...notFound(
        `No rules are known for the domain ${JSON.stringify(name)}. This gateway’s own is ${JSON.stringify(ports.ownDomain)}.`,
      ),
      error: 'unknown_domain',
    });
  }
  return domain;
}

export function controlOf({ ports }: Call): ControlApi {
  if (ports.control === undefined) throw new ProblemError(notBound('CONTROL'));
  return ports.control;
}

export function notBound(binding: string) {
  return {
    status: 503,
    error: 'not_bound',
    message: `This Worker has no binding ${binding}, so there is nobody to ask.`,
  };
}

export function changeBy(call: Call) {
  return { control: controlOf(call), author: call.author, nowMs: call.ports.nowMs() };
}

export function domainIn({ parameters }: Call): string {
  return checkedParameter(domainName, parameters.domain, 'domain');
}

export function numberIn({ parameters }: Call, name: string): number {
  return checkedParameter(versionNumber, parameters[name], name);
}

function checkedParameter<Schema extends z.ZodMiniType>(
  schema: Schema,
  value: string | undefined,
  name: string,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  throw new ProblemError(notFound(`There is nothing here: ${JSON.stringify(value)} is no ${name}.`));
}
