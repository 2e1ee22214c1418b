/** Requests that several counters have a say in, and requests that are not all alike. */
import type { Winner } from '../../../src/policy/counter.ts';
import { MINUTE_MS, winner } from '../rules.ts';
import type { Case, Happening, Plan, Scenario } from '../scenario.ts';
import type { Phase, Stream } from '../traffic.ts';
import { load, OVERLOAD_MS, perSecond } from './kit.ts';

const USERS_PER_ORG = 100;
const ISOLATES = 20;

/** 100 a second. */
function userRule(org: number, user: number): Winner {
  return perSecond({ perSecond: 100, policy: 'user', owner: `user ${org}.${user}` });
}

/** 10,000 a second. */
function orgRule(org: number, burst = 10_000): Winner {
  return perSecond({ perSecond: 10_000, burst, policy: 'org', owner: `org ${org}` });
}

/** A caller's connections lead to few isolates. */
function isolateOf(user: number, either: number): number {
  return (user + 7 * either) % ISOLATES;
}

interface Users {
  readonly group: string;
  readonly phases: readonly Phase[];
  readonly org: number;
  readonly count: number;
  /** What counts them all. */
  readonly shared: readonly Winner[];
}

/** Users of an organisation, each as busy as the others. */
function users({ group, phases, org, count, shared }: Users): Stream {
  const rules = Array.from({ length: count }, (_, user) => [userRule(org, user), ...shared]);
  return {
    phases,
    request: (random) => {
      const user = random.below(count);
      return { group, isolate: isolateOf(user, random.below(2)), enforced: rules[user]! };
    },
  };
}

/** Six organisations, each at `times` 8,000 a second. */
function manyCase(times: number): Case {
  return {
    label: `${times}x`,
    plan: () => {
      const all = perSecond({ perSecond: 50_000, burst: 10_000, policy: 'all', owner: 'all' });
      const phases = [{ forMs: times > 1 ? OVERLOAD_MS : 2_000, perSecond: 8_000 * times }];
      const streams = Array.from({ length: 6 }, (_, org) =>
        users({ group: `org ${org}`, phases, org, count: USERS_PER_ORG, shared: [orgRule(org), all] }),
      );
      return { isolates: ISOLATES, streams };
    },
  };
}

/** Users beyond their own limits, and one with a large limit that uses up what their organisation has: each is denied by both. */
const strictCase: Case = {
  label: 'strict',
  plan: () => {
    const org = perSecond({ perSecond: 300, policy: 'org', owner: 'org', consistency: 'strict' });
    const rules = [60, 60, 60, 1_000].map((limit, user) => [
      perSecond({ perSecond: limit, policy: 'user', owner: `user ${user}`, consistency: 'strict' }),
      org,
    ]);
    const request: Stream['request'] = (random) => ({
      group: 'all',
      isolate: random.below(4),
      enforced: random.oneOf(rules),
    });
    return { isolates: 4, streams: [{ phases: [{ forMs: 6_000, perSecond: 800 }], request }] };
  },
};

const manyLimits: Scenario = {
  name: 'many-limits',
  about: '100 a second for each user, 10,000 for each organisation, 50,000 in all',
  cases: [manyCase(0.8), manyCase(1.5), strictCase],
};

const noisyUser: Scenario = {
  name: 'noisy-user',
  about: 'one user at 100 times its limit: nobody else of its organisation is refused',
  cases: [
    noisyCase({ label: '', load: 0.5, burst: 10_000 }),
    noisyCase({ label: '0.9x', load: 0.9, burst: 10_000 }),
    { ...noisyCase({ label: '0.9x small-burst', load: 0.9, burst: 2_000 }), isKnownToBreak: true },
    noisyCase({ label: '0.8x later', load: 0.8, burst: 2_000, fromMs: 1_000 }),
  ],
};

/** What the one tenant sends, of its own limit. */
const NEIGHBOUR_TIMES = 20;

const noisyNeighbour: Scenario = {
  name: 'noisy-neighbour',
  about:
    'one tenant at 20 times its limit: tenants that share isolates and a larger limit with it are refused nothing',
  cases: [
    noisyCase({ label: '', load: 0.8, burst: 10_000, times: NEIGHBOUR_TIMES }),
    noisyCase({ label: 'later', load: 0.8, burst: 10_000, times: NEIGHBOUR_TIMES, fromMs: 1_000 }),
    largeTenantsCase('large'),
  ],
};

/** Ten tenants in every isolate, each large enough to be leased; the shared limit is asked for 0.6 by what is inside its quota. */
function largeTenantsCase(label: string): Case {
  return {
    label,
    plan: () => {
      const shared = orgRule(0);
      const [noisy, ...others] = Array.from({ length: 11 }, (_, at) => [
        perSecond({ perSecond: 1_000, policy: 'tenant', owner: `tenant ${at}` }),
        shared,
      ]);
      const tenant = (enforced: readonly Winner[], group: string, times: number) =>
        load(
          { enforced },
          { isolates: ISOLATES, group, phases: [{ forMs: 2_500, perSecond: 1_000 * times }] },
        );
      return {
        isolates: ISOLATES,
        streams: [
          tenant(noisy!, 'noisy', NEIGHBOUR_TIMES),
          ...others.map((enforced, at) => tenant(enforced, `tenant ${at + 1}`, 0.5)),
        ],
      };
    },
  };
}

interface Noisy {
  readonly label: string;
  /** How much of the organisation's limit the others ask for; each of them is at half of its own. */
  readonly load: number;
  readonly burst: number;
  /** What the one user sends, of its own limit; 100 unless said. */
  readonly times?: number;
  /** When the one user begins. */
  readonly fromMs?: number;
}

function noisyCase({ label, load: ofShared, burst, times = 100, fromMs = 0 }: Noisy): Case {
  return {
    label,
    plan: () => {
      const perSecondOfOthers = 10_000 * ofShared;
      const count = perSecondOfOthers / 50;
      const org = orgRule(0, burst);
      const others = users({
        group: 'others',
        phases: [{ forMs: 4_000, perSecond: perSecondOfOthers }],
        org: 0,
        count,
        shared: [org],
      });
      const noisy = load(
        { enforced: [userRule(0, count), org] },
        {
          isolates: ISOLATES,
          spread: (random) => isolateOf(count, random.below(2)),
          group: 'noisy',
          phases: [
            { forMs: fromMs, perSecond: 0 },
            { forMs: 4_000 - fromMs, perSecond: 100 * times },
          ],
        },
      );
      return { isolates: ISOLATES, streams: [others, noisy] };
    },
  };
}

const COSTS = [1, 1, 1, 1, 2, 5, 10, 50];
const MEAN_COST = COSTS.reduce((sum, cost) => sum + cost, 0) / COSTS.length;

const costs: Scenario = {
  name: 'costs',
  about: 'requests of 1 to 50 units',
  cases: [0.7, 1.5].map((times) => ({
    label: `${times}x`,
    plan: () => {
      const enforced = [perSecond({ perSecond: 10_000 })];
      const phases = [{ forMs: OVERLOAD_MS, perSecond: (10_000 * times) / MEAN_COST }];
      const request: Stream['request'] = (random) => ({
        group: 'all',
        isolate: random.below(10),
        enforced,
        cost: random.oneOf(COSTS),
      });
      return { isolates: 10, largestCost: Math.max(...COSTS), streams: [{ phases, request }] };
    },
  })),
};

/** So long that an isolate that dies keeps its slots for a while, and that a slot is not renewed while a request of these lasts. */
const SLOT_LIFE_MS = 10_000;
const AT_ONCE = 50;
const LASTS_MS = 250;

/** Requests that last a quarter of a second on average, `times` as many as there are slots for. */
function concurrencyCase(label: string, times: number, more: Partial<Plan> = {}): Case {
  return {
    label,
    plan: () => {
      const slots = {
        quota: AT_ONCE,
        windowMs: SLOT_LIFE_MS,
        algorithm: 'concurrency',
        policy: 'slots',
      } as const;
      const enforced = [winner(slots), perSecond({ perSecond: 10_000, policy: 'rate' })];
      const request: Stream['request'] = (random) => ({
        group: 'all',
        isolate: random.below(10),
        enforced,
        lastsMs: random.exponential(LASTS_MS),
      });
      const phases = [{ forMs: 5_000, perSecond: (AT_ONCE * times * 1_000) / LASTS_MS }];
      return { isolates: 10, streams: [{ phases, request }], ...more };
    },
  };
}

const concurrency: Scenario = {
  name: 'concurrency',
  about: '50 requests in progress at once, of a quarter of a second each; beside a rate',
  cases: [
    concurrencyCase('0.5x', 0.5),
    concurrencyCase('2x', 2),
    concurrencyCase('deaths', 0.3, {
      happenings: [1_000, 2_000, 3_000].map((atMs, isolate) => ({
        atMs,
        happen: ({ world }) => world.killIsolate(isolate),
      })),
    }),
  ],
};

const coldParallel: Scenario = {
  name: 'cold-parallel',
  about: '100 at once in a cold isolate, of 100 a minute, are all admitted; the next is not',
  cases: [
    {
      label: '',
      plan: () => {
        const enforced = [perSecond({ perSecond: 100, windowMs: MINUTE_MS })];
        const send = (atMs: number, group: string, times: number): Happening => ({
          atMs,
          happen: (stage) => {
            for (let count = 0; count < times; count += 1) stage.send({ group, isolate: 0, enforced });
          },
        });
        return { isolates: 1, streams: [], happenings: [send(0, 'first', 100), send(300, 'next', 1)] };
      },
    },
  ],
};

const ruleChange: Scenario = {
  name: 'rule-change',
  about: 'a limit of 2,000 a second, lowered to 500, then raised to 4,000, at a load of 3,000',
  cases: [
    {
      label: '',
      plan: () => {
        let enforced = [perSecond({ perSecond: 2_000 })];
        const change = (atMs: number, activation: number, limit: number): Happening => ({
          atMs,
          happen: (stage) => {
            enforced = [perSecond({ perSecond: limit })];
            stage.adopt({ activation, builtAtMs: 0 });
          },
        });
        const request: Stream['request'] = (random) => ({
          group: 'all',
          isolate: random.below(10),
          enforced,
        });
        return {
          isolates: 10,
          streams: [{ phases: [{ forMs: 8_000, perSecond: 3_000 }], request }],
          happenings: [change(3_000, 2, 500), change(6_000, 3, 4_000)],
        };
      },
    },
  ],
};

export const CALLERS: readonly Scenario[] = [
  manyLimits,
  noisyUser,
  noisyNeighbour,
  costs,
  concurrency,
  coldParallel,
  ruleChange,
];
