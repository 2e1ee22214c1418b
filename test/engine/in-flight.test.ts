import { expect, test } from 'vitest';
import { InFlight } from '../../src/engine/in-flight.ts';

test('counts what has begun and not ended', () => {
  const inFlight = new InFlight();
  inFlight.began(0);
  inFlight.began(10);
  inFlight.ended();
  expect(inFlight.count(20)).toBe(1);
});

test('is void two seconds after the last beginning: the platform stops requests without a word', () => {
  const inFlight = new InFlight();
  for (let at = 0; at < 64; at += 1) inFlight.began(at);
  expect(inFlight.count(2_063)).toBe(64);
  expect(inFlight.count(2_064)).toBe(0);
  inFlight.began(2_065);
  expect(inFlight.count(2_065)).toBe(1);
});

test('never goes below 0 when one that was void ends after all', () => {
  const inFlight = new InFlight();
  inFlight.began(0);
  expect(inFlight.count(5_000)).toBe(0);
  inFlight.ended();
  inFlight.began(5_000);
  expect(inFlight.count(5_000)).toBe(1);
});
