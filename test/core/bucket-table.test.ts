/** The packed table, checked against plain token buckets in a `Map`, and where the two may differ: displacement. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { BucketTable } from '../../src/core/bucket-table.ts';
import type { Decision } from '../../src/core/decision.ts';
import { tokenBucket } from '../../src/core/token-bucket.ts';
import { HOUR_MS, limitOf, MINUTE_MS } from './subject.ts';

const SEED = 0x5eed;
const LIMIT = limitOf('token_bucket', 10, MINUTE_MS);
const UNIT_MS = MINUTE_MS / 10;

/** Long enough for a hash to be built from a rope, as keys are that a request puts together. */
function keyOf(number: number): string {
  return `remote_address:2001:db8:0:${10_000_000 + number}::/64`;
}

/** What the table is meant to be, with all the room in the world. */
class Model {
  readonly #states = new Map<string, number | undefined>();

  decide(key: string, cost: number, nowMs: number): Decision {
    const { decision, state } = tokenBucket.decide(LIMIT, this.#states.get(key), cost, nowMs);
    this.#states.set(key, state);
    return decision;
  }

  charge(key: string, cost: number, nowMs: number): void {
    this.#states.set(key, tokenBucket.charge(LIMIT, this.#states.get(key), cost, nowMs));
  }

  giveBack(key: string, cost: number, nowMs: number): void {
    const past = { cost, chargedAtMs: nowMs };
    this.#states.set(key, tokenBucket.giveBack(LIMIT, this.#states.get(key), past, nowMs));
  }

  set(key: string, units: number, nowMs: number): void {
    this.#states.set(key, tokenBucket.charge(LIMIT, undefined, LIMIT.burst - units, nowMs));
  }

  available(key: string, nowMs: number): number {
    return tokenBucket.available(LIMIT, this.#states.get(key), nowMs);
  }
}

describe('with room for every key', () => {
  const operations = fc.array(
    fc.record({
      deed: fc.constantFrom('decide', 'decide', 'decide', 'charge', 'giveBack', 'set'),
      key: fc.oneof(fc.integer({ min: 0, max: 40 }).map(keyOf), fc.string()),
      units: fc.integer({ min: 0, max: 11 }),
      gapMs: fc.constantFrom(0, 0, 1, 500, UNIT_MS, MINUTE_MS),
    }),
    { maxLength: 100 },
  );

  test('it decides as a token bucket for each key does', () => {
    fc.assert(
      fc.property(operations, fc.integer(), (steps, seed) => {
        const table = new BucketTable({ slots: 400, seed });
        const model = new Model();
        let nowMs = 0;
        for (const { deed, key, units, gapMs } of steps) {
          nowMs += gapMs;
          if (deed === 'decide') {
            expect(table.decide(key, LIMIT, units, nowMs)).toEqual(model.decide(key, units, nowMs));
          } else if (deed === 'charge') {
            table.charge(key, LIMIT, units, nowMs);
            model.charge(key, units, nowMs);
          } else if (deed === 'giveBack') {
            table.giveBack(key, LIMIT, { cost: units, chargedAtMs: nowMs }, nowMs);
            model.giveBack(key, units, nowMs);
          } else {
            table.set(key, LIMIT, units, nowMs);
            model.set(key, units, nowMs);
          }
          expect(table.available(key, LIMIT, nowMs)).toBe(model.available(key, nowMs));
        }
        expect(table.displaced).toBe(0);
      }),
    );
  });

  test('a bucket can start part-filled, and is there until it is full', () => {
    const table = new BucketTable({ slots: 100, seed: SEED });
    expect(table.has('a', 0)).toBe(false);
    table.set('a', LIMIT, 3, 0);
    expect(table.has('a', 0)).toBe(true);
    expect(table.has('b', 0)).toBe(false);
    expect(table.available('a', LIMIT, 0)).toBe(3);
    expect(table.decide('a', LIMIT, 4, 0)).toEqual({ outcome: 'denied', retryAfterMs: UNIT_MS });
    expect(table.has('a', 7 * UNIT_MS)).toBe(false);
  });

  test('asking about a key, or refusing it, takes no slot', () => {
    const table = new BucketTable({ slots: 1, seed: SEED });
    table.decide('tenant', LIMIT, 1, 0);
    expect(table.decide('b', LIMIT, 11, 0).outcome).toBe('impossible');
    expect(table.decide('c', LIMIT, 0, 0).outcome).toBe('allowed');
    expect(table.available('d', LIMIT, 0)).toBe(10);
    expect(table.available('tenant', LIMIT, 0)).toBe(9);
  });
});

describe('with less room than keys', () => {
  test('a bucket that is full again leaves its slot to others, and no one is displaced', () => {
    const table = new BucketTable({ slots: 50, seed: SEED });
    for (let round = 0; round < 20; round += 1) {
      for (let i = 0; i < 50; i += 1) table.decide(keyOf(round * 50 + i), LIMIT, 1, round * UNIT_MS);
    }
    expect(table.displaced).toBe(0);
  });

  test('when none is, the one nearest to full gives way', () => {
    const table = new BucketTable({ slots: 8, seed: SEED });
    for (let i = 0; i < 8; i += 1) table.charge(keyOf(i), LIMIT, 10 - i, 0);
    table.decide('newcomer', LIMIT, 1, 0);
    expect(table.displaced).toBe(1);
    expect(table.available('newcomer', LIMIT, 0)).toBe(9);
    expect(table.available(keyOf(7), LIMIT, 0)).toBe(10);
    for (let i = 0; i < 7; i += 1) expect(table.available(keyOf(i), LIMIT, 0)).toBe(i);
  });

  test('a flood of new keys does not free one that is deep in debt', () => {
    const table = new BucketTable({ slots: 256, seed: SEED });
    table.charge('debtor', LIMIT, 20, 0);
    for (let i = 0; i < 10_000; i += 1) table.decide(keyOf(i), LIMIT, 1, 0);
    expect(table.displaced).toBeGreaterThan(9000);
    expect(table.available('debtor', LIMIT, 0)).toBe(-10);
  });
});

describe('fingerprints', () => {
  test('E03 keys that differ in one character, or in case, or in what a decoder would merge, stay apart', () => {
    const keys = [
      '',
      '\0',
      '\0\0',
      'a',
      'A',
      'a ',
      "john'doe",
      'é',
      'e\u0301',
      '\ud800',
      '\ud801',
      '\u0141',
      'A\u8000',
      '\u8041\u8000',
    ];
    const table = new BucketTable({ slots: 1000, seed: SEED });
    for (const key of keys) table.charge(key, LIMIT, 1, 0);
    for (const key of keys) expect(table.available(key, LIMIT, 0), JSON.stringify(key)).toBe(9);
  });

  test('neighbours differ from seed to seed', () => {
    const survivors = [1, 2].map((seed) => {
      const table = new BucketTable({ slots: 640, seed });
      for (let i = 0; i < 2000; i += 1) table.decide(keyOf(i), LIMIT, 1, 0);
      return Array.from({ length: 2000 }, (_, i) => table.has(keyOf(i), 0)).join();
    });
    expect(survivors[0]).not.toBe(survivors[1]);
  });

  test('a million live keys take 24 bytes each, share no bucket, and hardly one is displaced', () => {
    const keys = 1_000_000;
    const hourly = limitOf('token_bucket', 10, HOUR_MS);
    const table = new BucketTable({ slots: 1.5 * keys, seed: SEED });
    let alreadyKnown = 0;
    for (let i = 0; i < keys; i += 1) {
      if (table.has(keyOf(i), 0)) alreadyKnown += 1;
      table.charge(keyOf(i), hourly, 1, 0);
    }
    expect(alreadyKnown).toBe(0);
    expect(table.byteLength / keys).toBeLessThanOrEqual(24);
    expect(table.displaced).toBeLessThanOrEqual(keys / 20_000);
  });
});
