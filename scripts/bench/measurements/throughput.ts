/**
 * How much gets through with every connection busy, as a share of what a baseline in the same process lets through.
 *
 * There are two of each: what costs nothing that could be saved (bare forwarding, an object call that does nothing), which the bars
 * are about, and the same with a limiter's fields on the response. Between the two lies what copying a response and writing on
 * it costs in this runtime, whoever does it; from the second on, the cost is the limiter's own.
 */
import type { Measurement } from '../figure.ts';
import { alternate, MANY_CALLERS, ONE_CALLER, ownerCallsPerThousand, ratios, withServe } from '../live.ts';

export const local: Measurement = {
  name: 'local',
  about: 'local rules only, against bare forwarding, and against forwarding that writes the same fields',
  run: (progress) =>
    withServe(
      { rules: 'local-only', beside: ['baseline', 'fields-baseline'] },
      async ({ gateways, beside }) => {
        const rates = await alternate(
          {
            baseline: { ports: beside.baseline, requests: MANY_CALLERS, status: 200 },
            fields: { ports: beside['fields-baseline'], requests: MANY_CALLERS, status: 200 },
            local: { ports: gateways, requests: MANY_CALLERS, status: 200 },
          },
          progress,
        );
        return [
          { name: 'local.of_baseline', unit: 'x', values: ratios(rates.local, rates.baseline) },
          { name: 'local.of_fields', unit: 'x', values: ratios(rates.local, rates.fields) },
          { name: 'local.fields_of_baseline', unit: 'x', values: ratios(rates.fields, rates.baseline) },
          { name: 'local.rate', unit: 'per second', values: rates.local },
          { name: 'local.baseline_rate', unit: 'per second', values: rates.baseline },
        ];
      },
    ),
};

export const strict: Measurement = {
  name: 'strict',
  about:
    'one strict owner call, against an object call that does nothing, also with fields, and bare forwarding',
  run: (progress) =>
    withServe(
      { rules: 'strict', beside: ['baseline', 'object-baseline', 'object-fields-baseline'] },
      async ({ gateways, beside }) => {
        const rates = await alternate(
          {
            baseline: { ports: beside.baseline, requests: MANY_CALLERS, status: 200 },
            object: { ports: beside['object-baseline'], requests: MANY_CALLERS, status: 200 },
            objectFields: { ports: beside['object-fields-baseline'], requests: MANY_CALLERS, status: 200 },
            strict: { ports: gateways, requests: MANY_CALLERS, status: 200 },
          },
          progress,
        );
        return [
          { name: 'strict.of_object', unit: 'x', values: ratios(rates.strict, rates.object) },
          { name: 'strict.of_object_fields', unit: 'x', values: ratios(rates.strict, rates.objectFields) },
          { name: 'strict.of_baseline', unit: 'x', values: ratios(rates.strict, rates.baseline) },
          { name: 'strict.rate', unit: 'per second', values: rates.strict },
          { name: 'strict.object_rate', unit: 'per second', values: rates.object },
        ];
      },
    ),
};

/** Owner calls are counted on a server of their own, since counting costs a little. */
export const flood: Measurement = {
  name: 'flood',
  about:
    'one key far beyond its 100 a minute: speed against bare forwarding and a constant 429, and owner calls',
  run: async (progress) => {
    const rates = await withServe(
      { rules: 'flood', beside: ['baseline', 'denial-baseline'] },
      ({ gateways, beside }) =>
        alternate(
          {
            baseline: { ports: beside.baseline, requests: ONE_CALLER, status: 200 },
            denial: { ports: beside['denial-baseline'], requests: ONE_CALLER, status: 429 },
            flood: { ports: gateways, requests: ONE_CALLER, status: 429 },
          },
          progress,
        ),
    );
    const ownerCalls = await withServe({ rules: 'flood', counted: true }, ({ gateways, faults }) =>
      ownerCallsPerThousand({ ports: gateways, requests: ONE_CALLER, status: 429 }, { faults, progress }),
    );
    return [
      { name: 'flood.of_baseline', unit: 'x', values: ratios(rates.flood, rates.baseline) },
      { name: 'flood.of_denial', unit: 'x', values: ratios(rates.flood, rates.denial) },
      { name: 'flood.owner_calls', unit: 'per 1,000', values: ownerCalls },
      { name: 'flood.rate', unit: 'per second', values: rates.flood },
    ];
  },
};
