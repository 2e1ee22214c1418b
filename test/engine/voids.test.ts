import { describe, expect, test } from 'vitest';
import { Voids } from '../../src/engine/voids.ts';
import { answers } from './network.ts';
import { HOUR_MS, winner } from './rules.ts';
import { World } from './world.ts';

function voids() {
  const lost: number[] = [];
  return { voids: new Voids((count) => lost.push(count)), lost };
}

describe('voids', () => {
  test('are told until a reply says that they were heard', () => {
    const { voids: all } = voids();
    all.add('a', 'first life', 0);
    all.add('b', undefined, 0);
    expect([all.due(1), all.due(2)]).toEqual([
      ['a', 'b'],
      ['a', 'b'],
    ]);
    all.acknowledged(['a'], 'first life');
    expect(all.due(3)).toEqual(['b']);
  });

  test('are given up when their owner has forgotten the question: a charge that stays is counted', () => {
    const { voids: all, lost } = voids();
    all.add('charged', 'first life', 0);
    all.add('perhaps charged', undefined, 0);
    expect(all.due(15_000)).toHaveLength(2);
    expect(all.due(15_001)).toEqual([]);
    expect(lost).toEqual([1]);
  });

  test('are at most 1,024, and the oldest is given up', () => {
    const { voids: all, lost } = voids();
    for (let at = 0; at < 1_030; at += 1) all.add(`q${at}`, 'first life', 0);
    expect(all.due(0)).toHaveLength(1_024);
    expect(all.due(0)[0]).toBe('q6');
    expect(lost).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test('one that turns out to have been charged is kept from then on, and holds up none that is older', () => {
    const { voids: all, lost } = voids();
    all.add('q', undefined, 0);
    all.add('older', undefined, 0);
    all.add('q', 'first life', 10_000);
    expect(all.due(16_000)).toEqual(['q']);
    expect(all.due(25_001)).toEqual([]);
    expect(lost).toEqual([1]);
  });

  test('a charge is lost when another incarnation than the one that made it is told', () => {
    const { voids: all, lost } = voids();
    all.add('charged before', 'first life', 0);
    all.add('perhaps charged', undefined, 0);
    all.add('charged since', 'second life', 0);
    all.acknowledged(['charged before', 'perhaps charged', 'charged since', 'unknown'], 'second life');
    expect(lost).toEqual([1]);
    expect(all.due(1)).toEqual([]);
    all.acknowledged(['charged before'], 'second life');
    expect(lost).toEqual([1]);
  });
});

test.each([
  ['in time', 20, 0],
  ['late', 400, 0],
  ['in time, by an owner that is evicted then', 20, 1],
  ['late, by an owner that is evicted then', 400, 1],
])('a charge of a denied request, answered %s, is given back or counted as lost', async (_, backMs, lost) => {
  const world = new World();
  const isolate = world.isolate();
  const charged = winner({ quota: 10, windowMs: HOUR_MS, policy: 'charged', owner: 'charged' });
  const denies = winner({ quota: 1, windowMs: HOUR_MS, policy: 'denies', owner: 'denies' });
  await isolate.ask([charged]);
  await world.isolate().ask([denies]);
  world.network = ({ owner, call }) => {
    if (call.giveBacks !== undefined && lost === 1) world.owner(owner).restart();
    return owner === 'charged' ? answers({ backMs }) : answers({ thereMs: 50 });
  };
  expect((await isolate.ask([charged, denies])).outcome).toBe('denied');
  await world.time.runOut();
  expect([world.counted('give_back'), world.counted('give_back_lost')]).toEqual([1, lost]);
});
