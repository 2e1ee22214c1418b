/**
 * The key directory as one isolate sees it: entries and misses cached for a bounded time in bounded memory, and look-ups in the
 * background where there is something to go on with.
 *
 * Promise: a change of an entry, a revoked key included, is in force here within `ttlMs` of being in force in the directory. A key that is
 * not cached is waited for, briefly, and asked about once however many show it; an address that shows ever new keys is not asked about
 * for long; and a directory that does not answer makes nobody unknown: an entry in hand stays, and a key without one is `unanswered`.
 */
import { BucketTable } from '../core/bucket-table.ts';
import type { Limit } from '../core/decision.ts';
import { BoundedMap } from '../engine/bounded-map.ts';
import type { Background } from '../engine/ports.ts';
import type { Caller } from '../policy/caller.ts';
import { attributesOf, type KeyEntry } from '../policy/directory.ts';

/** About 400 bytes each. */
const ENTRIES_MAX = 16_384;

/** How often a request looks whether another one's question about the same key has been answered. */
const LOOK_AGAIN_MS = 5;

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
  /** Time that passes, in milliseconds: it stands still where a clock is set back. */
  readonly nowMs: () => number;
  /** Milliseconds since the Unix epoch, by which keys expire. */
  readonly wallMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
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
  /** Keys that nobody answered about, by the time of the last try: asking for them again costs their address nothing more. */
  readonly #unanswered = new BoundedMap<number>(ENTRIES_MAX);
  /** Questions on their way, by when they were asked. */
  readonly #asking = new BoundedMap<number>(ENTRIES_MAX);
  readonly #lookups: BucketTable;
  #downUntilMs = Number.NEGATIVE_INFINITY;

  constructor(ports: DirectoryPorts) {
    this.#ports = ports;
    this.#lookups = new BucketTable({ slots: LOOKUP_SLOTS, seed: ports.seed });
  }

  /** At once where the key is cached. `address` is what whoever shows it counts by. */
  find(hash: string, address: () => string, background: Background): Caller | Promise<Caller> {
    const { ttlMs } = this.#ports;
    const nowMs = this.#ports.nowMs();
    const cached = this.#cached.touch(hash);
    const ageMs = cached === undefined ? ttlMs : nowMs - cached.askedAtMs;
    if (cached === undefined || ageMs >= ttlMs) return this.#lookUp(hash, address(), nowMs);
    if (ageMs >= ttlMs / 2 && !this.#isAsking(hash, nowMs) && nowMs >= this.#downUntilMs)
      background(this.#ask(hash));
    return this.#callerOf(cached);
  }

  /** What was said of this key is void. */
  forget(hash: string): void {
    this.#cached.delete(hash);
  }

  async #lookUp(hash: string, address: string, nowMs: number): Promise<Caller> {
    if (this.#isAsking(hash, nowMs)) return this.#awaitOther(hash, nowMs);
    const isRepeated = this.#cached.get(hash) !== undefined || this.#unanswered.get(hash) !== undefined;
    if (!isRepeated && this.#lookups.decide(address, LOOKUPS, 1, nowMs).outcome !== 'allowed') {
      this.#ports.count('capped');
      return UNKNOWN;
    }
    if (nowMs < this.#downUntilMs) return this.#unansweredAbout(hash, nowMs);
    const found = await this.#ask(hash);
    if (found === undefined) return this.#unansweredAbout(hash, nowMs);
    this.#ports.count(found.entry === undefined ? 'unknown' : 'found');
    if (found.entry !== undefined && !isRepeated)
      this.#lookups.giveBack(address, LOOKUPS, { cost: 1, chargedAtMs: nowMs }, this.#ports.nowMs());
    return this.#callerOf(found);
  }

  /** Another request has asked: its answer is looked for on a timer of this one's own. */
  async #awaitOther(hash: string, sinceMs: number): Promise<Caller> {
    do {
      await this.#ports.sleep(LOOK_AGAIN_MS);
      const cached = this.#cached.get(hash);
      if (cached !== undefined && cached.askedAtMs + this.#ports.ttlMs > this.#ports.nowMs())
        return this.#callerOf(cached);
    } while (this.#isAsking(hash, this.#ports.nowMs()) && this.#ports.nowMs() < sinceMs + LOOKUP_MS_MAX);
    return this.#unansweredAbout(hash, sinceMs);
  }

  /** `undefined` when nobody answered. Never rejects. */
  async #ask(hash: string): Promise<Cached | undefined> {
    const askedAtMs = this.#ports.nowMs();
    this.#asking.set(hash, askedAtMs);
    try {
      const entry = await this.#ports.within(this.#ports.fetch(hash), LOOKUP_MS_MAX);
      const cached = { entry, askedAtMs };
      this.#cached.set(hash, cached);
      this.#unanswered.delete(hash);
      return cached;
    } catch {
      this.#downUntilMs = this.#ports.nowMs() + DOWN_MS;
      return undefined;
    } finally {
      this.#asking.delete(hash);
    }
  }

  /** A question whose request went away is not waited for, and does not keep others from asking. */
  #isAsking(hash: string, nowMs: number): boolean {
    const askedAtMs = this.#asking.get(hash);
    return askedAtMs !== undefined && nowMs < askedAtMs + LOOKUP_MS_MAX;
  }

  #unansweredAbout(hash: string, nowMs: number): Caller {
    this.#ports.count('unanswered');
    const stale = this.#cached.get(hash);
    if (stale !== undefined) return this.#callerOf(stale);
    this.#unanswered.set(hash, nowMs);
    return UNANSWERED;
  }

  #callerOf({ entry }: Cached): Caller {
    const attributes = entry && attributesOf(entry, this.#ports.wallMs());
    return attributes === undefined ? UNKNOWN : { kind: 'known', attributes };
  }
}
