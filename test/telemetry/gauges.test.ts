/** Gauges: what is published of what live isolates report. */
import { describe, expect, test } from 'vitest';
import type { GaugeEntry } from '../../src/telemetry/batch.ts';
import { Hub } from '../../src/telemetry/hub.ts';
import { SILENT_MS } from '../../src/telemetry/isolates.ts';
import { batch, NOW_MS } from './batches.ts';
import { sampled, scrape } from './scrape.ts';

const LABELS = { domain: 'api', region: 'weur' };

function activated(activation: number, atMs: number): GaugeEntry[] {
  return [
    ['activation', LABELS, activation],
    ['activated_at_ms', LABELS, atMs],
  ];
}

/** A hub that heard the gauges of each of these isolates. */
function hubOf(isolates: Readonly<Record<string, readonly GaugeEntry[]>>): Hub {
  const hub = new Hub();
  for (const [isolate, gauges] of Object.entries(isolates)) hub.receive(batch({ isolate, gauges }), NOW_MS);
  return hub;
}

function activationsIn(hub: Hub, nowMs = NOW_MS): (number | undefined)[] {
  const text = hub.text(nowMs);
  return [
    sampled(text, 'activation', { ...LABELS, bound: 'oldest' }),
    sampled(text, 'activation', { ...LABELS, bound: 'newest' }),
    sampled(text, 'activation_age_seconds', LABELS),
  ];
}

describe('activations', () => {
  test.each([
    ['one', 'two', 'three'],
    ['two', 'three', 'one'],
    ['three', 'one', 'two'],
    ['three', 'two', 'one'],
  ] as const)(
    'are published as the oldest and the newest, with the age of the newest (%s, %s, %s)',
    (...order) => {
      const reported = {
        one: activated(4, NOW_MS - 60_000),
        two: activated(6, NOW_MS - 1_500),
        // Made by a clock that is ahead: the newest is the one of the highest number, not of the latest time.
        three: activated(5, NOW_MS - 500),
      };
      const hub = hubOf(Object.fromEntries(order.map((isolate) => [isolate, reported[isolate]])));
      expect(activationsIn(hub)).toEqual([4, 6, 1.5]);
    },
  );

  test('that were bundled have no age', () => {
    expect(activationsIn(hubOf({ one: activated(0, 0) }))).toEqual([0, 0, undefined]);
    expect(activationsIn(hubOf({ one: activated(0, 0), two: activated(1, NOW_MS - 2_000) }))).toEqual([
      0, 1, 2,
    ]);
    expect(activationsIn(hubOf({ one: activated(1, NOW_MS - 2_000), two: activated(2, 0) }))).toEqual([
      1,
      2,
      undefined,
    ]);
  });

  test('that one isolate cannot date are dated by another', () => {
    for (const isolates of [
      { one: activated(3, 0), two: activated(3, NOW_MS - 4_000) },
      { one: activated(3, NOW_MS - 4_000), two: activated(3, 0) },
    ])
      expect(activationsIn(hubOf(isolates))).toEqual([3, 3, 4]);
  });

  test('that another clock made in the future are no younger than now', () => {
    expect(activationsIn(hubOf({ one: activated(3, NOW_MS + 5_000) }))).toEqual([3, 3, 0]);
  });

  test('of domains and regions stay apart', () => {
    const hub = hubOf({
      one: [
        ['activation', LABELS, 1],
        ['activation', { ...LABELS, domain: 'admin' }, 2],
      ],
      two: [['activation', { ...LABELS, region: 'oc' }, 3]],
    });
    const published = scrape(hub.text(NOW_MS)).filter(({ name }) => name === 'edge_limiter_activation');
    expect(published.map(({ value }) => value)).toEqual([1, 1, 2, 2, 3, 3]);
  });
});

describe('other gauges', () => {
  test('are summed over isolates, and isolates are counted, for each region', () => {
    const hub = new Hub();
    for (const [isolate, region, open, unreachable] of [
      ['one', 'weur', 2, 1],
      ['two', 'weur', 3, 1],
      ['three', 'oc', 0, 0],
    ] as const) {
      const gauges: GaugeEntry[] = [
        ['open_breakers', { region }, open],
        ['all_owners_unreachable', { region }, unreachable],
      ];
      hub.receive(batch({ isolate, region, gauges }), NOW_MS);
    }
    const text = hub.text(NOW_MS);
    const published = ['open_breakers', 'all_owners_unreachable', 'isolates'].map((name) =>
      ['weur', 'oc'].map((region) => sampled(text, name, { region })),
    );
    expect(published).toEqual([
      [5, 0],
      [2, 0],
      [2, 1],
    ]);
  });

  test('of an isolate are those of its newest batch', () => {
    const hub = new Hub();
    const send = (number: number, open: number) =>
      hub.receive(batch({ number, gauges: [['open_breakers', { region: 'weur' }, open]] }), NOW_MS);
    send(2, 5);
    send(1, 9);
    expect(sampled(hub.text(NOW_MS), 'open_breakers')).toBe(5);
    send(3, 0);
    expect(sampled(hub.text(NOW_MS), 'open_breakers')).toBe(0);
  });
});

describe('an isolate that is silent', () => {
  test('for two minutes is left out, and not a moment before', () => {
    const hub = hubOf({ one: activated(1, 0) });
    hub.receive(batch({ isolate: 'later', gauges: activated(2, 0) }), NOW_MS + 1);
    expect(activationsIn(hub, NOW_MS + SILENT_MS)).toEqual([1, 2, undefined]);
    expect(activationsIn(hub, NOW_MS + SILENT_MS + 1)).toEqual([2, 2, undefined]);
    expect(sampled(hub.text(NOW_MS + SILENT_MS + 1), 'isolates')).toBe(1);
    const text = hub.text(NOW_MS + SILENT_MS + 2);
    expect(text).not.toMatch(/edge_limiter_(activation|isolates)/);
  });

  test('is heard by any batch, a repeated one too', () => {
    const hub = hubOf({ one: activated(1, 0), two: activated(2, 0) });
    hub.receive(batch({ isolate: 'one', gauges: activated(1, 0) }), NOW_MS + 100_000);
    expect(activationsIn(hub, NOW_MS + SILENT_MS + 1)).toEqual([1, 1, undefined]);
  });

  test('comes back with its next batch', () => {
    const hub = hubOf({ one: activated(1, 0) });
    const laterMs = NOW_MS + 10 * SILENT_MS;
    expect(activationsIn(hub, laterMs)).toEqual([undefined, undefined, undefined]);
    hub.receive(batch({ number: 2, gauges: activated(2, 0) }), laterMs);
    expect(activationsIn(hub, laterMs)).toEqual([2, 2, undefined]);
  });

  test('is as silent after the hub was restored', () => {
    const hub = new Hub(hubOf({ one: activated(1, 0) }).stored());
    expect(activationsIn(hub, NOW_MS + SILENT_MS)).toEqual([1, 1, undefined]);
    expect(activationsIn(hub, NOW_MS + SILENT_MS + 1)).toEqual([undefined, undefined, undefined]);
  });
});
