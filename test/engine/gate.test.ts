import { expect, test } from 'vitest';
import { winner } from './rules.ts';
import { World } from './world.ts';

test('smoke', async () => {
  const world = new World();
  const isolate = world.isolate();
  const rule = winner({ quota: 5 });
  const verdicts = [];
  for (let i = 0; i < 7; i += 1) verdicts.push(await isolate.ask([rule]));
  expect(verdicts.map((v) => [v.outcome, v.source, v.tookMs])).toEqual([]);
});
