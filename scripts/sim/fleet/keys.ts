/**
 * What single keys come to, each simulated exactly: with all its requests, all isolates they arrive at, and the production engine.
 *
 * Keys share isolates and nothing else: each has an owner of its own, and what an isolate remembers of it is kept by the key. That is why a
 * sample of keys says what all of them come to, and why those of one sample share a world. One thing a sample does not show: an
 * isolate remembers the 8,192 owners and 16,384 counters asked lately, and of a fleet it forgets within seconds that it has met a
 * rare key. Those worth a lease are asked for several times a second there, and stay.
 */
import { capacity } from '../../../src/core/decision.ts';
import { MESSAGE_FORMAT, type OwnerCall } from '../../../src/engine/messages.ts';
import { LONE_REQUEST_SECONDS } from '../../../src/engine/price.ts';
import { wholeOf } from '../../../src/engine/slices.ts';
import type { Winner } from '../../../src/policy/counter.ts';
import type { OwnerHost } from '../owner-host.ts';
import type { Plant } from '../plant.ts';
import { type Random, weighted } from '../random.ts';
import type { Happening, Plan, Stage } from '../scenario.ts';
import { simulate } from '../simulation.ts';
import type { Asked, Heard } from '../traffic.ts';

export interface Key {
  /** Its owner's, too. */
  readonly name: string;
  readonly requestsPerSecond: number;
  readonly enforced: readonly Winner[];
}

/** What one key comes to, each in a second. */
export interface KeyFigures {
  readonly requests: number;
  readonly denied: number;
  readonly calls: number;
  /** Of those, to the one object of its own that takes most; one that is not split has one. */
  readonly callsOfOne: number;
  readonly rows: number;
  /** For how much of the second its objects are billed. */
  readonly objectSeconds: number;
  /** Bytes of JSON in storage at the end; not a second's. */
  readonly bytesAtRest: number;
  /** Requests denied before anything was measured, when every isolate and object was new to the key; not a second's either. */
  readonly deniedCold: number;
}

/** How long requests waited that were admitted; each wait stands for as many requests a second. */
export interface Waits {
  readonly ms: readonly number[];
  readonly requestsPerSecond: number;
}

export interface MeasuredKey {
  readonly figures: KeyFigures;
  readonly waits: Waits;
}

export interface Measured {
  /** In the order of the keys. */
  readonly keys: readonly MeasuredKey[];
  /** What broke. */
  readonly violation?: string | undefined;
}

export interface KeysRunOptions {
  readonly isolates: number;
  /** Nothing is measured meanwhile: leases find their size. */
  readonly warmMs: number;
  /** A tenth of the requests in the first half of that: what many wait for whom nobody knows yet takes long to simulate. */
  readonly isEased?: boolean;
  readonly measuredMs: number;
  readonly seed: number;
  readonly plant?: Plant | undefined;
}

/** An object that nobody has asked for so long is not in memory any more. */
export const IDLE_MS = 10_000;

const EASED = 0.1;

/** A key that is asked for more often is never idle for so long. */
const NEVER_IDLE_PER_SECOND = 2;

export async function simulateKeys(keys: readonly Key[], options: KeysRunOptions): Promise<Measured> {
  const run = new KeysRun(keys, options);
  const { seed } = options;
  const { violation } = await simulate({ plan: () => run.plan() }, { seed, plant: run.counting() });
  return { keys: run.measured(), violation };
}

/** An object is kept by each call for a moment, and by what it has yet to write for up to a second; never longer than the second has. */
export function objectSecondsOf({ calls, rows }: Pick<KeyFigures, 'calls' | 'rows'>): number {
  const kept = LONE_REQUEST_SECONDS + (rows === 0 ? 0 : calls);
  return Math.min(1, calls * kept);
}

interface ObjectTally {
  calls: number;
  writesBefore: number;
  rows: number;
}

interface Tally {
  readonly key: Key;
  readonly waitsMs: number[];
  deniedCold: number;
  requests: number;
  denied: number;
  /** By the object. */
  readonly objects: Map<string, ObjectTally>;
  bytesAtRest: number;
  lastHeardMs: number;
}

class KeysRun {
  readonly #options: KeysRunOptions;
  /** By the name of the owner. */
  readonly #tallies: ReadonlyMap<string, Tally>;
  #isMeasuring = false;

  constructor(keys: readonly Key[], options: KeysRunOptions) {
    this.#options = options;
    this.#tallies = new Map(keys.map((key) => [key.name, blankTally(key)]));
  }

  plan(): Plan {
    const { isolates, warmMs, measuredMs, isEased = false } = this.#options;
    const easedMs = isEased ? warmMs / 2 : 0;
    const tallies = [...this.#tallies.values()];
    const rates = tallies.map(({ key }) => key.requestsPerSecond);
    const draw = weighted(rates);
    const perSecond = rates.reduce((sum, rate) => sum + rate, 0);
    return {
      isolates,
      streams: [
        {
          phases: [
            { forMs: easedMs, perSecond: perSecond * EASED },
            { forMs: warmMs - easedMs + measuredMs, perSecond },
          ],
          request: (random) => this.#request(tallies[draw(random)]!, random),
        },
      ],
      happenings: [
        { atMs: 0, happen: (stage) => this.#drain(stage) },
        { atMs: warmMs, happen: (stage) => this.#begin(stage) },
        { atMs: warmMs + measuredMs, happen: (stage) => this.#end(stage) },
      ] satisfies Happening[],
      // What is denied is told for what it is; and a bucket that is empty at the start is none that the ideal of the run knows of.
      inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
    };
  }

  /** Counts what comes to each owner; beside a planted fault, if there is one. */
  counting(): Plant {
    const { plant } = this.#options;
    return {
      name: plant?.name ?? 'counting',
      about: plant?.about ?? 'no fault',
      make: () => {
        const planted = plant?.make() ?? {};
        return {
          ...planted,
          aroundOwner: (host) => {
            const handle = planted.aroundOwner?.(host) ?? ((call) => host.handle(call));
            const object = objectOf(this.#tallies.get(keyNameOf(host.name))!, host.name);
            return (call) => {
              if (this.#isMeasuring) object.calls += 1;
              return handle(call);
            };
          },
        };
      },
    };
  }

  measured(): readonly MeasuredKey[] {
    const seconds = this.#options.measuredMs / 1_000;
    return [...this.#tallies.values()].map(({ requests, denied, objects, waitsMs, ...whole }) => {
      const each = [...objects.values()].map(({ calls, rows }) => ({
        calls: calls / seconds,
        rows: rows / seconds,
      }));
      const sum = (of: (object: Pick<KeyFigures, 'calls' | 'rows'>) => number) =>
        each.reduce((total, object) => total + of(object), 0);
      const { bytesAtRest, deniedCold } = whole;
      const figures = {
        requests: requests / seconds,
        denied: denied / seconds,
        calls: sum(({ calls }) => calls),
        callsOfOne: Math.max(0, ...each.map(({ calls }) => calls)),
        rows: sum(({ rows }) => rows),
        objectSeconds: sum(objectSecondsOf),
        bytesAtRest,
        deniedCold,
      };
      return { figures, waits: { ms: waitsMs, requestsPerSecond: 1 / seconds } };
    });
  }

  #request(tally: Tally, random: Random): Asked {
    const { name, enforced, requestsPerSecond } = tally.key;
    const canIdle = requestsPerSecond <= NEVER_IDLE_PER_SECOND;
    return {
      group: name,
      isolate: random.below(this.#options.isolates),
      enforced,
      heard: (heard, stage) => {
        this.#heard(tally, heard, stage);
        if (canIdle) this.#forgetWhenIdle(tally, stage);
      },
    };
  }

  #heard(tally: Tally, { verdict, askedMs }: Heard, { world }: Stage): void {
    const isDenied = verdict.outcome !== 'allowed';
    if (askedMs < this.#options.warmMs) {
      if (isDenied) tally.deniedCold += 1;
      return;
    }
    tally.requests += 1;
    if (isDenied) tally.denied += 1;
    else tally.waitsMs.push(world.time.elapsedMs - askedMs);
  }

  #forgetWhenIdle(tally: Tally, { world }: Stage): void {
    const heardMs = world.time.elapsedMs;
    tally.lastHeardMs = heardMs;
    world.time.after(IDLE_MS, () => {
      if (tally.lastHeardMs === heardMs) world.owner(tally.key.name).evict();
    });
  }

  /** Who sends more than a limit admits has long spent what it had at once. */
  #drain({ world }: Stage): void {
    for (const { key } of this.#tallies.values()) {
      const { host } = world.owner(key.name);
      for (const winner of exceeded(key)) host.handle(charging([winner], capacity(winner.rule.limit!)));
    }
  }

  #begin({ world }: Stage): void {
    this.#isMeasuring = true;
    for (const [name, { host }] of world.owners) this.#objectOf(name).writesBefore = host.writes;
  }

  #end({ world }: Stage): void {
    this.#isMeasuring = false;
    for (const [name, { host }] of world.owners) {
      const object = this.#objectOf(name);
      object.rows = host.writes - object.writesBefore;
      this.#tallies.get(keyNameOf(name))!.bytesAtRest += bytesIn(host);
    }
  }

  #objectOf(name: string): ObjectTally {
    return objectOf(this.#tallies.get(keyNameOf(name))!, name);
  }
}

function blankTally(key: Key): Tally {
  return {
    key,
    waitsMs: [],
    deniedCold: 0,
    requests: 0,
    denied: 0,
    objects: new Map(),
    bytesAtRest: 0,
    lastHeardMs: 0,
  };
}

/** The key whose object this is: its owner, or a slice of that. */
function keyNameOf(object: string): string {
  return wholeOf(object) ?? object;
}

function objectOf({ objects }: Tally, name: string): ObjectTally {
  const known = objects.get(name) ?? { calls: 0, writesBefore: 0, rows: 0 };
  objects.set(name, known);
  return known;
}

/** The limits of which more than this part is asked for. */
export function exceeded({ requestsPerSecond, enforced }: Key, part = 1): readonly Winner[] {
  return enforced.filter(({ rule }) => {
    const { quota, windowMs } = rule.limit!;
    return requestsPerSecond * windowMs > part * quota * 1_000;
  });
}

/** A call of nobody whose demand counts. */
export function charging(winners: readonly Winner[], cost: number): OwnerCall {
  const counters = winners.map(({ counterId: id, rule }) => ({
    id,
    limit: rule.limit!,
    shadow: rule.shadow,
    unitsPerSecond: 0,
  }));
  const question = { id: `${counters[0]!.id} before`, cost, counters };
  return { format: MESSAGE_FORMAT, holder: 'before', version: { activation: 0, builtAtMs: 0 }, question };
}

export function bytesIn({ rows }: OwnerHost): number {
  return [...rows].reduce((sum, [key, row]) => sum + key.length + JSON.stringify(row).length, 0);
}
