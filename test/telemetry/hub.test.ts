/** What the hub counts, what it refuses, and what it remembers. */
import { describe, expect, test } from 'vitest';
import { GAUGES_MAX } from '../../src/telemetry/batch.ts';
import { HUB_SERIES_MAX, Hub } from '../../src/telemetry/hub.ts';
import { ISOLATES_MAX } from '../../src/telemetry/isolates.ts';
import { batch, calls, NOW_MS } from './batches.ts';
import { sampled, scrape, totalOf } from './scrape.ts';

const REGION = { region: 'weur' };

function callsIn(hub: Hub): number | undefined {
  return sampled(hub.text(NOW_MS), 'owner_calls_total');
}

function malformedIn(hub: Hub): number | undefined {
  return sampled(hub.text(NOW_MS), 'telemetry_dropped_total', { what: 'malformed', region: 'hub' });
}

describe('a batch', () => {
  test('that is repeated is acknowledged again and counted once', () => {
    const hub = new Hub();
    for (let time = 0; time < 3; time += 1)
      expect(hub.receive(calls(1, 5), NOW_MS)).toEqual({ acknowledged: 1 });
    expect(callsIn(hub)).toBe(5);
    expect(sampled(hub.text(NOW_MS), 'metrics_reports_total')).toBe(1);
  });

  test('of an older number is acknowledged and ignored', () => {
    const hub = new Hub();
    hub.receive(calls(7, 5), NOW_MS);
    expect(hub.receive(calls(6, 100), NOW_MS)).toEqual({ acknowledged: 6 });
    expect(callsIn(hub)).toBe(5);
    hub.receive(calls(8, 1), NOW_MS);
    expect(callsIn(hub)).toBe(6);
  });

  test('of another isolate has numbers of its own', () => {
    const hub = new Hub();
    hub.receive(calls(3, 5), NOW_MS);
    hub.receive(calls(1, 5, 'another'), NOW_MS);
    expect(callsIn(hub)).toBe(10);
  });

  test('of an isolate that gave way to many others is counted as new: the one that was silent longest gives way', () => {
    const hub = new Hub();
    hub.receive(calls(1, 1, 'active'), NOW_MS);
    hub.receive(calls(1, 1, 'silent'), NOW_MS);
    hub.receive(calls(1, 1, 'active'), NOW_MS);
    for (let at = 0; at < ISOLATES_MAX - 1; at += 1) hub.receive(calls(1, 1, `isolate ${at}`), NOW_MS);
    const before = callsIn(hub) ?? 0;
    hub.receive(calls(1, 1, 'active'), NOW_MS);
    expect(callsIn(hub)).toBe(before);
    expect(sampled(hub.text(NOW_MS), 'isolates')).toBe(ISOLATES_MAX);
    hub.receive(calls(1, 1, 'silent'), NOW_MS);
    expect(callsIn(hub)).toBe(before + 1);
  });
});

describe('histograms', () => {
  test('of several isolates are added bucket by bucket, and regions stay apart', () => {
    const hub = new Hub();
    const counts = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];
    for (const isolate of ['one', 'another'])
      hub.receive(batch({ isolate, histograms: [['owner_answer_seconds', REGION, counts, 7.5]] }), NOW_MS);
    hub.receive(
      batch({ isolate: 'far', histograms: [['owner_answer_seconds', { region: 'oc' }, counts, 7.5]] }),
      NOW_MS,
    );
    const text = hub.text(NOW_MS);
    const bucket = (le: string) => sampled(text, 'owner_answer_seconds_bucket', { ...REGION, le });
    expect([bucket('0.001'), bucket('2'), bucket('+Inf')]).toEqual([2, 2, 6]);
    expect(sampled(text, 'owner_answer_seconds_count', REGION)).toBe(6);
    expect(sampled(text, 'owner_answer_seconds_sum', REGION)).toBe(15);
    expect(sampled(text, 'owner_answer_seconds_count', { region: 'oc' })).toBe(3);
  });
});

describe('what is malformed', () => {
  test.each([
    ['nothing', undefined, 0],
    ['a text', 'batch', 0],
    ['an unknown format', batch({ format: 2, number: 4 }), 4],
    ['no isolate', { ...batch(), isolate: '' }, 1],
    ['a very long isolate', { ...batch(), isolate: 'i'.repeat(129) }, 1],
    ['no region', { ...batch(), region: undefined }, 1],
    ['number 0', batch({ number: 0 }), 0],
    ['a fraction as number', batch({ number: 1.5 }), 0],
    ['no number', { ...batch(), number: Number.NaN }, 0],
    ['no list', { ...batch(), counters: {} }, 1],
  ])('%s: the batch is acknowledged, dropped and counted', (_, malformed, acknowledged) => {
    const hub = new Hub();
    expect(hub.receive(malformed, NOW_MS)).toEqual({ acknowledged });
    expect(malformedIn(hub)).toBe(1);
    expect(sampled(hub.text(NOW_MS), 'metrics_reports_total')).toBe(0);
  });

  test.each([
    ['an unknown name', ['owner_dreams_total', REGION, 1]],
    ['a name of every object', ['constructor', REGION, 1]],
    ['a name of the hub', ['metrics_reports_total', {}, 1]],
    ['a gauge', ['open_breakers', REGION, 1]],
    ['a label missing', ['owner_calls_total', {}, 1]],
    ['a label too many', ['owner_calls_total', { ...REGION, domain: 'api' }, 1]],
    ['another label', ['owner_calls_total', { domain: 'api' }, 1]],
    ['an inherited label', ['owner_calls_total', Object.assign(Object.create(REGION), { domain: 'api' }), 1]],
    ['a label that is no text', ['owner_calls_total', { region: 1 }, 1]],
    ['labels as a list', ['owner_calls_total', ['weur'], 1]],
    ['no labels', ['owner_calls_total', null, 1]],
    ['a negative amount', ['owner_calls_total', REGION, -1]],
    ['an infinite amount', ['owner_calls_total', REGION, Number.POSITIVE_INFINITY]],
    ['no number', ['owner_calls_total', REGION, Number.NaN]],
    ['an amount as text', ['owner_calls_total', REGION, '1']],
    ['no entry', undefined],
    ['no list', { name: 'owner_calls_total' }],
  ])('%s: the entry is dropped and counted, the rest of the batch is not', (_, entry) => {
    const hub = new Hub();
    const counters = [['owner_calls_total', REGION, 1], entry, ['owner_failures_total', REGION, 2]];
    expect(hub.receive({ ...batch(), counters }, NOW_MS)).toEqual({ acknowledged: 1 });
    expect(callsIn(hub)).toBe(1);
    expect(sampled(hub.text(NOW_MS), 'owner_failures_total')).toBe(2);
    expect(malformedIn(hub)).toBe(1);
  });

  const fine = new Array(12).fill(1);
  test.each([
    ['too few buckets', fine.slice(1), 1],
    ['too many buckets', [...fine, 1], 1],
    ['a bucket of no number', [...fine.slice(1), 'one'], 1],
    ['holes', new Array(12), 1],
    ['a negative bucket', [...fine.slice(1), -1], 1],
    ['a negative sum', fine, -1],
    ['no buckets', undefined, 1],
  ])('%s: the histogram is dropped whole', (_, counts, sum) => {
    const hub = new Hub();
    hub.receive({ ...batch(), histograms: [['owner_answer_seconds', REGION, counts, sum]] }, NOW_MS);
    expect(hub.text(NOW_MS)).not.toContain('owner_answer_seconds');
    expect(malformedIn(hub)).toBe(1);
  });

  test('gauges beyond the most are dropped and counted', () => {
    const hub = new Hub();
    const gauges = Array.from({ length: GAUGES_MAX + 3 }, (_, at) => [
      'activation',
      { domain: `d${at}`, ...REGION },
      1,
    ]);
    hub.receive({ ...batch(), gauges }, NOW_MS);
    expect(malformedIn(hub)).toBe(3);
    expect(totalOf(hub.text(NOW_MS), 'activation')).toBe(2 * GAUGES_MAX);
  });

  test('amounts beyond what can be counted one by one never make a total that cannot be read again', () => {
    const hub = new Hub();
    for (const number of [1, 2, 3]) hub.receive(calls(number, Number.MAX_SAFE_INTEGER), NOW_MS);
    expect(callsIn(new Hub(hub.stored()))).toBe(Number.MAX_SAFE_INTEGER);
  });
});

describe('series', () => {
  test('beyond the most are counted as "other", and no count is lost', () => {
    const hub = new Hub();
    const perBatch = 500;
    const batches = HUB_SERIES_MAX / perBatch + 1;
    for (let number = 1; number <= batches; number += 1) {
      const counters = Array.from({ length: perBatch }, (_, at) => {
        const labels = { domain: 'api', policy: `p${number}`, rule: `r${at}`, ...REGION };
        return ['near_limit_total', labels, 1] as const;
      });
      hub.receive(batch({ number, counters }), NOW_MS);
    }
    const text = hub.text(NOW_MS);
    expect(scrape(text).filter(({ name }) => name.endsWith('near_limit_total'))).toHaveLength(
      HUB_SERIES_MAX + 1,
    );
    expect(sampled(text, 'near_limit_total', { policy: 'other', rule: 'other', domain: 'api' })).toBe(
      perBatch,
    );
    expect(sampled(text, 'series_overflow_total', { region: 'hub' })).toBe(perBatch);
    expect(new Hub(hub.stored()).text(NOW_MS)).toBe(text);
  });

  test('that tell of trouble are there from the start, so that the first trouble is an increase', () => {
    expect(scrape(new Hub().text(NOW_MS))).toEqual([
      { name: 'edge_limiter_metrics_reports_total', labels: {}, value: 0 },
      {
        name: 'edge_limiter_telemetry_dropped_total',
        labels: { what: 'malformed', region: 'hub' },
        value: 0,
      },
      { name: 'edge_limiter_series_overflow_total', labels: { region: 'hub' }, value: 0 },
    ]);
  });
});

describe('storing', () => {
  function filled(): Hub {
    const hub = new Hub();
    hub.receive(
      batch({
        number: 5,
        counters: [['owner_calls_total', REGION, 3]],
        histograms: [['owner_answer_seconds', REGION, new Array(12).fill(2), 8.5]],
        gauges: [['activation', { domain: 'a "quoted" name', ...REGION }, 3]],
      }),
      NOW_MS,
    );
    hub.receive('nonsense', NOW_MS);
    return hub;
  }

  test.each([
    ['cloned', <Value>(value: Value) => structuredClone(value)],
    ['as JSON', <Value>(value: Value) => JSON.parse(JSON.stringify(value)) as Value],
  ])('what was stored %s goes on as if nothing had happened', (_, copy) => {
    const hub = filled();
    const restored = new Hub(copy(hub.stored()));
    expect(restored.text(NOW_MS)).toBe(hub.text(NOW_MS));
    restored.receive(calls(5, 100), NOW_MS);
    expect(callsIn(restored)).toBe(3);
    restored.receive(calls(6, 1), NOW_MS);
    expect(callsIn(restored)).toBe(4);
  });

  test('what is stored does not change with the hub that it was taken from', () => {
    const hub = filled();
    const stored = hub.stored();
    const before = structuredClone(stored);
    hub.receive(
      batch({ number: 6, histograms: [['owner_answer_seconds', REGION, new Array(12).fill(1), 1]] }),
      NOW_MS,
    );
    expect(stored).toEqual(before);
  });

  test.each([
    ['another format', { ...filled().stored(), format: 2 }],
    ['nothing', undefined],
    ['nonsense', 'nonsense'],
    ['no lists', { format: 1, reports: 'x', numbers: 1, live: {}, counters: null, histograms: 'h' }],
    [
      'nonsense in lists',
      { format: 1, numbers: [1, ['x'], ['y', -1]], live: [['z', null]], counters: [[]], histograms: [9] },
    ],
  ])('%s: it starts anew', (_, stored) => {
    expect(new Hub(stored).text(NOW_MS)).toBe(new Hub().text(NOW_MS));
  });

  test('a metric that is not known any more is left out, the others stay', () => {
    const { counters, ...stored } = filled().stored();
    const restored = new Hub({ ...stored, counters: [['owner_dreams_total', REGION, 1], ...counters] });
    expect(restored.text(NOW_MS)).toBe(filled().text(NOW_MS));
  });
});
