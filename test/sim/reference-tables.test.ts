/**
 * Figures that are told of distributed limiters, each made again: those of other designs on top of our arithmetic, and ours beside them.
 *
 * A figure stands here once, as what is expected; what it is compared with has been counted. Where the burst of a bucket has a part in
 * what was admitted, it is told apart from what the rate admitted.
 */
import { afterAll, describe, expect, test } from 'vitest';
import { HEALTHY, roundTripMs } from '../../scripts/sim/faults.ts';
import { Random } from '../../scripts/sim/random.ts';
import { Excess } from '../../scripts/sim/reference.ts';
import { type LimitOptions, limitOf, MINUTE_MS, SECOND_MS, winner } from '../../scripts/sim/rules.ts';
import { load } from '../../scripts/sim/scenarios/kit.ts';
import { simulate } from '../../scripts/sim/simulation.ts';
import { startStream } from '../../scripts/sim/traffic.ts';
import { World } from '../../scripts/sim/world.ts';
import { available, type CounterState, charge, decide, used } from '../../src/core/algorithms.ts';
import { BucketTable } from '../../src/core/bucket-table.ts';
import type { Limit } from '../../src/core/decision.ts';
import { boundOf } from '../../src/engine/bound.ts';
import type { Winner } from '../../src/policy/counter.ts';

const SEED = 1;
const FIRST_VERSION = { activation: 1, builtAtMs: 0 };

/** What was measured, a line for each figure; printed at the end. */
const lines: string[] = [];

afterAll(() => console.log(lines.join('\n')));

interface Limiter {
  admits(nowMs: number): boolean;
}

/** One counter of any algorithm. */
class Counter implements Limiter {
  readonly limit: Limit;
  state: CounterState | undefined;

  constructor(options: LimitOptions) {
    this.limit = limitOf(options);
  }

  admits(nowMs: number): boolean {
    const { decision, state } = decide(this.limit, this.state, 1, nowMs);
    this.state = state;
    return decision.outcome === 'allowed';
  }
}

/** One bucket in a table of its own, as an isolate keeps them. */
class Bucket implements Limiter {
  readonly #table = new BucketTable({ slots: 1, seed: SEED });
  readonly #limit: Limit;

  constructor(limit: Limit) {
    this.#limit = limit;
  }

  admits(nowMs: number): boolean {
    return this.#table.decide('caller', this.#limit, 1, nowMs).outcome === 'allowed';
  }
}

/** So many limiters, each made anew. */
function fleet<Kind extends Limiter>(count: number, make: () => Kind): readonly Kind[] {
  return Array.from({ length: count }, make);
}

/** How many of so many requests at one instant are admitted. */
function ask(limiter: Limiter, { atMs, requests }: { atMs: number; requests: number }): number {
  let admitted = 0;
  for (let request = 0; request < requests; request += 1) if (limiter.admits(atMs)) admitted += 1;
  return admitted;
}

interface Span {
  readonly fromMs: number;
  /** Included. */
  readonly toMs: number;
  readonly everyMs: number;
}

/** Far more than any burst here: a limiter that never denies is to fail its test, and not to hang it. */
const AT_ONCE_MAX = 1_000;

function untilDenied(limiter: Limiter, nowMs: number): number {
  let admitted = 0;
  while (admitted < AT_ONCE_MAX && limiter.admits(nowMs)) admitted += 1;
  return admitted;
}

/** What a caller gets that asks each limiter until it denies, again and again. */
function flood(limiters: readonly Limiter[], { fromMs, toMs, everyMs }: Span): number {
  let admitted = 0;
  for (let nowMs = fromMs; nowMs <= toMs; nowMs += everyMs) {
    for (const limiter of limiters) admitted += untilDenied(limiter, nowMs);
  }
  return admitted;
}

describe('N limiters that know nothing of each other admit N x R', () => {
  test.each([
    { count: 3, quota: 50, burst: 5, windowMs: SECOND_MS, windows: 60, perWindow: 150 },
    { count: 12, quota: 1_200, burst: 20, windowMs: MINUTE_MS, windows: 2, perWindow: 14_400 },
    { count: 200, quota: 100, burst: 10, windowMs: SECOND_MS, windows: 10, perWindow: 20_000 },
  ])('$count of $quota in $windowMs ms: $perWindow', (row) => {
    const { count, quota, burst, windowMs, windows, perWindow } = row;
    const { rule } = winner({ quota, windowMs, burst, scope: 'local' });
    // Four times for each unit that comes back, so that most are denied.
    const everyMs = windowMs / quota / 4;
    const admittedBy = (limiters: readonly Limiter[]) => ({
      atOnce: flood(limiters, { fromMs: 0, toMs: 0, everyMs }),
      after: flood(limiters, { fromMs: everyMs, toMs: windows * windowMs, everyMs }),
    });
    const apart = admittedBy(fleet(count, () => new Bucket(rule.limit!)));
    const one = new Bucket(rule.limit!);
    const together = admittedBy(fleet(count, () => one));

    expect(apart).toEqual({ atOnce: count * burst, after: windows * perWindow });
    expect(together).toEqual({ atOnce: burst, after: windows * quota });
    const { steady } = boundOf(rule, { isolates: count, blindIsolates: 0, largestCost: 1 })!;
    expect(steady.burstUnits).toBe(apart.atOnce);
    expect((steady.unitsPerSecond * windows * windowMs) / SECOND_MS).toBeCloseTo(apart.after, 6);
    lines.push(
      `${count} x ${quota}: ${apart.after / windows} a window, beside ${apart.atOnce} of the bursts; one bucket for all: ${together.after / windows} and ${together.atOnce}`,
    );
  });
});

describe('windows', () => {
  test.each([
    { algorithm: 'fixed_window', times: 2 },
    { algorithm: 'sliding_log', times: 1 },
    { algorithm: 'sliding_window', times: 1 },
  ] as const)('$algorithm: $times x L around the edge', ({ algorithm, times }) => {
    const counter = new Counter({ quota: 100, algorithm });
    const before = ask(counter, { atMs: MINUTE_MS - 1, requests: 150 });
    const after = ask(counter, { atMs: MINUTE_MS, requests: 150 });
    expect([before, after]).toEqual([100, (times - 1) * 100]);
    lines.push(`${algorithm} of 100: ${before + after} within the two milliseconds around the edge`);
  });

  test('two windows: 80 in the last one, 30 in this, of which a quarter has gone: 90', () => {
    const counter = new Counter({ quota: 100, algorithm: 'sliding_window' });
    const atMs = 1.25 * MINUTE_MS;
    expect(ask(counter, { atMs: MINUTE_MS / 2, requests: 80 })).toBe(80);
    expect(ask(counter, { atMs, requests: 30 })).toBe(30);
    const estimate = used(counter.limit, counter.state, atMs);
    expect(estimate).toBe(90);
    expect(ask(counter, { atMs, requests: 50 })).toBe(10);
    lines.push(`80 before, 30 now, at 25%: ${estimate}`);
  });
});

/**
 * One quota for several instances that tell each other every so often what they have admitted. Between two syncs each goes on, at the pace
 * of the whole limit and with a margin above it, if any of the quota was left at the last one.
 */
class Synced {
  readonly instances: readonly Limiter[];
  /** Without a margin each still has the unit that it admits next. */
  readonly burst: number;
  readonly #all: Counter;
  #unsent = 0;
  #isOpen = true;

  constructor(count: number, { quota, margin }: { quota: number; margin: number }) {
    this.burst = Math.max(1, margin * quota);
    this.#all = new Counter({ quota, algorithm: 'fixed_window' });
    const pace = limitOf({ quota, burst: this.burst });
    this.instances = fleet(count, () => {
      const bucket = new Bucket(pace);
      return { admits: (nowMs) => this.#isOpen && this.#counted(bucket.admits(nowMs)) };
    });
  }

  sync(nowMs: number): void {
    const { limit, state } = this.#all;
    this.#all.state = charge(limit, state, this.#unsent, nowMs);
    this.#unsent = 0;
    this.#isOpen = available(limit, this.#all.state, nowMs) >= 1;
  }

  #counted(isAdmitted: boolean): boolean {
    if (isAdmitted) this.#unsent += 1;
    return isAdmitted;
  }
}

describe('N limiters that sync every T admit N x L x (T / W + margin) more', () => {
  const COUNT = 12;
  const QUOTA = 1_200;
  const SYNC_MS = 5 * SECOND_MS;

  test.each([
    { margin: 0, more: 1_200 },
    { margin: 0.1, more: 2_640 },
  ])('12 of 1,200 a minute every 5 s, margin $margin: $more', ({ margin, more }) => {
    const synced = new Synced(COUNT, { quota: QUOTA, margin });
    // One request every 25 ms, by turns, until a single unit is left; all at once then, from one sync on, for as long as the minute lasts.
    let quiet = 0;
    for (let at = 0; at < QUOTA - 1; at += 1) {
      const nowMs = at * 25;
      if (nowMs % SYNC_MS === 0) synced.sync(nowMs);
      if (synced.instances[at % COUNT]!.admits(nowMs)) quiet += 1;
    }
    const fromMs = MINUTE_MS / 2 + SYNC_MS;
    synced.sync(fromMs);
    const unseen = flood(synced.instances, { fromMs, toMs: fromMs + SYNC_MS, everyMs: 10 });
    synced.sync(fromMs + SYNC_MS);
    const seen = flood(synced.instances, { fromMs: fromMs + SYNC_MS, toMs: MINUTE_MS - 1, everyMs: 10 });

    expect([quiet, seen]).toEqual([QUOTA - 1, 0]);
    const ofBursts = COUNT * (synced.burst - margin * QUOTA);
    expect(unseen - ofBursts).toBe(more);
    lines.push(
      `synced every 5 s, margin ${margin}: ${unseen - ofBursts} where one unit was left, beside ${ofBursts} of the bursts`,
    );
  });
});

describe('leases to 12 instances, of 1,200 a minute', () => {
  const NAIVE = 15_840;

  test('110 every 5 s to each, deducted nowhere: 15,840 a minute', () => {
    const leases = fleet(
      12,
      () => new Counter({ quota: 110, windowMs: 5 * SECOND_MS, algorithm: 'fixed_window' }),
    );
    const admitted = flood(leases, { fromMs: 0, toMs: MINUTE_MS - 1, everyMs: 100 });
    expect(admitted).toBe(NAIVE);
    lines.push(`leases of 110 per 5 s to 12: ${admitted} a minute`);
  });

  test('ours, offered as much: burst + rate x (t + one round trip), and hardly less', async () => {
    const rule = winner({ quota: 1_200, burst: 110, consistency: 'leased' });
    const phases = [{ forMs: MINUTE_MS, perSecond: NAIVE / 60 }];
    const plan = () => ({ isolates: 12, streams: [load({ enforced: [rule] }, { isolates: 12, phases })] });
    const { violation, figures } = await simulate({ plan }, { seed: SEED });
    const most = 110 + (1_200 / MINUTE_MS) * (MINUTE_MS + roundTripMs(HEALTHY));
    const seeded = `seed ${SEED}`;
    expect(violation, seeded).toBeUndefined();
    expect(figures.overAdmission, seeded).toBe(0);
    expect(figures.admitted, seeded).toBeLessThanOrEqual(most);
    expect(figures.admitted, seeded).toBeGreaterThanOrEqual(0.98 * most);
    lines.push(
      `our leases to 12, ${figures.offered} offered: ${figures.admitted} a minute, of ${most.toFixed(1)} that may be; calls for ${(figures.callsPerThousand / 10).toFixed(0)}% of requests`,
    );
  });
});

interface OutageOptions {
  readonly limited: Winner;
  readonly toldIsolates: number;
  readonly blindIsolates: number;
  readonly perSecond: number;
  readonly forMs: number;
  readonly admitted: (atMs: number) => void;
}

/** The owner tells its shares for a while, then is not heard of for `forMs`, in which isolates are asked that it never told any. */
async function outage(options: OutageOptions): Promise<void> {
  const { limited, toldIsolates, blindIsolates, perSecond, forMs, admitted } = options;
  const observer = {
    sent: () => {},
    beforeHandling: () => {},
    handled: () => {},
    problem: (problem: unknown) => expect.unreachable(String(problem)),
  };
  const isolates = toldIsolates + blindIsolates;
  const world = new World({ seed: SEED, isolates, faults: HEALTHY, observer, interference: {} });
  const { time } = world;
  const random = new Random(SEED).fork('traffic');
  const asked = { version: FIRST_VERSION, enforced: [limited], shadow: [], cost: 1, largestCost: 1 };
  const send = async ({ among, lastsMs }: { among: number; lastsMs: number }, count: () => void) => {
    const phases = [{ forMs: lastsMs, perSecond }];
    startStream(load({ enforced: [limited] }, { isolates: among, phases }), {
      time,
      random: random.fork(`among ${among}, for ${lastsMs}`),
      send: ({ isolate }) =>
        world.isolates[isolate]!.decide({ ...asked, deadlineMs: 150 }, ({ outcome }) => {
          if (outcome === 'allowed') count();
        }),
    });
    await time.advance(lastsMs);
  };
  await send({ among: toldIsolates, lastsMs: 20 * SECOND_MS }, () => {});
  world.faults = { ...HEALTHY, callsLost: 1 };
  await send({ among: isolates, lastsMs: forMs }, () => admitted(time.elapsedMs));
}

describe('40 s without the store: 1.3 x the limit in a published test', () => {
  const PUBLISHED = 1.3;
  const FOR_SECONDS = 40;

  test.each([
    { consistency: 'strict', blindIsolates: 0, rateFactor: 1.2 },
    { consistency: 'leased', blindIsolates: 0, rateFactor: 1.2 },
    { consistency: 'leased', blindIsolates: 4, rateFactor: 1.44 },
  ] as const)('ours, $consistency, $blindIsolates blind: $rateFactor x at most', async (row) => {
    const { consistency, blindIsolates, rateFactor } = row;
    const toldIsolates = 12;
    const limited = winner({ quota: 3_000, burst: 60, consistency });
    const { limit, fallback } = boundOf(limited.rule, {
      isolates: toldIsolates,
      blindIsolates,
      largestCost: 1,
    })!;
    const excess = new Excess(fallback, 0);
    let count = 0;
    await outage({
      limited,
      toldIsolates,
      blindIsolates,
      perSecond: 3 * limit.unitsPerSecond,
      forMs: FOR_SECONDS * SECOND_MS,
      admitted: (atMs) => {
        count += 1;
        excess.admitted(1, atMs);
      },
    });
    const times = count / (limit.unitsPerSecond * FOR_SECONDS);
    const seeded = `seed ${SEED}`;
    expect(fallback.rateFactor).toBeCloseTo(rateFactor, 9);
    expect(excess.worst, seeded).toBe(0);
    expect(times, seeded).toBeGreaterThanOrEqual(0.9 * rateFactor);
    if (blindIsolates === 0) expect(times, seeded).toBeLessThan(PUBLISHED);
    lines.push(
      `40 s alone, ${consistency}, ${blindIsolates} blind: ${times.toFixed(3)} x, of ${fallback.rateFactor.toFixed(2)} x and ${fallback.burstUnits} units that may be`,
    );
  });
});

describe('memory of keys: 64 bytes each in a table that is usual', () => {
  const BYTES = 64;
  const GB = 1e9;
  /** What a table is made for: two live keys to three slots. */
  const SLOTS_PER_KEY = 1.5;
  const OUR_BYTES = 24;

  const tableFor = (keys: number) => new BucketTable({ slots: SLOTS_PER_KEY * keys, seed: SEED });

  test('so full, a table still keeps its keys', () => {
    const keys = 100_000;
    const table = tableFor(keys);
    const hourly = limitOf({ quota: 10, windowMs: 60 * MINUTE_MS });
    for (let key = 0; key < keys; key += 1) table.charge(`default/remote_address/${key}`, hourly, 1, 0);
    expect(table.byteLength / keys).toBe(OUR_BYTES);
    expect(table.displaced).toBeLessThanOrEqual(keys / 20_000);
  });

  test.each([
    { keys: 5_000_000, usualGb: 0.32, oursGb: 0.12 },
    { keys: 50_000_000, usualGb: 3.2, oursGb: 1.2 },
  ])('$keys keys: $usualGb GB; ours $oursGb GB', ({ keys, usualGb, oursGb }) => {
    // A hundredth of it weighs a hundredth, and does not take the memory of whoever runs the tests.
    const part = 100;
    const bytes = tableFor(keys / part).byteLength * part;
    expect((keys * BYTES) / GB).toBeCloseTo(usualGb, 9);
    expect(bytes / GB).toBeCloseTo(oursGb, 9);
    lines.push(`${keys} keys: ${usualGb} GB at 64 bytes; ours ${bytes / GB} GB, ${bytes / keys} bytes each`);
  });
});
