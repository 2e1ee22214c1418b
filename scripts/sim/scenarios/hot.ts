/** One counter that is asked for far more often than its owner could answer. */
import { type Draw, zipf } from '../random.ts';
import type { Case, Scenario } from '../scenario.ts';
import { type Phase, repeated, type Stream } from '../traffic.ts';
import { load, OVERLOAD_MS, type PerSecond, perSecond } from './kit.ts';

interface OneKey {
  readonly label?: string;
  readonly rule: PerSecond;
  readonly isolates: number;
  readonly spread?: Draw;
  readonly phases: readonly Phase[];
}

/** One rule, one caller, requests of one unit. */
function oneKey({ label = '', rule, isolates, phases, ...options }: OneKey): Case {
  const enforced = [perSecond(rule)];
  return {
    label,
    plan: () => ({ isolates, streams: [load({ enforced }, { isolates, phases, ...options })] }),
  };
}

/** A tight shadow rule rides along, which must change nothing. */
const steady: Scenario = {
  name: 'steady',
  about: 'a caller at 0.7 of its limit, beside a shadow rule that it exceeds',
  cases: (['token_bucket', 'fixed_window'] as const).map((algorithm) => ({
    label: algorithm === 'fixed_window' ? 'window' : '',
    plan: () => {
      const enforced = [perSecond({ perSecond: 1_000, algorithm })];
      const shadow = [perSecond({ perSecond: 100, policy: 'trial', shadow: true })];
      const phases = [{ forMs: 6_000, perSecond: 700 }];
      return { isolates: 10, streams: [load({ enforced, shadow }, { isolates: 10, phases })] };
    },
  })),
};

const hotKey: Scenario = {
  name: 'hot-key',
  about: 'a key of 20,000 a second over 8 isolates',
  cases: [0.8, 2].map((times) =>
    oneKey({
      label: `${times}x`,
      rule: { perSecond: 20_000 },
      isolates: 8,
      phases: [{ forMs: OVERLOAD_MS, perSecond: 20_000 * times }],
    }),
  ),
};

const onset: Scenario = {
  name: 'onset',
  about:
    'a cold key at once at 50,000 a second of 10,000, over 100 isolates; at 20,000, of an object that is slow to start; or in ten more isolates than before',
  cases: [
    oneKey({
      rule: { perSecond: 10_000 },
      isolates: 100,
      phases: [{ forMs: OVERLOAD_MS, perSecond: 50_000 }],
    }),
    slowStartCase(),
    newcomersCase(),
  ],
};

/** A first lease may be over before it comes. */
function slowStartCase(): Case {
  const isolates = 100;
  const enforced = [perSecond({ perSecond: 10_000 })];
  const phases = [{ forMs: OVERLOAD_MS, perSecond: 20_000 }];
  return {
    label: 'slow start',
    plan: () => ({ isolates, faults: { startMs: 350 }, streams: [load({ enforced }, { isolates, phases })] }),
  };
}

/** Ten isolates live well on their leases when ten others begin to ask for as much. */
function newcomersCase(): Case {
  const enforced = [perSecond({ perSecond: 2_000 })];
  const stream = (firstIsolate: number, phases: readonly Phase[]): Stream => ({
    phases,
    request: (random) => ({ group: 'all', isolate: firstIsolate + random.below(10), enforced }),
  });
  return {
    label: 'newcomers',
    plan: () => ({
      isolates: 20,
      streams: [
        stream(0, [{ forMs: 2_000 + OVERLOAD_MS, perSecond: 1_800 }]),
        stream(10, [
          { forMs: 2_000, perSecond: 0 },
          { forMs: OVERLOAD_MS, perSecond: 1_800 },
        ]),
      ],
    }),
  };
}

const flood: Scenario = {
  name: 'flood',
  about: 'a caller of 100 a minute that sends 5,000 a second',
  cases: [
    oneKey({
      rule: { perSecond: 100, windowMs: 60_000 },
      isolates: 10,
      phases: [{ forMs: 10_000, perSecond: 5_000 }],
    }),
  ],
};

const skew: Scenario = {
  name: 'skew',
  about: '10,000 a second over 100 isolates, the k-th of which gets 1/k of what the first gets',
  cases: [0.9, 1.5, 5].map((times) =>
    oneKey({
      label: `${times}x`,
      rule: { perSecond: 10_000 },
      isolates: 100,
      spread: zipf(100),
      phases: [{ forMs: OVERLOAD_MS, perSecond: 10_000 * times }],
    }),
  ),
};

/** A pause in which everything comes to rest; and one in which the owner's bucket fills up while leases are still out. */
const pauseFlood: Scenario = {
  name: 'pause-flood',
  about: 'below the limit, a pause, then several times the limit',
  cases: [
    pauseCase({ label: '', load: 0.5, pauseMs: 3_000, flood: 5 }),
    pauseCase({ label: 'short', load: 0.9, pauseMs: 400, flood: 3 }),
  ],
};

interface Pause {
  readonly label: string;
  readonly load: number;
  readonly pauseMs: number;
  readonly flood: number;
}

function pauseCase({ label, load: times, pauseMs, flood: floodTimes }: Pause): Case {
  return oneKey({
    label,
    rule: { perSecond: 2_000 },
    isolates: 10,
    phases: [
      { forMs: 2_000, perSecond: 2_000 * times },
      { forMs: pauseMs, perSecond: 0 },
      { forMs: OVERLOAD_MS, perSecond: 2_000 * floodTimes },
    ],
  });
}

const onOff: Scenario = {
  name: 'on-off',
  about: 'a quarter of a second at 1.6 times the limit, a quarter of nothing, and again',
  cases: [
    oneKey({
      rule: { perSecond: 2_000 },
      isolates: 10,
      phases: repeated(
        [
          { forMs: 250, perSecond: 3_200 },
          { forMs: 250, perSecond: 0 },
        ],
        8_000,
      ),
    }),
  ],
};

const smallBurst: Scenario = {
  name: 'small-burst',
  about: 'a burst of a tenth of a second of the rate',
  cases: [0.7, 1.5].map((times) =>
    oneKey({
      label: `${times}x`,
      rule: { perSecond: 2_000, burst: 200 },
      isolates: 10,
      phases: [{ forMs: OVERLOAD_MS, perSecond: 2_000 * times }],
    }),
  ),
};

/** Rules that do not say how they want to be asked for, of a size that most have: each isolate asks too seldom to be lent anything. */
const shared: Scenario = {
  name: 'shared',
  about: 'a limit of 100 a second that 12 isolates ask for now and then',
  cases: [100, 20].flatMap((burst) =>
    [0.9, 2].map((times) =>
      oneKey({
        label: `${burst === 100 ? '' : 'small-burst '}${times}x`,
        rule: { perSecond: 100, burst },
        isolates: 12,
        phases: [{ forMs: OVERLOAD_MS, perSecond: 100 * times }],
      }),
    ),
  ),
};

/** A key that becomes hot in two seconds, in more isolates than one object can answer; and one that does so in a moment, which is more still. */
const split: Scenario = {
  name: 'split',
  about: 'a key of 10,000 a second in 2,000 isolates: its owner becomes the root of slices',
  cases: [
    splitCase('0.9x', [900, 3_600, ...nine(8)]),
    splitCase('0.9x at once', nine(10)),
    // The first pause is shorter than the owner remembers, the second is longer.
    splitCase('0.9x pauses', [900, 3_600, ...nine(2), ...none(4), ...nine(2), ...none(15), ...nine(2)]),
    splitCase('5x onset', [5_000, 20_000, 50_000, 50_000, 50_000, 50_000]),
    // As long as the overloads of regions: what a cold start loses it loses once.
    { ...splitCase('5x', [5_000, 20_000, ...Array.from({ length: 28 }, () => 50_000)]), isLong: true },
  ],
};

/** Seconds at nine tenths of the limit, and seconds of nothing. */
function nine(seconds: number): readonly number[] {
  return Array.from({ length: seconds }, () => 9_000);
}

function none(seconds: number): readonly number[] {
  return Array.from({ length: seconds }, () => 0);
}

function splitCase(label: string, perSecondBySecond: readonly number[]): Case {
  const isolates = 2_000;
  const phases = perSecondBySecond.map((each) => ({ forMs: 1_000, perSecond: each }));
  const enforced = [perSecond({ perSecond: 10_000 })];
  // Before the owner has answered them all once, some have to do without.
  const without = { isDegraded: true, inQuotaRefusalsMax: Number.POSITIVE_INFINITY };
  return {
    label,
    plan: () => ({ isolates, ...without, streams: [load({ enforced }, { isolates, phases })] }),
  };
}

export const HOT: readonly Scenario[] = [
  split,
  steady,
  hotKey,
  onset,
  flood,
  skew,
  pauseFlood,
  onOff,
  smallBurst,
  shared,
];
