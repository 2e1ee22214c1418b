import { describe, expect, it } from 'vitest';
import { BARS, holds } from '../../scripts/bench/bars.ts';
import { parseResponse } from '../../scripts/bench/connection.ts';
import { renderTable, rowsOf } from '../../scripts/bench/report.ts';
import { median, quantile } from '../../scripts/bench/statistics.ts';

describe('statistics', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 3, 2], 2.5],
    [[7], 7],
  ])('the median of %j is %d', (values, expected) => {
    expect(median(values)).toBe(expected);
  });

  it('a quantile is the value at its rank', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect([0.5, 0.99, 1].map((at) => quantile(values, at))).toEqual([50, 99, 100]);
  });
});

describe('the load generator finds the end of a response', () => {
  const sized = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello';
  const chunked =
    'HTTP/1.1 429 Too Many Requests\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n';
  const empty = 'HTTP/1.1 204 No Content\r\n\r\n';

  it.each([
    [sized, 200],
    [chunked, 429],
    [empty, 204],
  ])('%j', (text, status) => {
    const next = 'HTTP/1.1 200 OK';
    expect(parseResponse(Buffer.from(text + next))).toEqual({ status, length: text.length });
    for (let length = 0; length < text.length; length += 1) {
      expect(parseResponse(Buffer.from(text.slice(0, length)))).toBeUndefined();
    }
  });
});

describe('bars', () => {
  it('judge by the median, at least or at most', () => {
    const [atLeast, atMost] = [BARS.find((bar) => 'atLeast' in bar)!, BARS.find((bar) => 'atMost' in bar)!];
    const rows = rowsOf([
      { name: atLeast.figure, unit: 'x', values: [0, 0, 100] },
      { name: atMost.figure, unit: 'x', values: [0, 0, 1_000_000] },
      { name: 'without.bar', unit: 'x', values: [1] },
    ]);
    expect(rows.map((row) => row.holds)).toEqual([false, true, undefined]);
    expect(renderTable(rows)).toMatch(/MISSED[\s\S]*holds/);
  });

  it('judge a figure with two bars by both', () => {
    const figure = 'hot.admitted_of_ideal';
    const rows = rowsOf([0.98, 0.99, 1, 1.01].map((value) => ({ name: figure, unit: 'x', values: [value] })));
    expect(rows.map((row) => row.holds)).toEqual([false, true, true, false]);
    expect(rows[0]?.bar).toBe('>= 0.99, <= 1');
  });

  it('hold at the bar itself', () => {
    for (const bar of BARS) expect(holds(bar, 'atLeast' in bar ? bar.atLeast : bar.atMost)).toBe(true);
  });
});
