/** The OpenAPI document is valid, and says of every endpoint what the router and the schemas do. */
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { ENDPOINTS } from '../../src/admin/endpoints.ts';
import { openApi } from '../../src/admin/openapi.ts';

const document = JSON.parse(JSON.stringify(openApi()));

test('is a valid OpenAPI 3.1 document', async () => {
  const { valid, errors } = await new Validator().validate(document);
  expect({ valid, errors }).toEqual({ valid: true, errors: undefined });
});

test('names every path that other programs rely on', () => {
  expect(Object.keys(document.paths).sort()).toEqual([
    '/_limiter/metrics',
    '/_limiter/v1/audit',
    '/_limiter/v1/check',
    '/_limiter/v1/clamps',
    '/_limiter/v1/counters/inspect',
    '/_limiter/v1/counters/reset',
    '/_limiter/v1/explain',
    '/_limiter/v1/keys',
    '/_limiter/v1/rulesets/{domain}',
    '/_limiter/v1/rulesets/{domain}/rollback',
    '/_limiter/v1/rulesets/{domain}/{version}',
    '/_limiter/v1/rulesets/{domain}/{version}/activate',
    '/_limiter/v1/rulesets/{domain}/{version}/diff/{other}',
  ]);
});

test.each(ENDPOINTS.map((endpoint) => [`${endpoint.method} ${endpoint.path}`, endpoint] as const))(
  '%s says what it takes and answers',
  (_, { path, method, body, status }) => {
    const operation = document.paths[`/_limiter${path.replace(/:(\w+)/g, '{$1}')}`][method];
    expect(Object.keys(operation.responses)).toEqual([String(status), 'default']);
    expect(operation.requestBody !== undefined).toBe(body !== undefined);
    const named = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name);
    const inPath = (operation.parameters ?? []).filter(
      (parameter: { in: string }) => parameter.in === 'path',
    );
    expect(inPath.map(({ name }: { name: string }) => name)).toEqual(named);
  },
);

test('describes the decision by the schema that it is checked against', () => {
  const { schema } = document.paths['/_limiter/v1/check'].post.responses[200].content['application/json'];
  expect(schema).toEqual({ $ref: '#/components/schemas/Decision' });
  expect(Object.keys(document.components.schemas.Decision.properties)).toEqual(
    expect.arrayContaining([
      'allowed',
      'reason',
      'limit',
      'remaining',
      'retryAfterSeconds',
      'resetSeconds',
      'policy',
      'source',
      'policies',
    ]),
  );
  const { Bound, Check } = document.components.schemas;
  expect(Object.keys(Bound.properties)).toEqual(
    expect.arrayContaining(['steady', 'fallback', 'crashUnits', 'regional', 'sentences']),
  );
  expect(Check.properties.bound).toMatchObject({ type: 'boolean' });
});
