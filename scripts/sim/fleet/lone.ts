/**
 * What a key comes to that is asked for once in ten seconds or more rarely: formulas in place of a long simulation of next to nothing. A
 * test compares them with that simulation.
 *
 * Requests come at random, so of a rate r a part of exp(-r x t) comes longer than t after the one before it: those find an object that is
 * not in memory any more and has to start. No isolate that one comes to knows the key: it has never met it, or has forgotten it for others
 * since. How many calls such a request makes is measured.
 */
import { WRITE_INTERVAL_MS } from '../../../src/engine/write-behind.ts';
import { HEALTHY } from '../faults.ts';
import { OwnerHost } from '../owner-host.ts';
import type { Random } from '../random.ts';
import { Time } from '../time.ts';
import {
  bytesIn,
  charging,
  IDLE_MS,
  type Key,
  type KeyFigures,
  type KeysRunOptions,
  type Measured,
  objectSecondsOf,
  simulateKeys,
} from './keys.ts';

/** One in the time that an object stays in memory. */
export const LONE_PER_SECOND = 1_000 / IDLE_MS;

/** Some 240 requests, six of a key, so hardly ever two of them in one of so many isolates. */
const MEASURED_KEYS = 40;
const MEASURED_MS = 60_000;
const MEASURED_ISOLATES = 200;

export type LoneOptions = Pick<KeysRunOptions, 'seed' | 'plant'> & { readonly random: Random };

/** Waits drawn of each key: with those of many keys enough for a percentile. */
const WAITS_DRAWN = 20;

export async function loneKeys(keys: readonly Key[], { random, ...options }: LoneOptions): Promise<Measured> {
  const callsPerRequest = await callsOfOne(keys.slice(0, MEASURED_KEYS), options);
  const stored = storedAfterOne(keys[0]!);
  return {
    keys: keys.map((key) => ({
      figures: loneKey(key, { callsPerRequest, ...stored }),
      waits: {
        ms: Array.from({ length: WAITS_DRAWN }, () => waitMs(key, random)),
        requestsPerSecond: key.requestsPerSecond / WAITS_DRAWN,
      },
    })),
  };
}

async function callsOfOne(keys: readonly Key[], options: Omit<LoneOptions, 'random'>): Promise<number> {
  const measured = await simulateKeys(
    keys.map((key) => ({ ...key, requestsPerSecond: LONE_PER_SECOND })),
    { ...options, isolates: MEASURED_ISOLATES, warmMs: IDLE_MS, measuredMs: MEASURED_MS },
  );
  const sum = (figure: 'calls' | 'requests') =>
    measured.keys.reduce((total, { figures }) => total + figures[figure], 0);
  return sum('calls') / sum('requests');
}

interface Stored {
  /** 0 where all is at rest so soon that nothing is written. */
  readonly bytes: number;
  /** How long until they say nothing any more. */
  readonly restMs: number;
}

/** What the production owner writes of the first request of a window. */
function storedAfterOne({ name, enforced }: Key): Stored {
  const host = new OwnerHost({
    name,
    time: new Time(),
    rawMs: () => 0,
    countersMax: enforced.length,
    blocks: 1,
    copiesMessages: false,
  });
  host.handle(charging(enforced, 1));
  return { bytes: bytesIn(host), restMs: host.owner.restInMs(0) };
}

function loneKey(
  { requestsPerSecond: rate }: Key,
  { callsPerRequest, bytes, restMs }: Stored & { readonly callsPerRequest: number },
): KeyFigures {
  const rows = bytes === 0 ? 0 : rowsPerSecond(rate);
  const calls = rate * callsPerRequest;
  return {
    requests: rate,
    denied: 0,
    calls,
    callsOfOne: calls,
    rows,
    objectSeconds: objectSecondsOf({ calls, rows }),
    deniedCold: 0,
    bytesAtRest: bytes * (1 - Math.exp((-rate * restMs) / 1_000)),
  };
}

/** After a row, what comes within a second of it is written when that is over; else the next request is written at once. */
function rowsPerSecond(rate: number): number {
  const secondsApart = WRITE_INTERVAL_MS / 1_000;
  return 1 / (secondsApart + Math.exp(-rate * secondsApart) / rate);
}

function waitMs({ requestsPerSecond }: Key, random: Random): number {
  const { delayMs, jitterMs, startMs } = HEALTHY;
  const wayMs = () => random.between(delayMs, delayMs + jitterMs);
  const isCold = random.chance(Math.exp((-requestsPerSecond * IDLE_MS) / 1_000));
  return wayMs() + wayMs() + HEALTHY.serviceMs + (isCold ? startMs : 0);
}
