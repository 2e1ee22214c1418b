/** The limit fields as a client's library reads them: whole numbers that never promise too much. */
import fc from 'fast-check';
import { type Item, parseList } from 'structured-headers';
import { describe, expect, test } from 'vitest';
import type { Limit } from '../../src/core/decision.ts';
import type { Level, PolicyReport } from '../../src/engine/verdict.ts';
import { type Fields, fieldNames, limitFields } from '../../src/gateway/fields.ts';
import type { HeaderMode } from '../../src/policy/ruleset.ts';

const NOW_MS = Date.UTC(2026, 5, 1);

const limitOf = (more: Partial<Limit> = {}): Limit => ({
  algorithm: 'token_bucket',
  quota: 100,
  windowMs: 60_000,
  burst: 100,
  maxDelayMs: 0,
  ...more,
});

interface Told extends Partial<Omit<PolicyReport, 'level' | 'limit'>> {
  readonly limit?: Partial<Limit>;
  readonly level?: Partial<Level> | undefined;
}

function reportOf(told: Told = {}): PolicyReport {
  const { limit, level, ...more } = told;
  const isUnknown = 'level' in told && level === undefined;
  return {
    policy: 'default',
    outcome: 'allowed',
    source: 'owner',
    waitMs: 0,
    ...more,
    limit: limitOf(limit),
    level: isUnknown ? undefined : { remaining: 50, resetMs: 30_000, ...level },
  };
}

function fieldsOf(reports: readonly PolicyReport[], mode: HeaderMode = 'both', nowMs = NOW_MS): Fields {
  return limitFields(reports, { mode, cost: undefined, nowMs });
}

/** The items of a field, each a name with its parameters; a field that is no List of RFC 9651 throws. */
function itemsOf(fields: Fields, field: string): [string, Record<string, unknown>][] {
  const list = parseList(fields[field] ?? '') as Item[];
  return list.map(([name, parameters]) => [name as string, Object.fromEntries(parameters)]);
}

function parameterOf(report: PolicyReport, field: string, parameter: string): unknown {
  return itemsOf(fieldsOf([report]), field)[0]?.[1][parameter];
}

const level = (more: Partial<Level>) => reportOf({ level: more });

describe('a wait is rounded up', () => {
  test.each([
    [0, 0],
    [0.001, 1],
    [1, 1],
    [999, 1],
    [1_000, 1],
    [1_000.001, 2],
    [1_001, 2],
    [59_999, 60],
    [30_000.000_000_4, 30],
  ])('a reset in %d ms is t=%d', (resetMs, seconds) => {
    expect(fieldsOf([level({ resetMs })]).RateLimit).toBe(`"default";r=50;t=${seconds}`);
  });

  test('t is the least whole number of seconds that is no shorter than the reset', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 ** 12 }), (resetUs) => {
        const resetMs = resetUs / 1_000;
        const seconds = Number(parameterOf(level({ resetMs }), 'RateLimit', 't'));
        expect(seconds * 1_000).toBeGreaterThanOrEqual(resetMs);
        expect((seconds - 1) * 1_000).toBeLessThan(resetMs);
      }),
    );
  });

  test('X-RateLimit-Reset is the first whole second of the epoch that is no earlier than the reset', () => {
    fc.assert(
      fc.property(fc.nat(86_400_000), fc.nat(31_536_000), (sinceMs, resetMs) => {
        const nowMs = NOW_MS + sinceMs;
        const seconds = Number(fieldsOf([level({ resetMs })], 'legacy', nowMs)['X-RateLimit-Reset']);
        expect(seconds * 1_000).toBeGreaterThanOrEqual(nowMs + resetMs);
        expect((seconds - 1) * 1_000).toBeLessThan(nowMs + resetMs);
      }),
    );
  });
});

describe('a window is whole seconds, at least one', () => {
  test.each([
    [1, 1],
    [500, 1],
    [1_000, 1],
    [1_001, 2],
    [1_500, 2],
    [60_000, 60],
    [31_536_000_000, 31_536_000],
  ])('%d ms is w=%d', (windowMs, seconds) => {
    const report = reportOf({ limit: { windowMs } });
    expect(fieldsOf([report])['RateLimit-Policy']).toBe(`"default";q=100;w=${seconds}`);
  });

  test('and requests in progress have none', () => {
    const report = reportOf({ limit: { algorithm: 'concurrency', quota: 5, burst: 5 } });
    expect(fieldsOf([report])['RateLimit-Policy']).toBe('"default";q=5;qu="concurrent-requests"');
  });
});

describe('what is left is rounded down', () => {
  test.each([
    ['less than a unit', 0.999, {}, 0],
    ['almost all', 99.999, {}, 99],
    ['all', 100, {}, 100],
    ['a debt', -3, {}, 0],
    ['more than the limit ever holds', 250, {}, 100],
    ['a burst above the quota', 180.5, { burst: 200 }, 180],
    ['more than the burst', 250, { burst: 200 }, 200],
    ['more than a burst below the quota', 250, { burst: 10 }, 100],
    ['of a limit that denies everything', 1, { quota: 0, burst: 0 }, 0],
  ])('%s', (_, remaining, limit, units) => {
    const report = reportOf({ limit, level: { remaining } });
    expect(parameterOf(report, 'RateLimit', 'r')).toBe(units);
    expect(fieldsOf([report])['X-RateLimit-Remaining']).toBe(String(units));
  });

  test('r is a whole number from 0 to the larger of quota and burst, and never more than is left', () => {
    const units = fc.nat(1_000);
    const left = fc.double({ min: -1_000, max: 3_000, noNaN: true });
    fc.assert(
      fc.property(units, units, left, (quota, burst, remaining) => {
        const report = reportOf({ limit: { quota, burst }, level: { remaining } });
        const told = parameterOf(report, 'RateLimit', 'r');
        const most = Math.max(quota, burst);
        expect(Number.isInteger(told)).toBe(true);
        expect(told).toBeGreaterThanOrEqual(0);
        expect(told).toBeLessThanOrEqual(Math.max(0, Math.min(remaining, most)));
        expect(told).toBeGreaterThan(Math.min(remaining, most) - 1);
      }),
    );
  });
});

describe('names', () => {
  const printable = fc.stringMatching(/^[ -~]{1,40}$/);

  test.each([
    ['plain', '"plain"'],
    ['with "quotes"', String.raw`"with \"quotes\""`],
    ['back\\slash', String.raw`"back\\slash"`],
    ['\\"', String.raw`"\\\""`],
    ['a", "b";r=9', String.raw`"a\", \"b\";r=9"`],
  ])('%s is a String of RFC 9651', (policy, serialized) => {
    expect(fieldsOf([reportOf({ policy })]).RateLimit).toBe(`${serialized};r=50;t=30`);
  });

  test('of any printable characters come back as they are, one item a policy in both fields', () => {
    fc.assert(
      fc.property(fc.uniqueArray(printable, { minLength: 1, maxLength: 5 }), (policies) => {
        const fields = fieldsOf(policies.map((policy) => reportOf({ policy })));
        expect(itemsOf(fields, 'RateLimit')).toEqual(policies.map((policy) => [policy, { r: 50, t: 30 }]));
        expect(itemsOf(fields, 'RateLimit-Policy')).toEqual(
          policies.map((policy) => [policy, { q: 100, w: 60 }]),
        );
      }),
    );
  });
});

describe('modes', () => {
  const IETF = ['RateLimit', 'RateLimit-Policy'];
  const LEGACY = ['X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'X-RateLimit-Cost'];

  test.each<[HeaderMode, readonly string[]]>([
    ['ietf', IETF],
    ['legacy', LEGACY],
    ['both', [...IETF, ...LEGACY]],
    ['none', []],
  ])('%s', (mode, names) => {
    expect(Object.keys(fieldsOf([reportOf()], mode))).toEqual(names);
    expect(fieldNames(mode)).toEqual([...names, 'Retry-After']);
    expect(fieldsOf([], mode)).toEqual({});
  });

  test('the older fields are those of the most constrained policy, and say the cost where there are costs', () => {
    const reports = [
      reportOf({ policy: 'roomy', limit: { quota: 1_000, burst: 1_000 }, level: { remaining: 900 } }),
      reportOf({ policy: 'tight', limit: { quota: 7, burst: 7 }, level: { remaining: 2.5, resetMs: 1_500 } }),
      reportOf({ policy: 'unasked', level: undefined }),
    ];
    expect(limitFields(reports, { mode: 'legacy', cost: 3, nowMs: NOW_MS })).toEqual({
      'X-RateLimit-Limit': '7',
      'X-RateLimit-Remaining': '2',
      'X-RateLimit-Reset': String(NOW_MS / 1_000 + 2),
      'X-RateLimit-Cost': '3',
    });
    expect(fieldsOf(reports, 'legacy')['X-RateLimit-Cost']).toBeUndefined();
  });

  test('a policy that denies comes before all others, and one that was not asked has its contract only', () => {
    const reports = [
      reportOf({ policy: 'unasked', level: undefined }),
      reportOf({ policy: 'used up', level: { remaining: 0 } }),
      reportOf({ policy: 'denies', outcome: 'denied', level: { remaining: 9, resetMs: 8_000 } }),
    ];
    expect(fieldsOf(reports, 'ietf')).toEqual({
      RateLimit: '"denies";r=9;t=8, "used up";r=0;t=30',
      'RateLimit-Policy': '"denies";q=100;w=60, "used up";q=100;w=60, "unasked";q=100;w=60',
    });
  });

  test('where nothing is known the fields of an origin go all the same', () => {
    expect(fieldsOf([reportOf({ level: undefined })])).toStrictEqual({
      RateLimit: undefined,
      'RateLimit-Policy': '"default";q=100;w=60',
      'X-RateLimit-Limit': undefined,
      'X-RateLimit-Remaining': undefined,
      'X-RateLimit-Reset': undefined,
      'X-RateLimit-Cost': undefined,
    });
  });
});
