/** What clamps say about a request, and that news of them may come in any order. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Clamp, type ClampAction, ClampTable, clampCounterId } from '../../src/policy/clamp.ts';
import { encodePairs, type Pairs, pairsOfId } from '../../src/policy/counter.ts';
import { limitOf } from '../engine/rules.ts';
import { factsOf, matcherFrom, tell, withDescriptors } from './rules-from.ts';

const NOW_MS = 1_000_000;
const matcher = matcherFrom(
  withDescriptors(`
  - { key: tier, value: free, rate_limit: { unit: minute, requests_per_unit: 10 } }
  - { key: org, rate_limit: { policy: org, unit: minute, requests_per_unit: 100, shadow_mode: true } }`),
);

interface Wanted {
  readonly pairs?: Pairs;
  readonly action?: ClampAction | 'none';
  readonly revision?: number;
  readonly untilMs?: number;
}

function clamp({
  pairs = [['org', 'acme']],
  action = 'deny',
  revision = 1,
  untilMs = NOW_MS + 1,
}: Wanted): Clamp {
  const limit = action === 'limit' ? { limit: limitOf({ quota: 5 }) } : {};
  return { domain: 'test', pairs, action, ...limit, untilMs, revision };
}

function tableOf(...clamps: readonly Clamp[]): ClampTable {
  const table = new ClampTable();
  table.adopt(clamps, Math.max(0, ...clamps.map(({ revision }) => revision)));
  return table;
}

const FACTS = factsOf({ tier: 'free', org: 'acme', user: 'anne' });

describe('a request of a clamped caller', () => {
  const match = (table: ClampTable, facts = FACTS) => matcher.match(facts, { table, nowMs: NOW_MS });

  test('is told apart from all others', () => {
    const table = tableOf(clamp({}));
    expect(match(table).clamped?.clamp.action).toBe('deny');
    expect(match(table, factsOf({ tier: 'free', org: 'beta' })).clamped).toBeUndefined();
    expect(match(table, factsOf({ tier: 'free' })).clamped).toBeUndefined();
  });

  test('denied or unlimited: no rule counts it, in shadow either', () => {
    for (const action of ['deny', 'unlimited'] as const) {
      const found = match(tableOf(clamp({ action })));
      expect([found.enforced, found.shadow]).toEqual([[], []]);
    }
  });

  test('limited: a policy more, counted by the caller that was clamped', () => {
    const found = match(tableOf(clamp({ action: 'limit' })));
    expect(found.enforced.map(tell)).toEqual(['default: tier=free @ user=anne', 'clamp: !clamp @ org=acme']);
    expect(found.enforced[1]?.rule.limit).toEqual(limitOf({ quota: 5 }));
    expect(found.shadow).toHaveLength(1);
  });

  test('ends with its time, to the millisecond', () => {
    const table = tableOf(clamp({ untilMs: NOW_MS + 10 }));
    const at = (nowMs: number) => matcher.match(FACTS, { table, nowMs }).clamped;
    expect(at(NOW_MS + 9)).toBeDefined();
    expect(at(NOW_MS + 10)).toBeUndefined();
    table.sweep(NOW_MS + 10);
    expect(table.isEmpty).toBe(true);
  });

  test.each([
    ['deny before limit', ['limit', 'deny'], 'deny'],
    ['limit before unlimited', ['unlimited', 'limit'], 'limit'],
    ['unlimited alone', ['unlimited'], 'unlimited'],
  ] as const)('by several: %s', (_, actions, expected) => {
    const names = ['org', 'user'] as const;
    const clamps = actions.map((action, at) => {
      const name = names[at]!;
      return clamp({ pairs: [[name, name === 'org' ? 'acme' : 'anne']], action, revision: at + 1 });
    });
    expect(match(tableOf(...clamps)).clamped?.clamp.action).toBe(expected);
  });

  test('all limits hold', () => {
    const both = tableOf(
      clamp({ action: 'limit' }),
      clamp({ action: 'limit', pairs: [['user', 'anne']], revision: 2 }),
    );
    expect(match(both).enforced.map(tell).slice(1).sort()).toEqual([
      'clamp-2: !clamp @ user=anne',
      'clamp: !clamp @ org=acme',
    ]);
  });

  test('an address is clamped as it is counted: an IPv6 caller by its /64', () => {
    const pairs = matcher.pairsOf({ attributes: { remote_address: '2001:db8::1' } }, ['remote_address']);
    const table = tableOf(clamp({ pairs: pairs! }));
    expect(match(table, factsOf({ remote_address: '2001:db8::ffff' })).clamped).toBeDefined();
    expect(match(table, factsOf({ remote_address: '2001:db8:1::1' })).clamped).toBeUndefined();
  });
});

test('the last word counts, in whatever order words and lists come', () => {
  const words = fc.array(
    fc.record({
      caller: fc.constantFrom('acme', 'beta'),
      action: fc.constantFrom('deny', 'unlimited', 'none' as const),
    }),
    { minLength: 1, maxLength: 8 },
  );
  fc.assert(
    fc.property(words, fc.infiniteStream(fc.nat()), fc.nat(8), (all, order, listedAt) => {
      const clamps = all.map(({ caller, action }, at) =>
        clamp({ pairs: [['org', caller]], action: action as ClampAction, revision: at + 1 }),
      );
      const inForce = (upTo: number) => {
        const last = new Map<string, Clamp>();
        for (const each of clamps.slice(0, upTo)) last.set(encodePairs(each.pairs), each);
        return [...last.values()].filter(({ action }) => action !== 'none');
      };
      const table = new ClampTable();
      const revision = Math.min(listedAt, clamps.length);
      const news: (() => void)[] = [
        () => table.adopt(inForce(revision), revision),
        ...clamps.map((each) => () => void table.learn(each)),
      ];
      const shuffled = news
        .map((hear) => ({ hear, key: order.next().value }))
        .sort((a, b) => a.key - b.key)
        .map(({ hear }) => hear);
      for (const hear of shuffled) hear();
      for (const org of ['acme', 'beta']) {
        const found = matcher.match(factsOf({ org }), { table, nowMs: NOW_MS }).clamped?.clamp.action;
        const expected = inForce(clamps.length).find(({ pairs }) => pairs[0]?.[1] === org)?.action;
        expect(found).toBe(expected);
      }
    }),
  );
});

describe('the caller that a counter is about', () => {
  const text = fc.oneof(
    fc.string(),
    fc.constantFrom('|', '1:a', '0:', 'e1/3:org*|3:org4:acme', 'x'.repeat(300)),
  );

  test('is read from its id, whatever the values hold', () => {
    fc.assert(
      fc.property(text, text, text, (domain, value, other) => {
        const pairs: Pairs = [
          ['host', value],
          ['user', other],
        ];
        expect(pairsOfId(clampCounterId({ domain, pairs }))).toBe(encodePairs(pairs));
      }),
    );
  });

  test('is that of every rule', () => {
    const { enforced, shadow } = matcher.match(FACTS);
    for (const { counterId, pairs } of [...enforced, ...shadow])
      expect(pairsOfId(counterId)).toBe(encodePairs(pairs));
  });

  test('is nobody for what is no id', () => {
    fc.assert(fc.property(fc.string(), (id) => void pairsOfId(id)));
    expect(['', 'x', '3:abc', '3:abc7:defaulte1/', 'limit of anne'].map(pairsOfId)).toEqual(
      Array.from({ length: 5 }, () => undefined),
    );
  });

  test('a clamp has the owner of its caller’s own counters', () => {
    const [winner] = matcher.match(FACTS).enforced;
    expect(matcher.ownerOf([['user', 'anne']])).toEqual(winner?.owner);
  });
});
