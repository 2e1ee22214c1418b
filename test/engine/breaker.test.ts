import { describe, expect, test } from 'vitest';
import { Breaker, FleetBreaker } from '../../src/engine/breaker.ts';

type Event =
  | { readonly at: number; readonly failed: 'silent' | 'overloaded'; readonly change?: 'opened' }
  | { readonly at: number; readonly answered: true; readonly change?: 'closed' }
  | { readonly at: number; readonly advises: 'ask' | 'avoid' | 'probe'; readonly inFlight?: number };

const silent = (at: number) => ({ at, failed: 'silent' }) as const;

const cases: { name: string; events: readonly Event[] }[] = [
  {
    name: 'opens at the third failure in a row',
    events: [
      silent(0),
      silent(1),
      { at: 1, advises: 'ask' },
      { at: 2, failed: 'silent', change: 'opened' },
      { at: 3, advises: 'avoid' },
    ],
  },
  {
    name: 'an answer in between starts the count again',
    events: [
      silent(0),
      silent(1),
      { at: 2, answered: true },
      silent(3),
      silent(4),
      { at: 5, advises: 'ask' },
    ],
  },
  {
    name: 'opens at once when the owner says that it is overloaded',
    events: [
      { at: 0, failed: 'overloaded', change: 'opened' },
      { at: 1, advises: 'avoid' },
    ],
  },
  {
    name: 'probes once every half second, and nobody waits meanwhile',
    events: [
      { at: 0, failed: 'overloaded', change: 'opened' },
      { at: 499, advises: 'avoid' },
      { at: 500, advises: 'probe' },
      { at: 501, advises: 'avoid' },
      silent(600),
      { at: 1_099, advises: 'avoid' },
      { at: 1_100, advises: 'probe' },
    ],
  },
  {
    name: 'a probe that is never heard of is given up after a second and a half',
    events: [
      { at: 0, failed: 'overloaded', change: 'opened' },
      { at: 500, advises: 'probe' },
      { at: 1_999, advises: 'avoid' },
      { at: 2_000, advises: 'probe' },
    ],
  },
  {
    name: 'closes gradually: one at once, then two, then four ... and is closed at 64',
    events: [
      { at: 0, failed: 'overloaded', change: 'opened' },
      { at: 500, advises: 'probe' },
      { at: 501, answered: true },
      { at: 501, advises: 'ask', inFlight: 0 },
      { at: 501, advises: 'avoid', inFlight: 1 },
      { at: 502, answered: true },
      { at: 502, advises: 'ask', inFlight: 1 },
      { at: 502, advises: 'avoid', inFlight: 2 },
      ...[4, 8, 16, 32].flatMap((allowance, at) => [
        { at: 503 + at, answered: true } as const,
        { at: 503 + at, advises: 'ask', inFlight: allowance - 1 } as const,
        { at: 503 + at, advises: 'avoid', inFlight: allowance } as const,
      ]),
      { at: 510, answered: true, change: 'closed' },
      { at: 510, advises: 'ask', inFlight: 1_000 },
    ],
  },
  {
    name: 'a failure while it closes opens it again',
    events: [
      { at: 0, failed: 'overloaded', change: 'opened' },
      { at: 501, answered: true },
      silent(502),
      { at: 503, advises: 'avoid' },
      { at: 1_002, advises: 'probe' },
    ],
  },
];

test.each(cases)("an owner's breaker $name", ({ events }) => {
  const breaker = new Breaker();
  for (const event of events) {
    const place = JSON.stringify(event);
    if ('advises' in event) {
      expect(breaker.advise({ inFlight: event.inFlight ?? 0, nowMs: event.at }), place).toBe(event.advises);
    } else if ('answered' in event) expect(breaker.answered(), place).toBe(event.change);
    else {
      const overloaded = event.failed === 'overloaded';
      expect(breaker.failed({ overloaded, nowMs: event.at, jitter: 0 }), place).toBe(event.change);
    }
  }
});

test('probes of many isolates are spread over a tenth of a second', () => {
  const breaker = new Breaker();
  breaker.failed({ overloaded: true, nowMs: 0, jitter: 1 });
  expect(breaker.advise({ inFlight: 0, nowMs: 599 })).toBe('avoid');
  expect(breaker.advise({ inFlight: 0, nowMs: 600 })).toBe('probe');
});

describe("the fleet's breaker", () => {
  function failing(owners: number, { from = 10_000 } = {}) {
    const fleet = new FleetBreaker();
    const changes = Array.from({ length: owners }, (_, at) => fleet.failed(`owner ${at}`, from + at));
    return { fleet, changes };
  }

  test('opens when 20 distinct owners failed and none ever answered', () => {
    const { fleet, changes } = failing(20);
    expect(changes.filter(Boolean)).toEqual(['opened']);
    expect(changes[19]).toBe('opened');
    expect(fleet.advise(10_020)).toBe('avoid');
  });

  test('stays closed for 19, however often they fail', () => {
    const { fleet } = failing(19);
    for (let at = 0; at < 100; at += 1) expect(fleet.failed('owner 3', 20_000 + at)).toBeUndefined();
    expect(fleet.advise(30_000)).toBe('ask');
  });

  test('stays closed while any owner answered within two seconds', () => {
    const fleet = new FleetBreaker();
    fleet.answered(0);
    for (let at = 0; at < 30; at += 1) expect(fleet.failed(`owner ${at}`, 1_000 + at)).toBeUndefined();
    expect(fleet.failed('owner 1', 1_999)).toBeUndefined();
    expect(fleet.failed('owner 1', 2_000)).toBe('opened');
  });

  test('an answer of one owner forgets the failures of all', () => {
    const { fleet } = failing(19);
    fleet.answered(10_050);
    expect(fleet.failed('owner 99', 20_000)).toBeUndefined();
  });

  test('probes every half second with whoever comes, and closes with the first answer', () => {
    const { fleet } = failing(20);
    expect([10_518, 10_519, 10_520, 11_018, 11_019].map((atMs) => fleet.advise(atMs))).toEqual([
      'avoid',
      'probe',
      'avoid',
      'avoid',
      'probe',
    ]);
    expect(fleet.answered(11_020)).toBe('closed');
    expect(fleet.advise(11_021)).toBe('ask');
  });
});
