/** The admin API as an OpenAPI 3.1 document, made from the list of endpoints and the schemas that requests are checked against. */
import * as z from 'zod/mini';
import type { Endpoint } from './call.ts';
import { ENDPOINTS } from './endpoints.ts';

const PREFIX = '/_limiter';

export function openApi(): object {
  const schemas: Schemas = {};
  const paths: Record<string, Record<string, unknown>> = {};
  for (const endpoint of ENDPOINTS) {
    const path = PREFIX + endpoint.path.replace(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [endpoint.method]: operation(endpoint, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'edge-limiter',
      version: '1',
      description:
        'Rules, clamps, keys and counters of the limiter. Every error is a problem details document (RFC 9457).',
    },
    security: [{ token: [] }],
    paths,
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } }, schemas },
  };
}

/** Those that have a name, which stand apart and are referred to. */
type Schemas = Record<string, unknown>;

function operation(
  { path, summary, body, query, status, answer, contentType }: Endpoint,
  schemas: Schemas,
): object {
  const parameters = [
    ...[...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: name === 'domain' ? 'string' : 'integer' },
    })),
    ...(query === undefined ? [] : queryParameters(query, schemas)),
  ];
  const schema = answer === undefined ? {} : jsonSchema(answer, 'output', schemas);
  return {
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: jsonSchema(body, 'input', schemas) } },
      },
    }),
    responses: {
      [status]: { description: summary, content: { [contentType ?? 'application/json']: { schema } } },
      default: {
        description: 'What was wrong, where, and what to do.',
        content: { 'application/problem+json': {} },
      },
    },
  };
}

function queryParameters(query: z.ZodMiniObject, schemas: Schemas): readonly object[] {
  const { properties = {} } = jsonSchema(query, 'input', schemas) as { properties?: Record<string, object> };
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', schema }));
}

function jsonSchema(schema: z.ZodMiniType, io: 'input' | 'output', schemas: Schemas): object {
  const text = JSON.stringify(z.toJSONSchema(schema, { io, unrepresentable: 'any' }));
  const { $schema: _, $defs, ...rest } = JSON.parse(text.replaceAll('#/$defs/', '#/components/schemas/'));
  for (const [name, named] of Object.entries($defs ?? {})) schemas[name] = named;
  return rest;
}
