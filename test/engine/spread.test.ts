import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Limit } from '../../src/core/decision.ts';
import { wholeSeconds } from '../../src/engine/level.ts';
import { RETRY_SPREAD_SECONDS, spreadRetry } from '../../src/engine/spread.ts';
import { type PolicyReport, type VerdictOutcome, verdictOf } from '../../src/engine/verdict.ts';
import type { Pairs, Winner } from '../../src/policy/counter.ts';
import { limitOf, winner } from './rules.ts';

const OWN: Pairs = [['api_key', 'k']];
const SHARED: Pairs = [['org', 'acme']];

const winnerOf = (policy: string, pairs: Pairs): Winner => ({ ...winner({ quota: 5, policy }), pairs });

function reportOf(
  policy: string,
  waitMs: number,
  { outcome = 'denied', limit = limitOf({ quota: 5 }) }: { outcome?: VerdictOutcome; limit?: Limit } = {},
): PolicyReport {
  return { policy, limit, outcome, source: 'owner', waitMs, level: { remaining: 0, resetMs: waitMs } };
}

describe('a retry', () => {
  test('of a counter that others share is later by whole seconds, in the verdict and in its policy', () => {
    const verdict = verdictOf([reportOf('team', 1_200)]);
    const spread = spreadRetry(verdict, [winnerOf('team', SHARED)], 2);
    expect(spread).toMatchObject({
      retryAfterMs: 3_200,
      policies: [{ waitMs: 3_200, level: { resetMs: 3_200 } }],
    });
  });

  test.each([
    ['of a counter of its own', verdictOf([reportOf('team', 1_200)]), OWN],
    [
      'of an own address within a shared route',
      verdictOf([reportOf('team', 1_200)]),
      [
        ['remote_address', 'a'],
        ['route', '/'],
      ],
    ],
    ['of an allowed request', verdictOf([reportOf('team', 1_200, { outcome: 'allowed' })]), SHARED],
    ['where an owner is silent', verdictOf([reportOf('team', 1_200, { outcome: 'unavailable' })]), SHARED],
    ['of what can never fit', verdictOf([reportOf('team', 0, { outcome: 'impossible' })]), SHARED],
    [
      'for a request in progress',
      verdictOf([reportOf('team', 1_000, { limit: { ...limitOf({ quota: 5 }), algorithm: 'concurrency' } })]),
      SHARED,
    ],
  ] as const)('%s stays as it is', (_name, verdict, pairs) => {
    expect(spreadRetry(verdict, [winnerOf('team', pairs)], 2)).toEqual(verdict);
  });

  test('is as late as the latest: a longer wait of its own is not made longer', () => {
    const verdict = verdictOf([reportOf('own', 9_000), reportOf('team', 1_200)]);
    const enforced = [winnerOf('own', OWN), winnerOf('team', SHARED)];
    const spread = spreadRetry(verdict, enforced, 2);
    expect(spread.retryAfterMs).toBe(9_000);
    expect(spread.policies.map(({ waitMs }) => waitMs)).toEqual([9_000, 3_200]);
  });

  test('property: never earlier than it was, and never more than the spread later, as clients are told it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ waitMs: fc.integer({ min: 1, max: 100_000 }), isShared: fc.boolean() }), {
          minLength: 1,
        }),
        fc.integer({ min: 0, max: RETRY_SPREAD_SECONDS }),
        (each, seconds) => {
          const verdict = verdictOf(each.map(({ waitMs }, at) => reportOf(`p${at}`, waitMs)));
          const enforced = each.map(({ isShared }, at) => winnerOf(`p${at}`, isShared ? SHARED : OWN));
          const { retryAfterMs } = spreadRetry(verdict, enforced, seconds);
          const [told, exact] = [wholeSeconds(retryAfterMs, 1), wholeSeconds(verdict.retryAfterMs, 1)];
          expect(told).toBeGreaterThanOrEqual(exact);
          expect(told).toBeLessThanOrEqual(exact + seconds);
        },
      ),
    );
  });
});
