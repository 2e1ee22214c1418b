/** The text format itself, line by line and as a parser of others reads it. */
import fc from 'fast-check';
import parse from 'parse-prometheus-text-format';
import { expect, test } from 'vitest';
import { histogramSamples, render } from '../../src/telemetry/prometheus.ts';
import { scrape } from './scrape.ts';

const METRIC = { type: 'counter', labels: ['a'], help: 'Counts.' } as const;

test('a family is HELP, TYPE and a sample a line, each ended', () => {
  const samples = [
    { labels: {}, value: 3 },
    { labels: { a: '1', b: '2' }, value: 0.5 },
  ];
  const families = [
    { name: 'seen_total', metric: METRIC, samples },
    { name: 'unseen_total', metric: METRIC, samples: [] },
  ];
  expect(render(families)).toBe(
    [
      '# HELP edge_limiter_seen_total Counts.',
      '# TYPE edge_limiter_seen_total counter',
      'edge_limiter_seen_total 3',
      'edge_limiter_seen_total{a="1",b="2"} 0.5',
      '',
    ].join('\n'),
  );
});

test('quotes, backslashes and line ends are escaped in values, the latter two in help', () => {
  const value = 'say "hi"\\n\nand go';
  const help = 'One "line"\\\nand another.';
  const text = render([
    { name: 'x', metric: { ...METRIC, help }, samples: [{ labels: { a: value }, value: 1 }] },
  ]);
  expect(text.split('\n')).toEqual([
    '# HELP edge_limiter_x One "line"\\\\\\nand another.',
    '# TYPE edge_limiter_x counter',
    'edge_limiter_x{a="say \\"hi\\"\\\\n\\nand go"} 1',
    '',
  ]);
  expect(parse(text)).toEqual([
    { name: 'edge_limiter_x', type: 'COUNTER', help, metrics: [{ labels: { a: value }, value: '1' }] },
  ]);
});

test('any value of a label and any number are read back as they are', () => {
  const sample = fc.record({
    labels: fc.record({ a: fc.string({ unit: 'binary' }), b: fc.string() }),
    value: fc.double({ noNaN: true, min: 0 }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(sample, { minLength: 1, selector: ({ labels }) => JSON.stringify(labels) }),
      (samples) => {
        const read = scrape(render([{ name: 'x', metric: METRIC, samples }]));
        // Zero has a sign in JavaScript and none that matters here.
        expect(read.map(({ labels, value }) => ({ labels, value: value + 0 }))).toEqual(
          samples.map(({ labels, value }) => ({ labels, value: value + 0 })),
        );
      },
    ),
  );
});

test('buckets of a histogram are cumulative, and the last holds all', () => {
  const samples = histogramSamples(
    { region: 'weur' },
    { bounds: [0.001, 0.5, 2], counts: [1, 0, 4, 2], sum: 9.25 },
  );
  const text = render([{ name: 'x', metric: { ...METRIC, type: 'histogram' }, samples }]);
  expect(text.split('\n').slice(1)).toEqual([
    '# TYPE edge_limiter_x histogram',
    'edge_limiter_x_bucket{region="weur",le="0.001"} 1',
    'edge_limiter_x_bucket{region="weur",le="0.5"} 1',
    'edge_limiter_x_bucket{region="weur",le="2"} 5',
    'edge_limiter_x_bucket{region="weur",le="+Inf"} 7',
    'edge_limiter_x_sum{region="weur"} 9.25',
    'edge_limiter_x_count{region="weur"} 7',
    '',
  ]);
});
