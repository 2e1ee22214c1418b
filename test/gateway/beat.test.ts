/** The beat: at once when it is due, once at a time, and the last counts leave within an interval. */
import { expect, test } from 'vitest';
import { Time } from '../../scripts/sim/time.ts';
import { Beat } from '../../src/gateway/beat.ts';

const INTERVAL_MS = 10_000;

function world() {
  const time = new Time();
  const happened: string[] = [];
  let isNews = false;
  const note = (what: string) => async () => {
    happened.push(`${what} at ${time.elapsedMs}`);
    if (what === 'refresh') isNews = false;
  };
  const beat = new Beat({
    intervalMs: INTERVAL_MS,
    nowMs: () => time.elapsedMs,
    sleep: (ms) => new Promise((resolve) => void time.after(ms, resolve)),
    refresh: note('refresh'),
    flush: note('flush'),
    isNews: () => isNews,
  });
  return {
    time,
    happened,
    attend: () => beat.attend((work) => void work),
    news: () => {
      isNews = true;
    },
  };
}

test('the first request refreshes at once; an interval later what was counted goes out', async () => {
  const { time, happened, attend } = world();
  attend();
  await time.advance(1);
  expect(happened).toEqual(['refresh at 0']);
  attend();
  attend();
  await time.advance(INTERVAL_MS);
  expect(happened).toEqual(['refresh at 0', 'flush at 10000', 'refresh at 10000']);
  await time.advance(100 * INTERVAL_MS);
  expect(happened).toHaveLength(3);
});

test('under steady requests there is one refresh and one flush in each interval, and one refresh to begin with', async () => {
  const { time, happened, attend } = world();
  for (let at = 0; at < 1_000; at += 1) {
    attend();
    await time.advance(100);
  }
  expect(happened.filter((what) => what.startsWith('flush'))).toHaveLength(10);
  expect(happened.filter((what) => what.startsWith('refresh'))).toHaveLength(11);
});

test('after an idle time the next request refreshes at once', async () => {
  const { time, happened, attend } = world();
  attend();
  await time.advance(1_000_000);
  attend();
  await time.advance(1);
  expect(happened.at(-1)).toBe('refresh at 1000000');
});

test('news is fetched with the next request, and not more often than once a second', async () => {
  const { time, happened, attend, news } = world();
  attend();
  await time.advance(3_000);
  news();
  attend();
  await time.advance(1);
  expect(happened.at(-1)).toBe('refresh at 3000');
  for (let at = 0; at < 9; at += 1) {
    news();
    attend();
    await time.advance(100);
  }
  expect(happened).toHaveLength(2);
});

test('a beat that the platform cut short is taken up again', async () => {
  const time = new Time();
  let flushed = 0;
  const beat = new Beat({
    intervalMs: INTERVAL_MS,
    nowMs: () => time.elapsedMs,
    sleep: () => new Promise(() => {}),
    refresh: async () => {},
    flush: async () => {
      flushed += 1;
    },
    isNews: () => false,
  });
  let begun = 0;
  const attend = () =>
    beat.attend(() => {
      begun += 1;
    });
  attend();
  await time.advance(INTERVAL_MS);
  attend();
  expect(begun).toBe(1);
  await time.advance(INTERVAL_MS);
  attend();
  expect([begun, flushed]).toEqual([2, 0]);
});
