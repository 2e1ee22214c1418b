/** What an isolate counts, and how it hands that out exactly once. */
import { describe, expect, expectTypeOf, test } from 'vitest';
import { GAUGES_MAX, type MetricsBatch } from '../../src/telemetry/batch.ts';
import { LABEL_LENGTH_MAX } from '../../src/telemetry/labels.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { LUMPED_MAX } from '../../src/telemetry/series.ts';

const REGION = { region: 'weur' };

function metrics(seriesMax?: number): Metrics {
  return new Metrics({ isolate: 'one', ...REGION, ...(seriesMax !== undefined && { seriesMax }) });
}

function taken(from: Metrics): MetricsBatch {
  const batch = from.take();
  if (batch === undefined) throw new Error('there is nothing to take');
  return batch;
}

function decision(policy: string, outcome = 'allowed') {
  return { domain: 'api', policy, rule: 'r', outcome, source: 'owner' };
}

describe('counting', () => {
  test("a handle, and counting by name, add to one series; the region is the isolate's", () => {
    const one = metrics();
    const handle = one.counter('key_lookups_total', { result: 'hit' });
    handle.add();
    handle.add(3);
    one.count('key_lookups_total', { result: 'hit' });
    one.count('key_lookups_total', { result: 'miss' }, 2);
    one.count('owner_calls_total', {});
    expect(taken(one)).toEqual({
      format: 1,
      isolate: 'one',
      region: 'weur',
      number: 1,
      counters: [
        ['key_lookups_total', { result: 'hit', ...REGION }, 5],
        ['key_lookups_total', { result: 'miss', ...REGION }, 2],
        ['owner_calls_total', REGION, 1],
      ],
      histograms: [],
      gauges: [],
    });
  });

  test('a handle counts on after a batch was taken and acknowledged', () => {
    const one = metrics();
    const handle = one.counter('owner_calls_total', {});
    for (const number of [1, 2]) {
      handle.add(number);
      expect(taken(one)).toMatchObject({ number, counters: [['owner_calls_total', REGION, number]] });
      one.acknowledged(number);
    }
    expect(one.take()).toBeUndefined();
  });

  test('what is observed falls in the first bucket whose bound it does not exceed, or in the last', () => {
    const one = metrics();
    for (const seconds of [0, 0.001, 0.0011, 2, 2.001, 60]) one.observe('owner_answer_seconds', {}, seconds);
    const [[name, labels, counts, sum] = []] = taken(one).histograms;
    expect([name, labels, counts]).toEqual([
      'owner_answer_seconds',
      REGION,
      [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2],
    ]);
    expect(sum).toBeCloseTo(64.0031, 10);
  });

  test('labels that a metric does not have, or lacks, are a mistake that the compiler finds', () => {
    expectTypeOf(metrics().count<'key_lookups_total'>)
      .parameter(1)
      .toEqualTypeOf<{ readonly result: string }>();
    expectTypeOf(metrics().count<'near_limit_total'>)
      .parameter(1)
      .toHaveProperty('policy');
    expectTypeOf<Parameters<Metrics['count']>[0]>().not.toExtend<'activation'>();
  });

  test('labels in another order are the same labels', () => {
    const one = metrics();
    one.count('rules_rejected_total', { domain: 'api', reason: 'old' });
    one.count('rules_rejected_total', { reason: 'old', domain: 'api' });
    expect(taken(one).counters).toEqual([
      ['rules_rejected_total', { domain: 'api', reason: 'old', ...REGION }, 2],
    ]);
  });

  test('values that look alike once they are published are one series', () => {
    const one = metrics();
    const long = 'p'.repeat(LABEL_LENGTH_MAX);
    for (const policy of [long, `${long}1`, `${long}2`]) one.count('decisions_total', decision(policy));
    for (const policy of ['\ud800', '\ufffd', '\udc00']) one.count('decisions_total', decision(policy));
    expect(taken(one).counters.map(([, { policy }, amount]) => [policy, amount])).toEqual([
      [long, 3],
      ['\ufffd', 3],
    ]);
  });

  test('values that only join to the same text are two series', () => {
    const one = metrics();
    one.count('rules_rejected_total', { domain: 'a","b', reason: 'c' });
    one.count('rules_rejected_total', { domain: 'a', reason: 'b","c' });
    expect(taken(one).counters).toHaveLength(2);
  });
});

describe('nonsense', () => {
  test.each([Number.NaN, Number.POSITIVE_INFINITY, -1, 2 ** 60])(
    '%d is dropped, and that is counted',
    (value) => {
      const one = metrics();
      one.count('owner_calls_total', {}, 2);
      one.count('owner_calls_total', {}, value);
      one.counter('owner_failures_total', {}).add(value);
      one.observe('owner_answer_seconds', {}, value);
      one.gauge('open_breakers', {}, value);
      expect(taken(one)).toMatchObject({
        counters: [
          ['owner_calls_total', REGION, 2],
          ['telemetry_dropped_total', { what: 'amount', ...REGION }, 2],
          ['telemetry_dropped_total', { what: 'observation', ...REGION }, 1],
          ['telemetry_dropped_total', { what: 'gauge', ...REGION }, 1],
        ],
        histograms: [],
        gauges: [],
      });
    },
  );

  test('a handle that was spoilt counts again after the batch', () => {
    const one = metrics();
    const handle = one.counter('owner_calls_total', {});
    handle.add(Number.NaN);
    one.acknowledged(taken(one).number);
    handle.add(4);
    expect(taken(one).counters).toEqual([['owner_calls_total', REGION, 4]]);
  });
});

describe('a batch', () => {
  test('is the same one until it is acknowledged, whatever is counted meanwhile', () => {
    const one = metrics();
    one.count('owner_calls_total', {}, 1);
    one.observe('owner_answer_seconds', {}, 0.5);
    one.gauge('open_breakers', {}, 1);
    const first = structuredClone(taken(one));
    one.count('owner_calls_total', {}, 10);
    one.observe('owner_answer_seconds', {}, 0.5);
    one.gauge('open_breakers', {}, 2);
    expect(taken(one)).toEqual(first);
    one.acknowledged(first.number + 1);
    one.acknowledged(first.number - 1);
    expect(taken(one)).toEqual(first);
    one.acknowledged(first.number);
    expect(taken(one)).toMatchObject({
      number: 2,
      counters: [['owner_calls_total', REGION, 10]],
      histograms: [[expect.anything(), REGION, [0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], 0.5]],
      gauges: [['open_breakers', REGION, 2]],
    });
  });

  test('is not made while there is nothing to tell', () => {
    const one = metrics();
    expect(one.take()).toBeUndefined();
    one.counter('owner_calls_total', {});
    one.count('owner_calls_total', {}, 0);
    expect(one.take()).toBeUndefined();
  });

  test('is made for a gauge that changed, not for one that was set to what it was, and always bears all of them', () => {
    const one = metrics();
    one.gauge('activation', { domain: 'api' }, 3);
    one.gauge('open_breakers', {}, 0);
    expect(taken(one).gauges).toHaveLength(2);
    one.acknowledged(1);
    one.gauge('open_breakers', {}, 0);
    expect(one.take()).toBeUndefined();
    one.gauge('open_breakers', {}, 1);
    const gauges = [
      ['activation', { domain: 'api', ...REGION }, 3],
      ['open_breakers', REGION, 1],
    ];
    expect(taken(one)).toMatchObject({ number: 2, gauges });
    one.acknowledged(2);
    one.count('owner_calls_total', {});
    expect(taken(one)).toMatchObject({ number: 3, gauges });
  });

  test('can be cloned and is plain data', () => {
    const one = metrics();
    one.count('owner_calls_total', {});
    one.observe('owner_answer_seconds', {}, 0.3);
    one.gauge('open_breakers', {}, 1);
    expect(structuredClone(taken(one))).toEqual(JSON.parse(JSON.stringify(taken(one))));
  });
});

describe('bounds', () => {
  test('beyond the most series, policy and rule become "other", and that is counted', () => {
    const one = metrics(2);
    for (const policy of ['a', 'b', 'c', 'd', 'a']) one.count('decisions_total', decision(policy));
    one.count('decisions_total', decision('e', 'denied'));
    const other = { policy: 'other', rule: 'other', ...REGION };
    expect(taken(one).counters).toEqual([
      ['series_overflow_total', REGION, 3],
      ['decisions_total', { ...decision('a'), ...REGION }, 2],
      ['decisions_total', { ...decision('b'), ...REGION }, 1],
      ['decisions_total', { ...decision('c'), ...other }, 2],
      ['decisions_total', { ...decision('e', 'denied'), ...other }, 1],
    ]);
  });

  test('a metric without policies gives up its domain, and one without either keeps what it has', () => {
    const one = metrics(0);
    one.count('rules_fetch_failures_total', { domain: 'api' });
    one.count('key_lookups_total', { result: 'hit' });
    expect(taken(one).counters.map(([name, labels]) => [name, labels])).toEqual([
      ['series_overflow_total', REGION],
      ['rules_fetch_failures_total', { domain: 'other', ...REGION }],
      ['key_lookups_total', { result: 'hit', ...REGION }],
    ]);
  });

  test('whatever is counted, series stay bounded and nothing is lost', () => {
    const one = metrics(10);
    const counted = 5_000;
    for (let at = 0; at < counted; at += 1)
      one.count('decisions_total', { ...decision(`p${at}`), domain: `d${at}` });
    const decisions = taken(one).counters.filter(([name]) => name === 'decisions_total');
    expect(decisions).toHaveLength(10 + LUMPED_MAX + 1);
    expect(decisions.reduce((total, [, , amount]) => total + amount, 0)).toBe(counted);
    expect(new Set(Object.values(decisions.at(-1)?.[1] ?? {}))).toEqual(new Set(['other']));
  });

  test('gauges beyond the most are dropped, since values of several cannot be one', () => {
    const one = metrics();
    for (let at = 0; at <= GAUGES_MAX; at += 1) one.gauge('activation', { domain: `d${at}` }, at + 1);
    one.gauge('activation', { domain: 'd0' }, 7);
    const { gauges, counters } = taken(one);
    expect(gauges).toHaveLength(GAUGES_MAX);
    expect(gauges[0]).toEqual(['activation', { domain: 'd0', ...REGION }, 7]);
    expect(counters).toEqual([['telemetry_dropped_total', { what: 'gauge', ...REGION }, 1]]);
  });
});
