/** An owner that is slow for a while, and one that forgets and is then out of reach. */
import { boundOf, type Envelope } from '../../../src/engine/bound.ts';
import type { Winner } from '../../../src/policy/counter.ts';
import { HEALTHY } from '../faults.ts';
import type { Case, Happening, Scenario } from '../scenario.ts';
import type { Phase, Stream } from '../traffic.ts';
import { ANSWERED_WITHIN_MS, load, type PerSecond, perSecond } from './kit.ts';

const BROWNOUT_TIMES = 20;
const BROWNOUT = { fromMs: 2_000, toMs: 7_000 };

/** After a fault everybody stays below the limit until what is owed has come back, and at half of it once all must be well. */
const RECOVERY_LOAD = 0.3;
const CALM_LOAD = 0.5;

interface Fault {
  /** How many times the limit is asked for until the fault is over. */
  readonly times: number;
  readonly toMs: number;
  /** When all must be well. */
  readonly liveFromMs: number;
}

function phasesOf({ perSecond: limit }: PerSecond, { times, toMs, liveFromMs }: Fault): readonly Phase[] {
  return [
    { forMs: toMs, perSecond: limit * times },
    { forMs: liveFromMs - toMs, perSecond: limit * RECOVERY_LOAD },
    { forMs: 2_000, perSecond: limit * CALM_LOAD },
  ];
}

interface Brownout {
  readonly label: string;
  readonly rule: PerSecond;
  readonly times: number;
}

function brownoutCase({ label, rule, times }: Brownout): Case {
  return {
    label,
    plan: () => {
      const { fromMs, toMs } = BROWNOUT;
      const liveFromMs = toMs + 6_000;
      const phases = phasesOf(rule, { times, toMs, liveFromMs });
      return {
        isolates: 10,
        isDegraded: true,
        inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
        answeredWithinMs: ANSWERED_WITHIN_MS,
        streams: [load({ enforced: [perSecond(rule)] }, { isolates: 10, phases })],
        happenings: [
          {
            atMs: fromMs,
            happen: ({ world }) => {
              world.faults = { ...world.faults, serviceMs: BROWNOUT_TIMES * HEALTHY.serviceMs };
            },
          },
        ],
        heal: { atMs: toMs, liveFromMs },
      };
    },
  };
}

const brownout: Scenario = {
  name: 'brownout',
  about: 'an owner 20 times as slow as usual for five seconds: everybody is answered in time',
  cases: [
    brownoutCase({ label: '', rule: { perSecond: 2_000 }, times: 0.8 }),
    brownoutCase({ label: '2x', rule: { perSecond: 2_000 }, times: 2 }),
    brownoutCase({ label: 'strict', rule: { perSecond: 500, consistency: 'strict' }, times: 0.6 }),
  ],
};

const AWAY = { fromMs: 4_000, toMs: 16_000 };
const PROBE_AT_MS = 10_000;
const ISOLATES = 10;

/** What a scenario counts for itself while the owner is away. */
interface Tally {
  admitted: number;
}

interface Failover {
  readonly label: string;
  readonly rule: PerSecond;
  /** When it loses its memory: once nobody can reach it, or just before, when its new life still answers a few and knows of no demand yet. */
  readonly evictedAtMs: number;
}

/** The owner forgets what it has not written, and is away for 12 s. */
function failoverCase({ label, rule, evictedAtMs }: Failover): Case {
  return {
    label,
    plan: () => {
      const enforced = [perSecond({ burst: 2 * rule.perSecond, ...rule })];
      const tally: Tally = { admitted: 0 };
      const liveFromMs = AWAY.toMs + 12_000;
      const phases = phasesOf(rule, { times: 3, toMs: AWAY.toMs, liveFromMs });
      const request: Stream['request'] = (random) => ({
        group: 'all',
        isolate: random.below(ISOLATES),
        enforced,
        heard: ({ verdict }, { world }) => {
          const nowMs = world.time.elapsedMs;
          if (verdict.outcome === 'allowed' && nowMs >= AWAY.fromMs && nowMs < AWAY.toMs) tally.admitted += 1;
        },
      });
      return {
        isolates: ISOLATES,
        isDegraded: true,
        inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
        answeredWithinMs: ANSWERED_WITHIN_MS,
        streams: [{ phases, request }],
        happenings: [evicted(enforced, evictedAtMs), away, probe(enforced), compared(enforced, tally)],
        heal: { atMs: AWAY.toMs, liveFromMs },
      };
    },
  };
}

const away: Happening = {
  atMs: AWAY.fromMs,
  happen: ({ world }) => {
    world.faults = { ...world.faults, callsLost: 1 };
  },
};

function evicted(enforced: readonly Winner[], atMs: number): Happening {
  return {
    atMs,
    happen: (stage) => {
      const { world } = stage;
      const { counterId, owner } = enforced[0]!;
      const server = world.owner(owner.name);
      const before = server.host.used(counterId);
      server.evict();
      const forgotten = before - server.host.used(counterId);
      stage.remark(`the owner forgot ${Math.round(forgotten)} units that it had not written.`);
    },
  };
}

/** One request in the middle of it all, which says why it was decided without its owner. */
function probe(enforced: readonly Winner[]): Happening {
  return {
    atMs: PROBE_AT_MS,
    happen: (stage) =>
      stage.send({
        group: 'probe',
        isolate: 3,
        enforced,
        heard: (heard) => stage.remark(`probe: ${stage.witness.why(heard)}`),
      }),
  };
}

function compared(enforced: readonly Winner[], tally: Tally): Happening {
  return {
    atMs: AWAY.toMs,
    happen: (stage) => {
      const { rule } = enforced[0]!;
      const bound = boundOf(rule, { isolates: ISOLATES, blindIsolates: 0, largestCost: 1 })!;
      const seconds = (AWAY.toMs - AWAY.fromMs) / 1_000;
      const allowed = (envelope: Envelope) =>
        envelope.burstUnits + envelope.unitsPerSecond * seconds + bound.crashUnits;
      const { burstUnits, unitsPerSecond } = bound.fallback;
      if (tally.admitted > allowed(bound.fallback))
        stage.breach(
          `${tally.admitted} units in ${seconds} s without the owner, above what boundOf computes`,
        );
      stage.remark(
        `in ${seconds} s without the owner ${tally.admitted} units were admitted; boundOf allows ${Math.round(allowed(bound.fallback))} ` +
          `(${Math.round(burstUnits)} at once, ${Math.round(unitsPerSecond)} a second, ${Math.round(bound.crashUnits)} for the crash), ` +
          `${Math.round(allowed(bound.flapping))} if the owner answers now and then; the rate alone is ${Math.round(bound.limit.unitsPerSecond * seconds)}.`,
      );
    },
  };
}

const failover: Scenario = {
  name: 'failover',
  about:
    'the owner loses up to a second of counts and is then out of reach for 12 s, at three times the limit',
  cases: [
    failoverCase({ label: '', rule: { perSecond: 500 }, evictedAtMs: AWAY.fromMs + 40 }),
    failoverCase({
      label: 'strict',
      rule: { perSecond: 200, consistency: 'strict' },
      evictedAtMs: AWAY.fromMs + 40,
    }),
    failoverCase({
      label: 'strict restarted',
      rule: { perSecond: 200, consistency: 'strict' },
      evictedAtMs: AWAY.fromMs - 40,
    }),
  ],
};

export const OWNERS: readonly Scenario[] = [brownout, failover];
