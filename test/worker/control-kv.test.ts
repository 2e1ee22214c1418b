/** What the control plane tells KV and owners: all of it, in order, and again until it has arrived. */
import { reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { ControlPlane } from '../../src/objects/control-plane.ts';
import { activationKey, headKey, readActivation, readHead } from '../../src/policy/activation.ts';
import { perDay } from './admin-world.ts';
import { rulesetOf, sha256 } from './gateway-world.ts';

afterEach(async () => {
  vi.restoreAllMocks();
  await reset();
});

/** KV as far as it matters here, with an outage that can be switched on. */
class Namespace {
  readonly entries = new Map<string, string>();
  readonly written: string[] = [];
  isDown = false;

  async put(key: string, value: string): Promise<void> {
    if (this.isDown) throw new Error('KV is down');
    this.written.push(key);
    this.entries.set(key, value);
  }

  async delete(key: string): Promise<void> {
    if (this.isDown) throw new Error('KV is down');
    this.entries.delete(key);
  }
}

const stub = () => env.CONTROL.getByName('control');
const held = (activation: number) => ({ domain: 'test', version: { activation, builtAtMs: 0 } });
const hash = async (text: string) => sha256(text);

const CLAMP = {
  domain: 'test',
  pairs: [['user', 'anne']] as const,
  action: 'deny' as const,
  untilMs: Date.now() + 60_000,
  owner: 'own/anne',
  author: 'op',
  atMs: 1,
};

function alarmOf(): Promise<number | null> {
  return runInDurableObject(stub(), (_, state) => state.storage.getAlarm());
}

/** Runs with a control plane of this object's storage that has KV. */
function withKv<Value>(
  {
    rules,
    keys,
    owners = env.OWNER as unknown as DurableObjectNamespace,
  }: { rules: Namespace; keys: Namespace; owners?: DurableObjectNamespace },
  work: (control: ControlPlane) => Promise<Value>,
): Promise<Value> {
  const bindings = { OWNER: owners, RULES: rules, KEYS: keys } as unknown as Cloudflare.Env;
  return runInDurableObject(stub(), (_, state) => work(new ControlPlane(state, bindings)));
}

function publication(quota: number) {
  const rules = perDay(quota);
  const publishing = { domain: 'test', message: `${quota}`, author: 'op', activate: true };
  return { ...publishing, rules, ruleset: rulesetOf(rules), warnings: [] };
}

describe('a publish', () => {
  it('writes the activation under a key of its own, then the head', async () => {
    const rules = new Namespace();
    await withKv({ rules, keys: new Namespace() }, async (control) => {
      await control.publish(publication(5));
      await control.publish(publication(6));
    });
    expect(rules.written).toEqual([
      activationKey('test', 1),
      headKey('test'),
      activationKey('test', 2),
      headKey('test'),
    ]);
    expect(readHead(rules.entries.get(headKey('test')), held(0))).toMatchObject({ value: { activation: 2 } });
    const read = await readActivation(rules.entries.get(activationKey('test', 1)), held(0), hash);
    expect(read).toMatchObject({
      value: { ruleset: { rules: [{ limit: { quota: 5 } }] }, version: { activation: 1 } },
    });
  });

  it('while KV is down is stored, in force for whoever asks, and reaches KV later: the newest head only', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const [rules, keys] = [new Namespace(), new Namespace()];
    rules.isDown = true;
    await withKv({ rules, keys }, async (control) => {
      expect(await control.publish(publication(5))).toMatchObject({ version: 1, activation: 1 });
      expect(await control.publish(publication(6))).toMatchObject({ version: 2, activation: 2 });
      expect(readHead(await control.head('test'), held(0))).toMatchObject({ value: { activation: 2 } });
      rules.isDown = false;
      await control.alarm();
    });
    expect(rules.written).toEqual([activationKey('test', 1), activationKey('test', 2), headKey('test')]);
    expect(readHead(rules.entries.get(headKey('test')), held(0))).toMatchObject({ value: { activation: 2 } });
  });

  it('beside a word that is still being told goes along with it', async () => {
    const [rules, keys] = [new Namespace(), new Namespace()];
    const { promise: slow, resolve: answer } = Promise.withResolvers<void>();
    const owners = { getByName: () => ({ call: () => slow }) } as unknown as DurableObjectNamespace;
    await withKv({ rules, keys, owners }, async (control) => {
      const clamped = control.clamp(CLAMP);
      const published = control.publish(publication(5));
      answer();
      await Promise.all([clamped, published]);
    });
    expect(readHead(rules.entries.get(headKey('test')), held(0))).toMatchObject({ value: { activation: 1 } });
    const left = await runInDurableObject(stub(), (_, state) =>
      state.storage.sql.exec('SELECT * FROM outbox').toArray(),
    );
    expect(left).toEqual([]);
  });

  it('that was about to be told when the object went is told by the next one', async () => {
    const [rules, keys] = [new Namespace(), new Namespace()];
    const { promise: telling, resolve: told } = Promise.withResolvers<void>();
    rules.put = () => {
      told();
      return new Promise(() => {});
    };
    await withKv({ rules, keys }, async (control) => {
      void control.publish(publication(5));
      await telling;
      expect(await alarmOf()).not.toBeNull();
    });
    const back = new Namespace();
    await withKv({ rules: back, keys }, (control) => control.alarm());
    expect(readHead(back.entries.get(headKey('test')), held(0))).toMatchObject({ value: { activation: 1 } });
  });

  it('larger than a row is stored, and read as it was', async () => {
    const descriptors = Array.from({ length: 9_000 }, (_, at) => ({
      key: 'user',
      value: `somebody-${at}`,
      rate_limit: { unit: 'day', requests_per_unit: 5 },
    }));
    const rules = { domain: 'test', descriptors };
    const large = { ...publication(5), rules, ruleset: rulesetOf(rules) };
    const kv = new Namespace();
    await withKv({ rules: kv, keys: new Namespace() }, (control) => control.publish(large));
    const read = await readActivation(kv.entries.get(activationKey('test', 1)), held(0), hash);
    expect(read).toMatchObject({ value: { ruleset: large.ruleset } });
    const longest = await runInDurableObject(stub(), (_, state) =>
      state.storage.sql.exec<{ longest: number }>('SELECT max(length(text)) AS longest FROM texts').one(),
    );
    expect(longest.longest).toBeLessThanOrEqual(500_000);
  });

  it('before KV was bound is in KV once it is, keys too', async () => {
    const keySha256 = 'b'.repeat(64);
    await runInDurableObject(stub(), async (_, state) => {
      const control = new ControlPlane(state, { OWNER: env.OWNER } as unknown as Cloudflare.Env);
      await control.publish(publication(5));
      await control.putKeys([{ keySha256, entry: { tier: 'gold' } }], 'op');
    });
    const [rules, keys] = [new Namespace(), new Namespace()];
    await withKv({ rules, keys }, (control) => control.alarm());
    expect(rules.written).toEqual([activationKey('test', 1), headKey('test')]);
    expect(keys.entries.get(keySha256)).toBe('{"tier":"gold"}');
  });

  it('that KV refused leaves an alarm behind, also past an eviction', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const rules = new Namespace();
    rules.isDown = true;
    await withKv({ rules, keys: new Namespace() }, async (control) => {
      await control.publish(publication(5));
    });
    const alarm = await runInDurableObject(stub(), (_, state) => state.storage.getAlarm());
    expect(alarm).not.toBeNull();
    expect(await runDurableObjectAlarm(stub())).toBe(true);
  });
});

describe('keys', () => {
  it('are written and taken away by their hashes, and the first one is told of in the head', async () => {
    const [rules, keys] = [new Namespace(), new Namespace()];
    await withKv({ rules, keys }, async (control) => {
      await control.publish(publication(5));
      expect(JSON.parse(await control.head('test')).hasKeys).toBe(false);
      await control.putKeys([{ keySha256: 'a'.repeat(64), entry: { tier: 'gold' } }], 'op');
      expect(keys.entries.get('a'.repeat(64))).toBe('{"tier":"gold"}');
      expect(JSON.parse(rules.entries.get(headKey('test'))!).hasKeys).toBe(true);
      await control.putKeys([{ keySha256: 'a'.repeat(64) }], 'op');
      expect(keys.entries.size).toBe(0);
      expect(JSON.parse(rules.entries.get(headKey('test'))!).hasKeys).toBe(false);
    });
  });

  it('a thousand at once all arrive', async () => {
    const keys = new Namespace();
    const changes = Array.from({ length: 1_000 }, (_, at) => ({
      keySha256: sha256(`${at}`),
      entry: { tier: 'gold' },
    }));
    await withKv({ rules: new Namespace(), keys }, (control) => control.putKeys(changes, 'op'));
    expect(keys.entries.size).toBe(1_000);
  });
});

describe('a clamp', () => {
  const clamp = CLAMP;

  it('whose owner does not answer is published all the same, and told again', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    let isDown = true;
    const told: unknown[] = [];
    const owners = {
      getByName: () => ({
        call: async (call: unknown) => {
          if (isDown) throw new Error('the owner is down');
          told.push(call);
        },
      }),
    } as unknown as DurableObjectNamespace;
    const rules = new Namespace();
    await withKv({ rules, keys: new Namespace(), owners }, async (control) => {
      const made = await control.clamp(clamp);
      expect(made).toMatchObject({ untold: expect.stringContaining('the owner is down') });
      expect(JSON.parse(rules.entries.get(headKey('test'))!).clamps).toHaveLength(1);
      isDown = false;
      await control.alarm();
    });
    expect(told).toMatchObject([{ clamps: [{ action: 'deny', revision: 1 }] }]);
  });

  it('of which there are too many is refused', async () => {
    await withKv(
      {
        rules: new Namespace(),
        keys: new Namespace(),
        owners: { getByName: () => ({ call: async () => {} }) } as unknown as DurableObjectNamespace,
      },
      async (control) => {
        for (let at = 0; at < 1_000; at += 1) await control.clamp({ ...clamp, pairs: [['user', `u${at}`]] });
        expect(await control.clamp({ ...clamp, pairs: [['user', 'one more']] })).toBe('too_many');
        await control.clamp({ ...clamp, pairs: [['user', 'u7']], action: 'none' });
        expect(await control.clamp({ ...clamp, pairs: [['user', 'one more']] })).toHaveProperty('clamp');
      },
    );
  });
});
