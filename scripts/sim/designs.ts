/**
 * The usual designs of a distributed limiter, on the same traffic as this one: what each admits of what one ideal bucket would, and what
 * it costs.
 *
 * One caller of 500 a second asks ten isolates, the k-th of which gets 1/k of what the first gets: at 0.9 of the limit, and at three times.
 * The designs of others are modelled by hand, with a network as slow as that of the engine; one strict owner and leases are the engine.
 */
import { charge, decide } from '../../src/core/algorithms.ts';
import type { Limit } from '../../src/core/decision.ts';
import { HEALTHY, roundTripMs } from './faults.ts';
import { type Figures, Measures } from './measures.ts';
import { Random, zipf } from './random.ts';
import { Excess, envelopeOf, Ideal } from './reference.ts';
import { load, perSecond } from './scenarios/kit.ts';
import { simulate } from './simulation.ts';
import { Time } from './time.ts';
import { type Stream, startStream } from './traffic.ts';

const ISOLATES = 10;
const LIMIT = { perSecond: 500 };
const FOR_MS = 10_000;
const SYNC_MS = 1_000;

export const LOADS = [0.9, 3] as const;

export interface Design {
  readonly name: string;
  run(seed: number, times: number): Promise<Figures>;
}

export const DESIGNS: readonly Design[] = [
  modelled('local only: each isolate has the whole limit (N x R)', () => new Split(1)),
  modelled('an even split: each isolate has a part (R / N)', () => new Split(ISOLATES)),
  modelled('local counts, synced every second', (time, called) => new Synced(time, called)),
  simulated('one strict owner, asked for each request', 'strict'),
  simulated('leases', 'leased'),
];

/** Decides in the isolate, at once. */
interface Model {
  admits(isolate: number, limit: Limit, nowMs: number): boolean;
}

type State = ReturnType<typeof charge>;

/** A bucket in each isolate, of the limit divided by `parts`. */
class Split implements Model {
  readonly #parts: number;
  readonly #states = new Map<number, State>();

  constructor(parts: number) {
    this.#parts = parts;
  }

  admits(isolate: number, { quota, burst, ...limit }: Limit, nowMs: number): boolean {
    const own = { ...limit, quota: quota / this.#parts, burst: burst / this.#parts };
    const { decision, state } = decide(own, this.#states.get(isolate), 1, nowMs);
    this.#states.set(isolate, state);
    return decision.outcome === 'allowed';
  }
}

/** Each isolate has a copy of the one bucket, charged with its own requests at once and with those of the others at each sync. */
class Synced implements Model {
  #all: State;
  readonly #copies: { state: State; unsent: number }[];

  constructor(time: Time, called: () => void) {
    this.#copies = Array.from({ length: ISOLATES }, () => ({ state: undefined, unsent: 0 }));
    const limit = perSecond(LIMIT).rule.limit!;
    for (const [at, copy] of this.#copies.entries()) {
      for (let atMs = (at * SYNC_MS) / ISOLATES; atMs < FOR_MS; atMs += SYNC_MS)
        time.after(atMs, () => this.#sync(copy, limit, { time, called }));
    }
  }

  admits(isolate: number, limit: Limit, nowMs: number): boolean {
    const copy = this.#copies[isolate]!;
    const { decision, state } = decide(limit, copy.state, 1, nowMs);
    copy.state = state;
    if (decision.outcome === 'allowed') copy.unsent += 1;
    return decision.outcome === 'allowed';
  }

  #sync(
    copy: { state: State; unsent: number },
    limit: Limit,
    { time, called }: { time: Time; called: () => void },
  ): void {
    called();
    const sent = copy.unsent;
    copy.unsent = 0;
    time.after(roundTripMs(HEALTHY) / 2, () => {
      this.#all = charge(limit, this.#all, sent, time.elapsedMs);
      const all = this.#all;
      time.after(roundTripMs(HEALTHY) / 2, () => {
        copy.state = charge(limit, all, copy.unsent, time.elapsedMs);
      });
    });
  }
}

function streamOf(times: number, consistency: 'strict' | 'leased'): Stream {
  const enforced = [perSecond({ ...LIMIT, consistency })];
  const phases = [{ forMs: FOR_MS, perSecond: LIMIT.perSecond * times }];
  return load({ enforced }, { isolates: ISOLATES, spread: zipf(ISOLATES), phases });
}

function simulated(name: string, consistency: 'strict' | 'leased'): Design {
  return {
    name,
    async run(seed, times) {
      const plan = () => ({
        isolates: ISOLATES,
        streams: [streamOf(times, consistency)],
        inQuotaRefusalsMax: Number.POSITIVE_INFINITY,
      });
      return (await simulate({ plan }, { seed })).figures;
    },
  };
}

function modelled(name: string, make: (time: Time, called: () => void) => Model): Design {
  return {
    name,
    async run(seed, times) {
      const time = new Time();
      const measures = new Measures(0);
      const ideal = new Ideal();
      const model = make(time, () => measures.called(time.elapsedMs));
      const limit = perSecond(LIMIT).rule.limit!;
      const excess = new Excess(envelopeOf(limit), roundTripMs(HEALTHY));
      startStream(streamOf(times, 'strict'), {
        time,
        random: new Random(seed).fork('traffic').fork('stream 0'),
        send: ({ group, isolate, enforced }) => {
          const atMs = time.elapsedMs;
          const isIdeal = ideal.admits(enforced, { cost: 1, atMs, lastsMs: 0 });
          const arrival = { group, isolate, cost: 1, atMs, isIdeal };
          const isAdmitted = model.admits(isolate, limit, atMs);
          measures.arrived(arrival);
          measures.decided(arrival, { isAdmitted, atMs });
          if (isAdmitted) excess.admitted(1, atMs);
        },
      });
      while (time.pending > 0) await time.advance(1_000);
      return measures.figures(excess.worst);
    },
  };
}
