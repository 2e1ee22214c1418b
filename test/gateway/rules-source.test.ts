/** Rules reach an isolate beside its requests; whatever a source does, the last good ones stay. */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type RulesEvent, RulesSource, type RulesStore } from '../../src/gateway/rules-source.ts';
import { bundledSnapshot } from '../../src/gateway/snapshot.ts';
import { ACTIVATION_FORMAT } from '../../src/policy/activation.ts';
import type { Clamp } from '../../src/policy/clamp.ts';
import { rulesetFrom, withDescriptors } from '../policy/rules-from.ts';

const sha256 = async (text: string) => createHash('sha256').update(text).digest('hex');

function rules(quota: number) {
  const text = withDescriptors(`  - { key: user, rate_limit: { unit: day, requests_per_unit: ${quota} } }`);
  return rulesetFrom(text);
}

/** A store that answers what was put into it, until it is told to do worse. */
class Store implements RulesStore {
  activation_ = 0;
  revision = 0;
  clamps: readonly Clamp[] = [];
  hasKeys = false;
  quotas = new Map<number, number>();
  spoil: (text: string | null) => string | null | Promise<string | null> = (text) => text;
  heads = 0;

  put(quota: number): number {
    this.activation_ += 1;
    this.quotas.set(this.activation_, quota);
    return this.activation_;
  }

  async head(domain: string): Promise<string | null> {
    this.heads += 1;
    const { activation_: activation, revision, clamps, hasKeys } = this;
    return this.spoil(
      JSON.stringify({ format: ACTIVATION_FORMAT, domain, activation, revision, clamps, hasKeys }),
    );
  }

  async activation(domain: string, activation: number): Promise<string | null> {
    const quota = this.quotas.get(activation);
    if (quota === undefined) return null;
    const ruleset = JSON.stringify(rules(quota));
    const digest = await sha256(ruleset);
    return JSON.stringify({
      format: ACTIVATION_FORMAT,
      domain,
      activation,
      version: 1,
      activatedAtMs: 5,
      digest,
      ruleset,
    });
  }
}

function world(...stores: RulesStore[]) {
  const refused: string[] = [];
  const failed: string[] = [];
  const clamped: string[] = [];
  const events: RulesEvent[] = [];
  const source = new RulesSource(bundledSnapshot(rules(1)), {
    stores,
    seed: '',
    sha256,
    fetchMsMax: 1_000,
    within: (promise) =>
      Promise.race([
        promise,
        new Promise<never>((_, reject) => setImmediate(() => setImmediate(() => reject(new Error('late'))))),
      ]),
    onStoreFailed: () => failed.push('store'),
    onRefused: (reason) => refused.push(reason),
    onClampsChanged: () => clamped.push('clamps'),
    onChanged: (event) => events.push(event),
  });
  let nowMs = 0;
  const quota = () => source.snapshot.ruleset.rules[0]?.limit?.quota;
  const refresh = () => {
    nowMs += 1_000;
    return source.refresh({ nowMs, wallMs: nowMs });
  };
  return { source, refused, failed, clamped, events, quota, refresh };
}

describe('a healthy source', () => {
  test('L03 brings what was published, and the way back, each under a number of its own', async () => {
    const store = new Store();
    const { source, refresh, quota, refused, events } = world(store);
    await refresh();
    expect([quota(), source.snapshot.source]).toEqual([1, 'bundled']);
    store.put(5);
    await refresh();
    expect([quota(), source.snapshot.source, source.snapshot.version.activation]).toEqual([
      5,
      'published',
      1,
    ]);
    store.put(7);
    store.put(5);
    await refresh();
    expect([quota(), source.snapshot.version.activation]).toEqual([5, 3]);
    expect(refused).toEqual([]);
    expect(events.map(({ event }) => event)).toEqual(['rules_activated', 'rules_activated']);
  });

  test('of what is in force already changes nothing: the snapshot stays the same one', async () => {
    const store = new Store();
    const { source, refresh } = world(store);
    store.put(5);
    await refresh();
    const before = source.snapshot;
    await refresh();
    expect(source.snapshot).toBe(before);
  });

  test('is not asked twice at once, and is asked again for whoever came meanwhile', async () => {
    const store = new Store();
    const { source, refresh, refused } = world(store);
    store.put(5);
    await Promise.all([refresh(), refresh(), refresh()]);
    expect(store.heads).toBe(1);
    expect(source.isNews).toBe(true);
    await refresh();
    expect([source.isNews, store.heads, refused.length]).toEqual([false, 2, 0]);
  });
});

describe('a source that', () => {
  const SPOILT: readonly (readonly [string, Store['spoil'], string])[] = [
    ['is down', () => Promise.reject(new Error('down')), 'unreachable'],
    ['never answers', () => new Promise<never>(() => {}), 'unreachable'],
    ['is empty', () => null, 'missing'],
    ['is corrupt', (text) => `${text}`.slice(0, 40), 'unreadable'],
    [
      'is older than what is held',
      (text) => `${text}`.replace(/"activation":\d+/, '"activation":0'),
      'older',
    ],
    ['is another domain’s', (text) => `${text}`.replace('"domain":"test"', '"domain":"other"'), 'domain'],
    ['is of another format', (text) => `${text}`.replace('"format":1', '"format":9'), 'format'],
  ];

  test.each(SPOILT)(
    '%s keeps the last good rules, is counted each time and told once',
    async (_, spoil, reason) => {
      const store = new Store();
      const { refresh, quota, refused, events } = world(store);
      store.put(5);
      await refresh();
      store.put(9);
      store.spoil = spoil;
      await refresh();
      await refresh();
      expect(quota()).toBe(5);
      expect(refused).toEqual([reason, reason]);
      expect(events.slice(1)).toMatchObject([{ event: 'rules_source_failing', domain: 'test' }]);
      store.spoil = (text) => text;
      await refresh();
      expect(quota()).toBe(9);
      expect(events.slice(2).map(({ event }) => event)).toEqual([
        'rules_activated',
        'rules_source_recovered',
      ]);
    },
  );

  test('has lost the activation that its head names changes nothing', async () => {
    const store = new Store();
    const { refresh, quota, refused } = world(store);
    store.put(5);
    store.quotas.clear();
    await refresh();
    expect([quota(), refused]).toEqual([1, ['missing']]);
  });
});

describe('of two sources', () => {
  test('the second is asked when the first is down, or has nothing', async () => {
    for (const spoil of [SPOIL_DOWN, () => null] as const) {
      const [near, central] = [new Store(), new Store()];
      near.spoil = spoil;
      central.put(5);
      const { refresh, quota, refused, failed } = world(near, central);
      await refresh();
      expect([quota(), refused]).toEqual([5, []]);
      // Of the head only: the activation is there.
      expect(failed).toHaveLength(spoil === SPOIL_DOWN ? 1 : 0);
    }
  });

  test('the second is asked when an owner has named what the first does not have yet', async () => {
    const [near, central] = [new Store(), new Store()];
    near.put(5);
    central.put(5);
    const { source, refresh, quota } = world(near, central);
    await refresh();
    central.put(6);
    source.heard({ activation: 2, builtAtMs: 0 });
    expect(source.isNews).toBe(true);
    await refresh();
    expect(quota()).toBe(6);
    source.heard({ activation: 2, builtAtMs: 0 });
    expect(source.isNews).toBe(false);
  });
});

test('an owner’s word of a clamp counts at once, and a published list takes its place', async () => {
  const store = new Store();
  const { source, refresh, clamped } = world(store);
  const clamp: Clamp = {
    domain: 'test',
    pairs: [['user', 'anne']],
    action: 'deny',
    untilMs: 1e15,
    revision: 4,
  };
  const word = [clamp, { ...clamp, domain: 'other', pairs: [['user', 'bert']] as const }];
  source.heard({ activation: 0, builtAtMs: 0 }, word);
  source.heard({ activation: 0, builtAtMs: 0 }, word);
  const denied = (user: string) => {
    const { matcher, clamps } = source.snapshot;
    return matcher.match({ attributes: { user } }, { table: clamps, nowMs: 1 }).clamped !== undefined;
  };
  expect([denied('anne'), denied('bert')]).toEqual([true, false]);
  expect(clamped).toHaveLength(1);
  store.revision = 3;
  await refresh();
  expect(denied('anne')).toBe(true);
  store.revision = 5;
  store.put(3);
  await refresh();
  expect(denied('anne')).toBe(false);
  await refresh();
  // Once by the owner's word, once by each list that is newer than the last.
  expect(clamped).toHaveLength(3);
});

function SPOIL_DOWN(): Promise<never> {
  return Promise.reject(new Error('down'));
}
