/**
 * What every algorithm promises, whatever its arithmetic. A counter is brought into some state by a random history, then questioned.
 *
 * fast-check prints seed and counterexample on failure; a counterexample that showed a fault becomes a row in the algorithm's own table.
 */
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  afterStepBack,
  atRestAtMs,
  available,
  type CounterState,
  carryOver,
  charge,
  clockOf,
  decide,
  giveBack,
  used,
} from '../../src/core/algorithms.ts';
import { type AlgorithmName, capacity, type Limit } from '../../src/core/decision.ts';
import { slackUnits, slackUs, unitUsOf } from '../../src/core/rate.ts';
import { DAY_MS, EPOCH_MS, HOUR_MS, limitOf, MINUTE_MS, MONTH_MS, Subject, YEAR_MS } from './subject.ts';

const NAMES: readonly AlgorithmName[] = [
  'token_bucket',
  'leaky_bucket',
  'fixed_window',
  'sliding_window',
  'sliding_log',
];

/** From a million a second to one a year. The log is capped by the rule format, and tested with a short one. */
function limits(algorithm: AlgorithmName): fc.Arbitrary<Limit> {
  const large = algorithm === 'sliding_log' ? [100] : [1000, 1_000_000];
  return fc
    .record({
      quota: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(1, ...large)),
      windowMs: fc.constantFrom(1, 100, 1000, 10_000, MINUTE_MS, HOUR_MS, DAY_MS, MONTH_MS, YEAR_MS),
      burstShare: fc.constantFrom(0.1, 0.5, 1, 1, 2),
      maxDelayMs: fc.constantFrom(0, 1, 1000, 5000),
    })
    .map(({ quota, windowMs, burstShare, maxDelayMs }) =>
      limitOf(algorithm, quota, windowMs, {
        burst: algorithm === 'token_bucket' ? Math.max(1, Math.floor(quota * burstShare)) : quota,
        maxDelayMs: algorithm === 'leaky_bucket' ? maxDelayMs : 0,
      }),
    );
}

/** Enough that every branch is met hundreds of times, and the suite stays near a second. */
const RUNS = 300;

interface Event {
  readonly gapShare: number;
  readonly deed: 'ask' | 'charge' | 'giveBack';
  readonly costShare: number;
}

const shares = fc.oneof(fc.constantFrom(0, 0, 0.25, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));

const events: fc.Arbitrary<Event> = fc.record({
  gapShare: fc.oneof(
    fc.constant(0),
    shares,
    shares.map((share) => share * 2.5),
  ),
  deed: fc.constantFrom('ask', 'ask', 'ask', 'charge', 'giveBack'),
  costShare: shares,
});

interface Scene {
  readonly limit: Limit;
  readonly state: CounterState | undefined;
  readonly nowMs: number;
}

function costOf(limit: Limit, share: number): number {
  return Math.max(1, Math.round(share * capacity(limit)));
}

function play(limit: Limit, history: readonly Event[]): Scene {
  let state: CounterState | undefined;
  let nowMs = 0;
  let chargedAtMs = 0;
  for (const { gapShare, deed, costShare } of history) {
    nowMs += Math.floor(gapShare * limit.windowMs);
    const cost = costOf(limit, costShare);
    if (deed === 'ask') state = decide(limit, state, cost, nowMs).state;
    if (deed === 'charge') state = charge(limit, state, cost, nowMs);
    if (deed === 'giveBack') state = giveBack(limit, state, { cost, chargedAtMs }, nowMs);
    else chargedAtMs = nowMs;
  }
  return { limit, state, nowMs };
}

function scenes(algorithm: AlgorithmName): fc.Arbitrary<Scene> {
  return fc
    .tuple(limits(algorithm), fc.array(events, { maxLength: 30 }))
    .map(([limit, history]) => play(limit, history));
}

/** The longest honest wait: until the whole capacity, and a quota of debt, have come back; rounding included. */
function waitMsMax(limit: Limit): number {
  const roundingMs = slackUs(unitUsOf(limit)) / 1000;
  if (limit.algorithm === 'token_bucket') {
    return ((limit.burst + limit.quota) * unitUsOf(limit)) / 1000 + roundingMs;
  }
  return (limit.algorithm === 'sliding_window' ? 2 : 1) * limit.windowMs + roundingMs;
}

describe.each(NAMES)('%s', (algorithm) => {
  const scene = scenes(algorithm);

  function check<T extends unknown[]>(
    arbitraries: { [K in keyof T]: fc.Arbitrary<T[K]> },
    body: (...values: T) => void,
  ) {
    fc.assert(
      fc.property(fc.tuple<T>(...arbitraries), (values) => body(...values)),
      { numRuns: RUNS },
    );
  }

  test('range: units, waits and delays stay within what the limit allows', () => {
    check([scene, shares], ({ limit, state, nowMs }, share) => {
      const left = available(limit, state, nowMs);
      expect(left).toBeGreaterThanOrEqual(-limit.quota);
      expect(left).toBeLessThanOrEqual(capacity(limit));
      expect(used(limit, state, nowMs)).toBeGreaterThanOrEqual(0);
      const { decision } = decide(limit, state, costOf(limit, share), nowMs);
      if (decision.outcome === 'allowed') {
        expect(decision.delayMs).toBeGreaterThanOrEqual(0);
        expect(decision.delayMs).toBeLessThanOrEqual(limit.maxDelayMs);
      } else if (decision.outcome === 'denied') {
        expect(decision.retryAfterMs).toBeGreaterThan(0);
        expect(decision.retryAfterMs).toBeLessThanOrEqual(waitMsMax(limit));
      }
    });
  });

  test('honest wait: denied at every instant before it, a millisecond less included; admitted at it', () => {
    let denials = 0;
    check([scene, shares, shares], ({ limit, state, nowMs }, costShare, early) => {
      const cost = costOf(limit, costShare);
      const { decision } = decide(limit, state, cost, nowMs);
      if (decision.outcome !== 'denied') return;
      denials += 1;
      const waitMs = decision.retryAfterMs;
      const outcomeIn = (ms: number) => decide(limit, state, cost, nowMs + ms).decision.outcome;
      expect(outcomeIn(waitMs)).toBe('allowed');
      expect(outcomeIn(Math.ceil(waitMs))).toBe('allowed');
      if (waitMs > 1) expect(outcomeIn(waitMs - 1)).toBe('denied');
      const slackMs = (2 * slackUs(unitUsOf(limit))) / 1000;
      if (early * waitMs < waitMs - slackMs) expect(outcomeIn(early * waitMs)).toBe('denied');
    });
    expect(denials).toBeGreaterThan(30);
  });

  test('a denial is free, and a decision that is not acted on leaves no trace', () => {
    check([scene, shares], ({ limit, state, nowMs }, share) => {
      const before = structuredClone(state);
      const step = decide(limit, state, costOf(limit, share), nowMs);
      expect(state).toEqual(before);
      if (step.decision.outcome !== 'allowed') expect(step.state).toBe(state);
      charge(limit, state, 1, nowMs);
      giveBack(limit, state, { cost: 1, chargedAtMs: nowMs }, nowMs);
      expect(state).toEqual(before);
    });
  });

  test('poll-rate independence: asking in vain and peeking in between change nothing', () => {
    check([limits(algorithm), fc.array(events, { maxLength: 20 }), shares], (limit, history, share) => {
      const plain = new Subject(limit);
      const polled = new Subject(limit);
      let nowMs = 0;
      for (const { gapShare, costShare } of history) {
        const gapMs = Math.floor(gapShare * limit.windowMs);
        for (const part of [0, share / 2, share]) {
          polled.at(nowMs + Math.floor(gapMs * part)).ask(0);
          const { decision } = decide(limit, polled.state, capacity(limit), polled.nowMs);
          if (decision.outcome === 'denied') polled.ask(capacity(limit));
        }
        nowMs += gapMs;
        const cost = costOf(limit, costShare);
        expect(polled.at(nowMs).ask(cost).outcome).toBe(plain.at(nowMs).ask(cost).outcome);
      }
    });
  });

  test('time standing still: exactly what is available gets through in one instant', () => {
    check([scene.filter(({ limit }) => limit.quota <= 1000)], ({ limit, state, nowMs }) => {
      const left = Math.max(0, Math.floor(available(limit, state, nowMs)));
      let present = state;
      let admitted = 0;
      for (; admitted <= left; admitted += 1) {
        const step = decide(limit, present, 1, nowMs);
        if (step.decision.outcome !== 'allowed') break;
        present = step.state;
      }
      // A leaky bucket shows at most its quota, even where a delay longer than the window accepts more.
      if (algorithm === 'leaky_bucket' && left === limit.quota) expect(admitted).toBeGreaterThanOrEqual(left);
      else expect(admitted).toBe(left);
    });
  });

  test('stepping back neither refills nor freezes; stepping forward refills once', () => {
    const steps = fc.array(
      fc.record({ byShare: fc.double({ min: -30, max: 3, noNaN: true }), costShare: shares }),
      {
        maxLength: 20,
      },
    );
    check([limits(algorithm), steps], (limit, walk) => {
      const subject = new Subject(limit);
      let atMs = 0;
      for (const { byShare, costShare } of walk) {
        const before = subject.available;
        atMs = Math.max(-EPOCH_MS, atMs + Math.trunc(byShare * limit.windowMs));
        subject.at(atMs);
        if (byShare <= 0) expect(subject.available).toBe(before);
        expect(subject.available).toBeLessThanOrEqual(capacity(limit));
        const decision = subject.ask(costOf(limit, costShare));
        if (decision.outcome !== 'denied') continue;
        expect(decision.retryAfterMs).toBeLessThanOrEqual(waitMsMax(limit));
        atMs += Math.ceil(decision.retryAfterMs);
        expect(subject.at(atMs).ask(costOf(limit, costShare)).outcome).toBe('allowed');
      }
    });
  });

  test('whatever a clock did, no wait exceeds what can be owed', () => {
    check([scene, shares, shares], ({ limit, state, nowMs }, backShare, costShare) => {
      const { decision } = decide(limit, state, costOf(limit, costShare), nowMs * (1 - backShare));
      if (decision.outcome === 'denied') expect(decision.retryAfterMs).toBeLessThanOrEqual(waitMsMax(limit));
    });
  });

  test('changed numbers: the units used carry over, at most the new capacity', () => {
    check([scene, fc.constantFrom(...NAMES).chain(limits)], ({ limit, state, nowMs }, after) => {
      fc.pre(!isDeepStrictEqual(limit, after));
      const carried = carryOver({ limit, state, nowMs }, { limit: after, nowMs });
      const windows = ['fixed_window', 'sliding_window', 'sliding_log'];
      const isOtherWindow =
        windows.includes(limit.algorithm) &&
        windows.includes(after.algorithm) &&
        limit.windowMs !== after.windowMs;
      const expected = isOtherWindow ? 0 : Math.min(used(limit, state, nowMs), capacity(after));
      // A clock far from its epoch is no finer than its last bit.
      const clockUnits = (nowMs * 1000 * Number.EPSILON) / unitUsOf(after);
      const tolerance = 2 * slackUnits(after) + clockUnits;
      expect(Math.abs(used(after, carried, nowMs) - expected)).toBeLessThanOrEqual(tolerance);
    });
  });

  test('unchanged numbers: the very same state', () => {
    check([scene], ({ limit, state, nowMs }) => {
      expect(carryOver({ limit, state, nowMs }, { limit: { ...limit }, nowMs })).toBe(state);
    });
  });

  test('peek: always allowed, changes nothing, and the units it shows are those that a charge gets', () => {
    check([scene, shares], ({ limit, state, nowMs }, share) => {
      expect(decide(limit, state, 0, nowMs)).toEqual({ decision: { outcome: 'allowed', delayMs: 0 }, state });
      const cost = costOf(limit, share);
      const needed = algorithm === 'leaky_bucket' ? 1 : cost;
      const isAllowed = decide(limit, state, cost, nowMs).decision.outcome === 'allowed';
      expect(isAllowed).toBe(Math.floor(available(limit, state, nowMs)) >= needed);
    });
  });

  test('impossible: a cost above the capacity, and only that', () => {
    check([scene, fc.integer({ min: 1, max: 1000 }), shares], ({ limit, state, nowMs }, above, share) => {
      expect(decide(limit, state, capacity(limit) + above, nowMs)).toEqual({
        decision: { outcome: 'impossible' },
        state,
      });
      expect(decide(limit, state, costOf(limit, share), nowMs).decision.outcome).not.toBe('impossible');
    });
  });

  test('a quota of 0 denies everything and counts nothing; its wait is the window', () => {
    check([limits(algorithm), fc.integer({ min: 1, max: 1_000_000 }), shares], (limit, cost, share) => {
      const closed = { ...limit, quota: 0 };
      const nowMs = share * limit.windowMs;
      const denial = { decision: { outcome: 'denied', retryAfterMs: limit.windowMs }, state: undefined };
      expect(decide(closed, undefined, cost, nowMs)).toEqual(denial);
      expect(decide(closed, undefined, 0, nowMs).decision.outcome).toBe('allowed');
      expect(available(closed, undefined, nowMs)).toBe(0);
      expect(used(closed, undefined, nowMs)).toBe(0);
      expect(charge(closed, undefined, cost, nowMs)).toBeUndefined();
    });
  });

  test('debt: a charge after the fact goes through, down to one quota below empty', () => {
    check([scene, fc.integer({ min: 1, max: 2_000_000 })], ({ limit, state, nowMs }, cost) => {
      const before = available(limit, state, nowMs);
      const left = available(limit, charge(limit, state, cost, nowMs), nowMs);
      expect(left).toBeGreaterThanOrEqual(-limit.quota);
      const deepest = algorithm === 'leaky_bucket' ? 1 - limit.quota : -limit.quota;
      const room = algorithm === 'leaky_bucket' ? capacity(limit) + limit.quota : 0;
      expect(left).toBeLessThanOrEqual(Math.max(deepest, before - cost) + room + slackUnits(limit));
    });
  });

  test('giving back is the inverse of charging, and never goes beyond full', () => {
    check(
      [scene, shares, fc.integer({ min: 1, max: 2_000_000 })],
      ({ limit, state, nowMs }, share, tooMuch) => {
        const before = used(limit, state, nowMs);
        const cost = Math.min(costOf(limit, share), Math.floor(capacity(limit) - before));
        if (cost >= 1) {
          const charged = charge(limit, state, cost, nowMs);
          expect(used(limit, charged, nowMs)).toBeCloseTo(before + cost, 2);
          const refunded = giveBack(limit, charged, { cost, chargedAtMs: nowMs }, nowMs);
          expect(used(limit, refunded, nowMs)).toBeCloseTo(before, 2);
        }
        const beyond = giveBack(limit, state, { cost: tooMuch, chargedAtMs: nowMs }, nowMs);
        expect(available(limit, beyond, nowMs)).toBeLessThanOrEqual(available(limit, undefined, nowMs));
        expect(used(limit, beyond, nowMs)).toBeGreaterThanOrEqual(0);
      },
    );
  });

  test('G05 at rest: from that instant the state says nothing, and not a millisecond before', () => {
    check([scene], ({ limit, state, nowMs }) => {
      const restMs = Math.max(nowMs, atRestAtMs(limit, state));
      expect(used(limit, state, restMs)).toBe(0);
      expect(available(limit, state, restMs)).toBe(available(limit, undefined, restMs));
      // A unit that is worth less than a millisecond, or than the last bit of the quota, cannot be seen to come back.
      if (unitUsOf(limit) < 1000 || limit.quota > 100) return;
      const charged = charge(limit, undefined, 1, nowMs);
      expect(used(limit, charged, atRestAtMs(limit, charged) - 1)).toBeGreaterThan(0);
    });
    expect(atRestAtMs(limitOf(algorithm, 1, 1000), undefined)).toBe(Number.NEGATIVE_INFINITY);
  });

  test('a million a second and one a year are kept to the unit', () => {
    const yearly = new Subject(limitOf(algorithm, 1, YEAR_MS));
    expect(yearly.at(0).ask(1).outcome).toBe('allowed');
    expect(yearly.at(MONTH_MS).ask(1).outcome).toBe('denied');
    const fast = new Subject(limitOf(algorithm, 1_000_000, 1000));
    if (algorithm === 'sliding_log') return;
    const whole = algorithm === 'leaky_bucket' ? 1 : 1_000_000;
    fast.at(0);
    expect(fast.available).toBe(whole);
    for (let i = 0; i < whole; i += 1) fast.ask(1);
    expect(fast.available).toBe(0);
    expect(fast.ask(1).outcome).toBe('denied');
  });
});

test('only fixed windows read the raw clock, and only their states move when it steps back', () => {
  for (const name of NAMES) {
    const limit = limitOf(name, 2, 1000);
    const state = charge(limit, undefined, 2, 5500);
    expect(clockOf(limit)).toBe(name === 'fixed_window' ? 'raw' : 'logical');
    const moved = afterStepBack(limit, state, 3500);
    if (name === 'fixed_window') expect(moved).toEqual({ startMs: 3000, count: 2 });
    else expect(moved).toBe(state);
  }
});
