/**
 * One contender of a measurement in memory, alone in its process: `node micro.ts core|table|map|flexible`. Prints JSON.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { RateLimiterMemory } from 'rate-limiter-flexible';
import { BucketTable } from '../../src/core/bucket-table.ts';
import type { Limit } from '../../src/core/decision.ts';
import { tokenBucket } from '../../src/core/token-bucket.ts';

export type ContenderName = 'table' | 'map' | 'flexible';

export interface TableResult {
  readonly bytesPerKey: number;
  readonly decisionsPerSecond: number;
}

/** Decides on one request of the key; the clock is the contender's own affair, where it reads one. */
type Decide = (key: string, nowMs: number) => unknown;

const KEYS = 1_000_000;

/** Coprime to the number of keys: visits each once a round, far from its neighbours, as callers come. */
const STRIDE = 618_033;

const PASSES = 2;

/** Enough for the runtime to compile what it will, so that compiled code is not taken for the memory of keys. */
const WARM_UP_KEYS = 100_000;

const LIMIT: Limit = { algorithm: 'token_bucket', quota: 100, windowMs: 60_000, burst: 100, maxDelayMs: 0 };

/** The table may let a bucket give way now and then: about two keys in 100,000, so ten times that is a fault. */
const DISPLACED_MAX = KEYS / 5_000;

/** A new string each time, put together from parts as a request's counter is; 40 characters. */
function keyOf(index: number): string {
  return `default/remote_address/10.0.0.1/${10_000_000 + index}`;
}

const CONTENDERS: Readonly<Record<ContenderName, () => Decide>> = {
  table() {
    const table = new BucketTable({ slots: KEYS * 1.5, seed: 0x5eed });
    return (key, nowMs) => {
      if (table.displaced > DISPLACED_MAX) throw new Error('a table that forgets its keys is not measured');
      return table.decide(key, LIMIT, 1, nowMs);
    };
  },

  /** What one writes first: a bucket object for each key. */
  map() {
    const buckets = new Map<string, { tokens: number; updatedAtMs: number }>();
    const perMs = LIMIT.quota / LIMIT.windowMs;
    return (key, nowMs) => {
      let bucket = buckets.get(key);
      if (bucket === undefined) {
        bucket = { tokens: LIMIT.burst, updatedAtMs: nowMs };
        buckets.set(key, bucket);
      }
      bucket.tokens = Math.min(LIMIT.burst, bucket.tokens + (nowMs - bucket.updatedAtMs) * perMs);
      bucket.updatedAtMs = nowMs;
      if (bucket.tokens < 1) return false;
      bucket.tokens -= 1;
      return true;
    };
  },

  flexible() {
    const limiter = new RateLimiterMemory({ points: LIMIT.quota, duration: LIMIT.windowMs / 1_000 });
    return (key) => limiter.consume(key);
  },
};

async function measureTable(name: ContenderName): Promise<TableResult> {
  await pass(CONTENDERS[name](), { round: 0, keys: WARM_UP_KEYS });
  const before = bytesInUse();
  const decide = CONTENDERS[name]();
  await pass(decide, { round: 0, keys: KEYS });
  const bytesPerKey = toTenths((bytesInUse() - before) / KEYS);
  const startMs = performance.now();
  for (let round = 1; round <= PASSES; round += 1) await pass(decide, { round, keys: KEYS });
  const seconds = (performance.now() - startMs) / 1_000;
  return { bytesPerKey, decisionsPerSecond: (KEYS * PASSES) / seconds };
}

/** What else moves in the heap meanwhile is some 50 KB: less than a tenth of a byte a key says nothing. */
function toTenths(bytes: number): number {
  return Math.round(bytes * 10) / 10;
}

/** A decision on each key. The clock goes on by a second a pass; a contender that answers with a promise is awaited. */
async function pass(decide: Decide, { round, keys }: { round: number; keys: number }): Promise<void> {
  for (let index = 0; index < keys; index += 1) {
    const answer = decide(keyOf((index * STRIDE) % KEYS), (round + index / KEYS) * 1_000);
    if (answer instanceof Promise) await answer;
  }
}

/** Heap and buffers, after everything that is garbage is gone. */
function bytesInUse(): number {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  collectGarbage();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Small enough to stay in the cache: both sides then show their arithmetic, not the memory's speed. */
const WARM_KEYS = 1_024;
const OPERATIONS = 20_000_000;

function measureCore(): { decideNs: number; mapGetNs: number } {
  // Compiled once over the same code, then measured: the first run of each is the warm-up.
  timeDecide();
  timeMapGet();
  return { decideNs: timeDecide(), mapGetNs: timeMapGet() };
}

function timeDecide(): number {
  const states: (number | undefined)[] = Array.from({ length: WARM_KEYS }, () => undefined);
  let admitted = 0;
  const startMs = performance.now();
  for (let index = 0; index < OPERATIONS; index += 1) {
    const slot = index % WARM_KEYS;
    const step = tokenBucket.decide(LIMIT, states[slot], 1, index / 100);
    states[slot] = step.state;
    if (step.decision.outcome === 'allowed') admitted += 1;
  }
  return perOperationNs(startMs, admitted);
}

function timeMapGet(): number {
  const keys = Array.from({ length: WARM_KEYS }, (_, index) => keyOf(index));
  const map = new Map(keys.map((key, index) => [key, index]));
  let found = 0;
  const startMs = performance.now();
  for (let index = 0; index < OPERATIONS; index += 1) {
    if (map.get(keys[index % WARM_KEYS]!) !== undefined) found += 1;
  }
  return perOperationNs(startMs, found);
}

/** `proof` depends on every operation, so none of them can be optimised away. */
function perOperationNs(startMs: number, proof: number): number {
  const elapsedMs = performance.now() - startMs;
  if (proof === 0) throw new Error('nothing was measured');
  return (elapsedMs * 1e6) / OPERATIONS;
}

const [contender] = process.argv.slice(2);
const result = contender === 'core' ? measureCore() : await measureTable(contender as ContenderName);
console.log(JSON.stringify(result));
