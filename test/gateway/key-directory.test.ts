/** The key directory in an isolate: bounded in time and memory, and unanswered is not unknown. */
import { describe, expect, test } from 'vitest';
import { KeyDirectory, type LookupResult } from '../../src/gateway/key-directory.ts';
import type { Caller } from '../../src/policy/caller.ts';
import type { KeyEntry } from '../../src/policy/directory.ts';

const TTL_MS = 30_000;

function world() {
  const entries = new Map<string, KeyEntry>();
  const asked: string[] = [];
  const results: LookupResult[] = [];
  const background: Promise<unknown>[] = [];
  let nowMs = 1_000_000;
  let isDown = false;
  let answers: Promise<void> = Promise.resolve();
  const directory = new KeyDirectory({
    nowMs: () => nowMs,
    wallMs: () => nowMs,
    sleep: async (ms) => {
      const untilMs = nowMs + ms;
      await new Promise((resolve) => setImmediate(resolve));
      nowMs = Math.max(nowMs, untilMs);
    },
    fetch: async (hash) => {
      asked.push(hash);
      await answers;
      if (isDown) throw new Error('down');
      return entries.get(hash);
    },
    within: (promise) => promise,
    count: (result) => results.push(result),
    ttlMs: TTL_MS,
    seed: 1,
  });
  return {
    directory,
    entries,
    asked,
    results,
    pass: (ms: number) => {
      nowMs += ms;
    },
    /** Questions are left without an answer until the function that this returns is called. */
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>();
      answers = promise;
      return resolve;
    },
    down: (is: boolean) => {
      isDown = is;
    },
    find: async (hash: string, address = '192.0.2.1'): Promise<Caller> =>
      directory.find(
        hash,
        () => address,
        (work) => background.push(work),
      ),
    settle: () => Promise.all(background.splice(0)),
    findNow: (hash: string) =>
      directory.find(
        hash,
        () => '192.0.2.1',
        (work) => background.push(work),
      ),
  };
}

describe('a key', () => {
  test('is asked about once, and then known without waiting', async () => {
    const { entries, asked, find, findNow } = world();
    entries.set('a', { tier: 'gold', org: 'acme', user: 'u', labels: { plan: 'x' } });
    const attributes = { tier: 'gold', org: 'acme', user: 'u', label_plan: 'x' };
    expect(await find('a')).toEqual({ kind: 'known', attributes });
    expect(findNow('a')).toEqual({ kind: 'known', attributes });
    expect(asked).toEqual(['a']);
  });

  test('that nobody has is remembered as well', async () => {
    const { asked, find, findNow } = world();
    expect(await find('b')).toEqual({ kind: 'unknown' });
    expect(findNow('b')).toEqual({ kind: 'unknown' });
    expect(asked).toHaveLength(1);
  });

  test.each([
    ['disabled', { tier: 'gold', disabled: true }],
    ['expired', { tier: 'gold', expiresAtMs: 1_000_000 }],
  ])('that is %s is as good as unknown', async (_, entry) => {
    const { entries, find } = world();
    entries.set('a', entry);
    expect(await find('a')).toEqual({ kind: 'unknown' });
  });

  test('expires while it is cached', async () => {
    const { entries, find, findNow, pass } = world();
    entries.set('a', { tier: 'gold', expiresAtMs: 1_005_000 });
    expect(await find('a')).toMatchObject({ kind: 'known' });
    pass(5_000);
    expect(findNow('a')).toEqual({ kind: 'unknown' });
  });

  test('that is in use is asked about beside its requests, and revoking it is in force within the time stated', async () => {
    const { entries, find, findNow, pass, settle, asked } = world();
    entries.set('a', { tier: 'gold' });
    await find('a');
    entries.delete('a');
    pass(TTL_MS / 2);
    expect(findNow('a')).toMatchObject({ kind: 'known' });
    await settle();
    expect(findNow('a')).toEqual({ kind: 'unknown' });
    expect(asked).toHaveLength(2);
  });

  test('that nobody used for so long is waited for again', async () => {
    const { entries, find, findNow, pass } = world();
    entries.set('a', { tier: 'gold' });
    await find('a');
    entries.delete('a');
    pass(TTL_MS);
    expect(findNow('a')).toBeInstanceOf(Promise);
    expect(await find('a')).toEqual({ kind: 'unknown' });
  });
});

describe('look-ups', () => {
  test('of unknown keys are capped per address; the key over the cap is unknown, and found ones cost nothing', async () => {
    const { entries, asked, find, results, pass } = world();
    for (let at = 0; at < 100; at += 1) entries.set(`good ${at}`, { tier: 'gold' });
    for (let at = 0; at < 100; at += 1) expect(await find(`good ${at}`)).toMatchObject({ kind: 'known' });
    for (let at = 0; at < 100; at += 1) expect(await find(`bad ${at}`)).toEqual({ kind: 'unknown' });
    expect(asked).toHaveLength(100 + 60);
    expect(results.filter((result) => result === 'capped')).toHaveLength(40);
    expect(await find('good 200', '192.0.2.2')).toEqual({ kind: 'unknown' });
    expect(asked).toHaveLength(161);
    pass(1_000);
    await find('bad again');
    expect(asked).toHaveLength(162);
  });

  test('of one key by many at once are one, whatever the cap says', async () => {
    const { entries, asked, find, hold, results } = world();
    entries.set('a', { tier: 'gold' });
    const answer = hold();
    const all = Array.from({ length: 300 }, () => find('a'));
    setImmediate(answer);
    expect(new Set((await Promise.all(all)).map(({ kind }) => kind))).toEqual(new Set(['known']));
    expect(asked).toEqual(['a']);
    expect(results).not.toContain('capped');
  });

  test('over the cap an entry in hand is not thrown away for being old', async () => {
    const { entries, find, pass } = world();
    entries.set('a', { tier: 'gold' });
    await find('a');
    for (let at = 0; at < 60; at += 1) await find(`bad ${at}`);
    pass(TTL_MS);
    for (let at = 0; at < 100; at += 1) await find(`worse ${at}`);
    expect(await find('a')).toMatchObject({ kind: 'known' });
  });

  test('hold no more than a bounded number of entries', async () => {
    const { asked, find } = world();
    for (let at = 0; at < 16_384 + 10; at += 1) await find(`k ${at}`, `10.0.${at >> 8}.${at & 255}`);
    const before = asked.length;
    await find(`k 16393`);
    expect(asked.length).toBe(before);
    await find('k 0', '192.0.2.9');
    expect(asked.length).toBe(before + 1);
  });
});

describe('while the directory is down', () => {
  test('a key that is not cached is unanswered, and one that is stays who it was, however old', async () => {
    const { entries, find, down, pass } = world();
    entries.set('a', { tier: 'gold' });
    await find('a');
    down(true);
    pass(10 * TTL_MS);
    expect(await find('a')).toMatchObject({ kind: 'known' });
    expect(await find('b')).toEqual({ kind: 'unanswered' });
  });

  test('one look-up a second waits for it, and all others do not', async () => {
    const { asked, find, down, pass } = world();
    down(true);
    for (let at = 0; at < 50; at += 1) expect(await find(`k ${at}`)).toEqual({ kind: 'unanswered' });
    expect(asked).toHaveLength(1);
    pass(1_000);
    await find('k');
    expect(asked).toHaveLength(2);
  });

  test('a caller that goes on showing its key stays unanswered, and an address that invents keys is unknown in the end', async () => {
    const { find, down } = world();
    down(true);
    for (let at = 0; at < 100; at += 1)
      expect(await find('mine', '192.0.2.7')).toEqual({ kind: 'unanswered' });
    const invented = [];
    for (let at = 0; at < 70; at += 1) invented.push((await find(`k ${at}`, '192.0.2.8')).kind);
    expect(invented.filter((kind) => kind === 'unanswered')).toHaveLength(60);
    expect(await find('mine', '192.0.2.8')).toEqual({ kind: 'unanswered' });
  });

  test('what is told of a key here is void when it changes', async () => {
    const { entries, directory, find, findNow } = world();
    await find('a');
    entries.set('a', { tier: 'gold' });
    directory.forget('a');
    expect(findNow('a')).toBeInstanceOf(Promise);
    expect(await find('a')).toMatchObject({ kind: 'known' });
  });
});
