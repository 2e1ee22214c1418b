import { expect, test } from 'vitest';
import { Time } from '../../scripts/sim/time.ts';

test('the earliest happens first, and of equal ones the one that was asked for first', async () => {
  const time = new Time();
  const happened: string[] = [];
  for (const [name, delayMs] of Object.entries({ late: 20, first: 10, second: 10, never: 30 })) {
    time.after(delayMs, () => happened.push(`${name} at ${time.elapsedMs}`));
  }
  await time.advance(25);
  expect(happened).toEqual(['first at 10', 'second at 10', 'late at 20']);
  expect([time.elapsedMs, time.pending]).toEqual([25, 1]);
});

test('what is cancelled never happens', async () => {
  const time = new Time();
  const cancel = time.after(1, () => expect.unreachable());
  cancel();
  await time.runOut();
  expect(time.elapsedMs).toBe(0);
});

test('all that follows from an event has happened before the next, however many turns it takes', async () => {
  const time = new Time();
  const happened: string[] = [];
  const follow = async () => {
    for (let turn = 0; turn < 50; turn += 1) await undefined;
    happened.push('followed');
  };
  for (let count = 0; count < 100; count += 1) {
    time.after(count < 50 ? 0 : count, () => {
      happened.push('event');
      void follow();
    });
  }
  await time.runOut();
  expect(happened).toEqual(Array.from({ length: 200 }, (_, at) => (at % 2 === 0 ? 'event' : 'followed')));
});

test('it passes until a promise has settled, and says when nothing can settle it', async () => {
  const time = new Time();
  const soon = new Promise<string>((resolve) => time.after(5, () => resolve('done')));
  time.after(50, () => {});
  expect([await time.settle(soon), time.elapsedMs]).toEqual(['done', 5]);
  await expect(time.settle(new Promise(() => {}))).rejects.toThrow('Nothing is left to happen');
});

test('an event that throws ends the passing of time', async () => {
  const time = new Time();
  time.after(1, () => {
    throw new Error('broken');
  });
  time.after(2, () => expect.unreachable());
  await expect(time.advance(10)).rejects.toThrow('broken');
});

test('what happens for ever is found out', async () => {
  const time = new Time();
  const again = () => {
    time.after(600_000, again);
  };
  again();
  await expect(time.runOut()).rejects.toThrow('things go on happening');
});
