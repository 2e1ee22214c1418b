/** What an isolate remembers of its slots at one owner, and what it still has to tell: bounded, and nothing is lost uncounted. */
import { describe, expect, test } from 'vitest';
import { Corrections } from '../../src/engine/corrections.ts';
import { HeldSlots } from '../../src/engine/slots.ts';
import { limitOf } from './rules.ts';

const LIFE_MS = 30_000;
const counters = [{ id: 'slots', limit: limitOf({ quota: 5, algorithm: 'concurrency', windowMs: LIFE_MS }) }];

function start() {
  const lost: number[] = [];
  const slots = new HeldSlots((count) => lost.push(count));
  const words = (nowMs: number) =>
    slots.due(nowMs).map(({ id, isHeld }) => `${id} ${isHeld ? 'held' : 'free'}`);
  return { slots, lost, words };
}

describe('slots', () => {
  test('are renewed every third of their life, counted from when the owner last heard', () => {
    const { slots, words } = start();
    expect(slots.hold({ id: 'a', counters, takenMs: 0 })).toBe(LIFE_MS / 3);
    expect([words(9_999), words(10_000)]).toEqual([[], ['a held']]);
    slots.acknowledged(slots.due(10_000), 10_000);
    expect([words(19_999), words(20_000)]).toEqual([[], ['a held']]);
  });

  test('that no owner knows of are told with the next message', () => {
    const { slots, words } = start();
    slots.hold({ id: 'a', counters });
    expect(words(0)).toEqual(['a held']);
  });

  test('are told free until that is acknowledged, or the owner has freed them by itself', () => {
    const { slots, lost, words } = start();
    slots.hold({ id: 'a', counters, takenMs: 0 });
    slots.free('a', counters, 1_000);
    expect(words(1_000)).toEqual(['a free']);
    expect(words(1_000 + LIFE_MS - 1)).toEqual(['a free']);
    expect([words(1_000 + LIFE_MS), lost]).toEqual([[], [1]]);
  });

  test('that no owner was ever told of are gone without a word', () => {
    const { slots, words } = start();
    slots.hold({ id: 'a', counters });
    slots.free('a', counters, 0);
    expect([words(0), slots.size, slots.live('slots')]).toEqual([[], 0, 0]);
  });

  test('a renewal that is acknowledged late does not bring a slot back', () => {
    const { slots, words } = start();
    slots.hold({ id: 'a', counters });
    const renewal = slots.due(0);
    slots.free('a', counters, 1);
    slots.acknowledged(renewal, 0);
    expect([words(2), slots.live('slots')]).toEqual([['a free'], 0]);
  });

  test('are counted by counter', () => {
    const { slots } = start();
    slots.hold({ id: 'a', counters, takenMs: 0 });
    slots.hold({ id: 'b', counters, takenMs: 0 });
    slots.free('a', counters, 0);
    slots.free('a', counters, 0);
    expect([slots.live('slots'), slots.live('others')]).toEqual([1, 0]);
  });

  test('fill one message after the other', () => {
    const { slots } = start();
    for (let request = 0; request < 600; request += 1) slots.hold({ id: `request ${request}`, counters });
    const told = new Set<string>();
    for (let message = 0; message < 3; message += 1) {
      const notices = slots.due(0);
      expect(notices.length).toBeLessThanOrEqual(256);
      for (const { id } of notices) told.add(id);
      slots.acknowledged(notices, 0);
    }
    expect([told.size, slots.due(0)]).toEqual([600, []]);
  });

  test('are at most 16,384 held and as many free; the oldest are left to end by themselves, and counted', () => {
    const { slots, lost } = start();
    for (let request = 0; request < 16_400; request += 1)
      slots.hold({ id: `request ${request}`, counters, takenMs: 0 });
    expect([slots.size, slots.live('slots'), lost.length]).toEqual([16_384, 16_384, 16]);
    for (let request = 0; request < 16_400; request += 1) slots.free(`request ${request}`, counters, 0);
    expect([slots.size, slots.live('slots'), lost.length]).toEqual([16_384, 0, 32]);
  });
});

describe('corrections', () => {
  const correction = (id: string) => ({ id, units: 1, counters });

  test('are told until acknowledged, and acknowledged once', () => {
    const corrections = new Corrections(() => {});
    corrections.add(correction('a'), 0);
    const told = corrections.due(1);
    expect(corrections.due(60_000)).toEqual(told);
    expect([corrections.acknowledged(told).length, corrections.acknowledged(told).length]).toEqual([1, 0]);
    expect([corrections.due(60_000), corrections.size]).toEqual([[], 0]);
  });

  test('are at most 64 a message and 1,024 in all, for five minutes; what is lost is counted', () => {
    let lost = 0;
    const corrections = new Corrections((count) => {
      lost += count;
    });
    for (let request = 0; request < 1_030; request += 1) corrections.add(correction(`request ${request}`), 0);
    expect([corrections.due(0).length, corrections.size, lost]).toEqual([64, 1_024, 6]);
    const isUntold = (nowMs: number) => corrections.isUntold('request 1029', nowMs);
    expect([isUntold(300_000), isUntold(300_001), lost]).toEqual([true, false, 1_030]);
  });
});
