import { describe, expect, test } from 'vitest';
import { Voids } from '../../src/engine/voids.ts';

function voids() {
  const lost: number[] = [];
  return { voids: new Voids((count) => lost.push(count)), lost };
}

describe('voids', () => {
  test('are told until a reply says that they were heard', () => {
    const { voids: all } = voids();
    all.add('a', { isCharged: true }, 0);
    all.add('b', { isCharged: false }, 0);
    expect([all.due(1), all.due(2)]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    all.acknowledged(['a']);
    expect(all.due(3)).toEqual(['b']);
  });

  test('are given up when their owner has forgotten the question: a charge that stays is counted', () => {
    const { voids: all, lost } = voids();
    all.add('charged', { isCharged: true }, 0);
    all.add('perhaps charged', { isCharged: false }, 0);
    expect(all.due(15_000)).toHaveLength(2);
    expect(all.due(15_001)).toEqual([]);
    expect(lost).toEqual([1]);
  });

  test('are at most 1,024, and the oldest is given up', () => {
    const { voids: all, lost } = voids();
    for (let at = 0; at < 1_030; at += 1) all.add(`q${at}`, { isCharged: true }, 0);
    expect(all.due(0)).toHaveLength(1_024);
    expect(all.due(0)[0]).toBe('q6');
    expect(lost).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test('one that turns out to have been charged is kept from then on', () => {
    const { voids: all, lost } = voids();
    all.add('q', { isCharged: false }, 0);
    all.add('q', { isCharged: true }, 10_000);
    expect(all.due(16_000)).toEqual(['q']);
    expect(all.due(25_001)).toEqual([]);
    expect(lost).toEqual([1]);
  });
});
