/** The hub in rows of storage. */
import { expect, test } from 'vitest';
import { Hub } from '../../src/telemetry/hub.ts';
import { PIECE_LENGTH_MAX, readRows, rowsOf } from '../../src/telemetry/hub-rows.ts';
import { batch, calls, NOW_MS } from './batches.ts';

function hubOf(series: number): Hub {
  const hub = new Hub();
  const counters = Array.from({ length: series }, (_, at) => {
    const labels = { domain: '😀'.repeat(60), policy: 'p'.repeat(100), rule: `r${at}`, region: 'weur' };
    return ['near_limit_total', labels, 1] as const;
  });
  hub.receive(batch({ counters }), NOW_MS);
  return hub;
}

test('a usual hub is one row', () => {
  const hub = new Hub();
  hub.receive(calls(1, 5), NOW_MS);
  expect(Object.keys(rowsOf(hub.stored()))).toEqual(['hub:000']);
});

test('a large one is several, none too long, and is read whatever the order and beside other rows', () => {
  const hub = hubOf(9_000);
  const rows = rowsOf(hub.stored());
  expect(Object.keys(rows)).toEqual(['hub:000', 'hub:001', 'hub:002']);
  expect(Math.max(...Object.values(rows).map((row) => row.length))).toBe(PIECE_LENGTH_MAX);
  const listed = [['other', { row: 1 }] as const, ...Object.entries(rows).reverse()];
  expect(new Hub(readRows(listed)).text(NOW_MS)).toBe(hub.text(NOW_MS));
});

test.each([
  ['no rows', []],
  ['a row missing', Object.entries(rowsOf(hubOf(9_000).stored())).slice(1)],
  ['a row that is no text', [['hub:000', { format: 1 }]]],
  ['other rows', [['block:0', '{}']]],
] as [string, [string, unknown][]][])('%s: nothing is read, and nothing breaks', (_, rows) => {
  expect(readRows(rows)).toBeUndefined();
});
