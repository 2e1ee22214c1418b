/** Points for Analytics Engine, within its limits. */
import { expect, test } from 'vitest';
import { pointsOf } from '../../src/telemetry/analytics.ts';
import type { CounterEntry } from '../../src/telemetry/batch.ts';
import { batch } from './batches.ts';

const decision = {
  domain: 'api',
  policy: 'p',
  rule: 'r',
  outcome: 'denied',
  source: 'owner',
  region: 'weur',
};
const request = { domain: 'api', outcome: 'denied', source: 'owner', region: 'weur' };

test('each series of decisions is a point, with empty columns for labels that it does not have', () => {
  const counters: CounterEntry[] = [
    ['requests_total', request, 5],
    ['owner_calls_total', { region: 'weur' }, 9],
    ['decisions_total', decision, 4],
    ['near_limit_total', { domain: 'api', policy: 'p', rule: 'r', region: 'weur' }, 2],
  ];
  expect(pointsOf(batch({ counters }))).toEqual({
    points: [
      {
        blobs: ['edge_limiter_requests_total', 'api', '', '', 'denied', 'owner', 'weur'],
        doubles: [5],
        indexes: ['api'],
      },
      {
        blobs: ['edge_limiter_decisions_total', 'api', 'p', 'r', 'denied', 'owner', 'weur'],
        doubles: [4],
        indexes: ['api'],
      },
      {
        blobs: ['edge_limiter_near_limit_total', 'api', 'p', 'r', '', '', 'weur'],
        doubles: [2],
        indexes: ['api'],
      },
    ],
    dropped: 0,
  });
});

test('of more than 250, the largest are kept and the others counted', () => {
  const counters = Array.from(
    { length: 253 },
    (_, at): CounterEntry => ['decisions_total', { ...decision, policy: `p${at}` }, at + 1],
  );
  const { points, dropped } = pointsOf(batch({ counters }));
  expect([points.length, dropped]).toEqual([250, 3]);
  expect(Math.min(...points.flatMap(({ doubles }) => doubles))).toBe(4);
  expect(pointsOf(batch({ counters: counters.slice(0, 250) }))).toMatchObject({ dropped: 0 });
});

test.each([
  ['a'.repeat(97), 'a'.repeat(96)],
  ['ä'.repeat(60), 'ä'.repeat(48)],
  [`${'a'.repeat(95)}ä`, 'a'.repeat(95)],
  [`${'a'.repeat(93)}😀`, 'a'.repeat(93)],
  [`${'a'.repeat(92)}😀`, `${'a'.repeat(92)}😀`],
])('the index of %s is as much of it as 96 bytes hold', (domain, index) => {
  const counters: CounterEntry[] = [['requests_total', { ...request, domain }, 1]];
  const [point] = pointsOf(batch({ counters })).points;
  expect(point?.indexes).toEqual([index]);
  expect(point?.blobs[1]).toBe(domain);
});
