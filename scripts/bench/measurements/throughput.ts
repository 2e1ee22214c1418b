/** How much gets through with every connection busy, as a share of what a baseline in the same process lets through. */
import type { Measurement } from '../figure.ts';
import {
  alternate,
  checkedLoad,
  MANY_CALLERS,
  ONE_CALLER,
  ratios,
  WARM_UP_SECONDS,
  withServe,
} from '../live.ts';

export const local: Measurement = {
  name: 'local',
  about: 'local rules only, against bare forwarding',
  run: (progress) =>
    withServe({ rules: 'local-only' }, async (ports) => {
      const rates = await alternate(
        {
          baseline: { port: ports.baseline, requests: MANY_CALLERS, status: 200 },
          local: { port: ports.limiter, requests: MANY_CALLERS, status: 200 },
        },
        progress,
      );
      return [
        { name: 'local.of_baseline', unit: 'x', values: ratios(rates.local, rates.baseline) },
        { name: 'local.rate', unit: 'per second', values: rates.local },
        { name: 'local.baseline_rate', unit: 'per second', values: rates.baseline },
      ];
    }),
};

export const strict: Measurement = {
  name: 'strict',
  about: 'one strict owner call, against an object call that does nothing, and against bare forwarding',
  run: (progress) =>
    withServe({ rules: 'strict' }, async (ports) => {
      const rates = await alternate(
        {
          baseline: { port: ports.baseline, requests: MANY_CALLERS, status: 200 },
          object: { port: ports.objectBaseline, requests: MANY_CALLERS, status: 200 },
          strict: { port: ports.limiter, requests: MANY_CALLERS, status: 200 },
        },
        progress,
      );
      return [
        { name: 'strict.of_object', unit: 'x', values: ratios(rates.strict, rates.object) },
        { name: 'strict.of_baseline', unit: 'x', values: ratios(rates.strict, rates.baseline) },
        { name: 'strict.rate', unit: 'per second', values: rates.strict },
        { name: 'strict.object_rate', unit: 'per second', values: rates.object },
      ];
    }),
};

/** Owner calls are counted on a server of their own, since counting costs a little. */
export const flood: Measurement = {
  name: 'flood',
  about: 'one key far beyond its 100 a minute: speed against bare forwarding, and owner calls',
  run: async (progress) => {
    const rates = await withServe({ rules: 'flood' }, (ports) =>
      alternate(
        {
          baseline: { port: ports.baseline, requests: ONE_CALLER, status: 200 },
          flood: { port: ports.limiter, requests: ONE_CALLER, status: 429 },
        },
        progress,
      ),
    );
    return [
      { name: 'flood.of_baseline', unit: 'x', values: ratios(rates.flood, rates.baseline) },
      { name: 'flood.owner_calls', unit: 'per 1,000', values: await ownerCallsPerThousand(progress) },
      { name: 'flood.rate', unit: 'per second', values: rates.flood },
    ];
  },
};

function ownerCallsPerThousand(progress: (line: string) => void): Promise<number[]> {
  return withServe({ rules: 'flood', counted: true }, async (ports) => {
    const contender = { port: ports.limiter, requests: ONE_CALLER, status: 429 };
    const counts = `http://127.0.0.1:${ports.faults}/counts`;
    await checkedLoad(contender, WARM_UP_SECONDS, { warmUp: true });
    const values: number[] = [];
    for (let round = 0; round < COUNT_ROUNDS; round += 1) {
      await fetch(counts, { method: 'DELETE' });
      const { statuses } = await checkedLoad(contender, COUNT_SECONDS);
      const { ownerCalls } = (await (await fetch(counts)).json()) as { ownerCalls: number };
      const requests = [...statuses.values()].reduce((sum, count) => sum + count, 0);
      values.push((ownerCalls / requests) * 1_000);
      progress(`count ${round + 1}: ${ownerCalls} owner calls for ${requests} requests`);
    }
    return values;
  });
}

/** A count hardly varies: three show that, and that the calls do not grow with time. */
const COUNT_ROUNDS = 3;
const COUNT_SECONDS = 2;
