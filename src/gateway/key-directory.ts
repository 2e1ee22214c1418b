/**
 * The key directory as one isolate sees it: entries and misses cached for a bounded time in bounded memory, and look-ups in the
 * background where there is something to go on with.
 *
 * Promise: a change of an entry, a revoked key included, is in force here within `ttlMs` of being in force in the directory. A key that is
 * not cached is waited for, briefly; an address that shows ever new keys is not asked about for long; and a directory that does not
 * answer makes nobody unknown: an entry in hand stays, and a key without one is `unanswered`.
 */
import { BucketTable } from '../core/bucket-table.ts';
import type { Limit } from '../core/decision.ts';
import { BoundedMap } from '../engine/bounded-map.ts';
import type { Background } from '../engine/ports.ts';
import type { Caller } from '../policy/caller.ts';
import { attributesOf, type KeyEntry } from '../policy/directory.ts';

/** About 400 bytes each. */
const ENTRIES_MAX = 16_384;

/** An uncached key keeps its request waiting for no longer than an owner that is near. */
const LOOKUP_MS_MAX = 150;

/** A directory that has just failed to answer is left alone for a second, so an outage costs a few requests their wait, and not all. */
const DOWN_MS = 1_000;

/**
 * Look-ups that one address may cause in one isolate: a page full of keys at once, and one a second. Found keys cost nothing, so many
 * customers behind one address are not concerned.
 */
const LOOKUPS: Limit = { algorithm: 'token_bucket', quota: 60, windowMs: 60_000, burst: 60, maxDelayMs: 0 };
const LOOKUP_SLOTS = 4_096;

export interface DirectoryPorts {
  readonly nowMs: () => number;
  /** The entry of this SHA-256; `undefined` where there is none. Rejects when nobody answers. */
  readonly fetch: (hash: string) => Promise<KeyEntry | undefined>;
  readonly within: <Value>(promise: Promise<Value>, limitMs: number) => Promise<Value>;
  readonly count: (result: LookupResult) => void;
  /** What is in hand is believed for so long; after half of that it is looked up again beside the requests that use it. */
  readonly ttlMs: number;
  readonly seed: number;
}

export type LookupResult = 'found' | 'unknown' | 'unanswered' | 'capped';

interface Cached {
  readonly entry: KeyEntry | undefined;
  readonly askedAtMs: number;
}

const UNKNOWN: Caller = { kind: 'unknown' };
const UNANSWERED: Caller = { kind: 'unanswered' };

export class KeyDirectory {
  readonly #ports: DirectoryPorts;
  readonly #cached = new BoundedMap<Cached>(ENTRIES_MAX);
  readonly #asking = new Set<string>();
  readonly #lookups: BucketTable;
  #downUntilMs = 0;

  constructor(ports: DirectoryPorts) {
    this.#ports = ports;
    this.#lookups = new BucketTable({ slots: LOOKUP_SLOTS, seed: ports.seed });
  }

  /** At once where the key is cached. `address` is whoever shows it. */
  find(hash: string, address: string, background: Background): Caller | Promise<Caller> {
    const { nowMs: clock, ttlMs } = this.#ports;
    const nowMs = clock();
    const cached = this.#cached.touch(hash);
    if (cached === undefined) return this.#lookUp(hash, address, nowMs);
    const ageMs = nowMs - cached.askedAtMs;
    if (ageMs >= ttlMs) return this.#lookUp(hash, address, nowMs);
    if (ageMs >= ttlMs / 2 && !this.#asking.has(hash) && nowMs >= this.#downUntilMs)
      background(this.#ask(hash));
    return callerOf(cached, nowMs);
  }

  /** What was said of this key is void. */
  forget(hash: string): void {
    this.#cached.delete(hash);
  }

  async #lookUp(hash: string, address: string, nowMs: number): Promise<Caller> {
    const stale = this.#cached.get(hash);
    if (nowMs < this.#downUntilMs) return this.#unanswered(stale, nowMs);
    if (this.#lookups.decide(address, LOOKUPS, 1, nowMs).outcome !== 'allowed') {
      this.#ports.count('capped');
      return UNKNOWN;
    }
    const found = await this.#ask(hash);
    if (found === undefined) {
      this.#giveBack(address, nowMs);
      return this.#unanswered(stale, nowMs);
    }
    this.#ports.count(found.entry === undefined ? 'unknown' : 'found');
    if (found.entry !== undefined) this.#giveBack(address, nowMs);
    return callerOf(found, this.#ports.nowMs());
  }

  /** `undefined` when nobody answered. Never rejects. */
  async #ask(hash: string): Promise<Cached | undefined> {
    const askedAtMs = this.#ports.nowMs();
    this.#asking.add(hash);
    try {
      const entry = await this.#ports.within(this.#ports.fetch(hash), LOOKUP_MS_MAX);
      const cached = { entry, askedAtMs };
      this.#cached.set(hash, cached);
      return cached;
    } catch {
      this.#downUntilMs = this.#ports.nowMs() + DOWN_MS;
      return undefined;
    } finally {
      this.#asking.delete(hash);
    }
  }

  #giveBack(address: string, chargedAtMs: number): void {
    this.#lookups.giveBack(address, LOOKUPS, { cost: 1, chargedAtMs }, this.#ports.nowMs());
  }

  #unanswered(stale: Cached | undefined, nowMs: number): Caller {
    this.#ports.count('unanswered');
    return stale === undefined ? UNANSWERED : callerOf(stale, nowMs);
  }
}

function callerOf({ entry }: Cached, nowMs: number): Caller {
  const attributes = entry && attributesOf(entry, nowMs);
  return attributes === undefined ? UNKNOWN : { kind: 'known', attributes };
}
