/**
 * From the isolate to the hub: whatever becomes of messages, everything is counted exactly once; and whatever a message holds, the hub
 * neither fails nor miscounts what others report.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { BATCH_FORMAT, type MetricsBatch } from '../../src/telemetry/batch.ts';
import { type MetricName, REPORTED } from '../../src/telemetry/catalogue.ts';
import { Hub } from '../../src/telemetry/hub.ts';
import { Metrics } from '../../src/telemetry/metrics.ts';
import { calls, NOW_MS } from './batches.ts';
import { sampled, totalOf } from './scrape.ts';

/** Few enough that most of what is counted overflows. */
const SERIES_MAX = 3;
const ISOLATES = 3;

const event = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('count' as const),
      policy: fc.nat({ max: 6 }),
      amount: fc.nat({ max: 50 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('observe' as const), eighths: fc.nat({ max: 24 }) }),
  },
  /** A message is sent; it may be delivered and its answer lost, or not be delivered at all. */
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      isDelivered: fc.boolean(),
      isAnswered: fc.boolean(),
    }),
  },
  /** An old message comes again, out of turn. */
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('again' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('restart' as const) }) },
);

const script = fc.array(fc.tuple(fc.nat({ max: ISOLATES - 1 }), event), { size: 'medium', maxLength: 80 });

test('what was counted is what the hub has, once all is delivered at last', () => {
  fc.assert(
    fc.property(script, (events) => {
      let hub = new Hub();
      const isolates = Array.from(
        { length: ISOLATES },
        (_, at) => new Metrics({ isolate: `isolate ${at}`, region: 'weur', seriesMax: SERIES_MAX }),
      );
      const sent: MetricsBatch[] = [];
      const counted = { decisions: 0, observations: 0, seconds: 0 };
      for (const [at, happens] of events) {
        const isolate = isolates[at]!;
        if (happens.kind === 'count') {
          counted.decisions += happens.amount;
          const labels = {
            domain: 'api',
            policy: `p${happens.policy}`,
            rule: 'r',
            outcome: 'allowed',
            source: 'owner',
          };
          isolate.count('decisions_total', labels, happens.amount);
        } else if (happens.kind === 'observe') {
          // Eighths are summed without rounding.
          counted.observations += 1;
          counted.seconds += happens.eighths / 8;
          isolate.observe('owner_answer_seconds', {}, happens.eighths / 8);
        } else if (happens.kind === 'send') {
          const batch = isolate.take();
          if (batch === undefined) continue;
          // What travels is a copy of this moment, so content that changes under its number would show.
          sent.push(structuredClone(batch));
          if (!happens.isDelivered) continue;
          const { acknowledged } = hub.receive(structuredClone(batch), NOW_MS);
          if (happens.isAnswered) isolate.acknowledged(acknowledged);
        } else if (happens.kind === 'again') {
          if (sent.length > 0) hub.receive(sent[happens.which % sent.length], NOW_MS);
        } else {
          hub = new Hub(structuredClone(hub.stored()));
        }
      }
      for (const isolate of isolates)
        for (let batch = isolate.take(); batch !== undefined; batch = isolate.take())
          isolate.acknowledged(hub.receive(batch, NOW_MS).acknowledged);
      for (const batch of sent) hub.receive(batch, NOW_MS);
      const text = hub.text(NOW_MS);
      expect({
        decisions: totalOf(text, 'decisions_total'),
        observations: totalOf(text, 'owner_answer_seconds_count'),
        seconds: totalOf(text, 'owner_answer_seconds_sum'),
      }).toEqual(counted);
    }),
    { numRuns: 300 },
  );
});

const name = fc.oneof(fc.constantFrom(...(Object.keys(REPORTED) as MetricName[])), fc.string());
const labels = fc.oneof(
  fc.dictionary(
    fc.constantFrom('region', 'domain', 'policy', 'result', '__proto__'),
    fc.string({ unit: 'binary' }),
  ),
  fc.anything(),
);
const amount = fc.oneof(fc.double(), fc.nat(), fc.maxSafeInteger(), fc.anything());
const entry = fc.oneof(
  fc.tuple(name, labels, amount),
  fc.tuple(name, labels, fc.oneof(fc.array(amount, { minLength: 12, maxLength: 12 }), fc.anything()), amount),
  fc.anything(),
);
const entries = fc.oneof({ weight: 5, arbitrary: fc.array(entry) }, { weight: 1, arbitrary: fc.anything() });
const anyBatch = fc.oneof(
  fc.record({
    format: fc.oneof(
      { weight: 9, arbitrary: fc.constant(BATCH_FORMAT) },
      { weight: 1, arbitrary: fc.anything() },
    ),
    isolate: fc.oneof(fc.constantFrom('a', 'b'), fc.string(), fc.anything()),
    region: fc.oneof(fc.string({ unit: 'binary' }), fc.anything()),
    number: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.anything()),
    counters: entries,
    histograms: entries,
    gauges: entries,
  }),
  fc.anything(),
);

test('whatever is received, the hub answers, publishes what can be parsed, can be restored, and counts others right', () => {
  fc.assert(
    fc.property(fc.array(anyBatch, { maxLength: 20 }), (received) => {
      let hub = new Hub();
      for (const [at, batch] of received.entries()) {
        expect(Number.isSafeInteger(hub.receive(batch, NOW_MS).acknowledged)).toBe(true);
        hub.receive(calls(at + 1, 1, 'an honest isolate'), NOW_MS);
        const restored = new Hub(JSON.parse(JSON.stringify(hub.stored())));
        expect(restored.text(NOW_MS)).toBe(hub.text(NOW_MS));
        hub = restored;
      }
      const before = sampled(hub.text(NOW_MS), 'owner_calls_total', { region: 'weur' }) ?? 0;
      expect(before).toBeGreaterThanOrEqual(received.length);
      hub.receive(calls(received.length + 1, 1, 'an honest isolate'), NOW_MS);
      expect(sampled(hub.text(NOW_MS), 'owner_calls_total', { region: 'weur' })).toBe(before + 1);
    }),
    { numRuns: 500 },
  );
});
