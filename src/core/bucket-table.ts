/**
 * A great many token buckets in one block of memory: 16 bytes each, for keys that anybody can invent.
 *
 * A slot holds a 64-bit fingerprint of the key and the instant at which its bucket is full again, side by side, so that a decision
 * touches one or two cache lines and allocates nothing that lasts. The table never grows. A bucket that is full says nothing, so its
 * slot is free. A key looks for its slot in a fixed neighbourhood; when that has no free slot, the bucket nearest to full gives way,
 * which is the smallest gift to anyone: at two live keys to three slots it happens to about two keys in 100,000.
 *
 * Two keys of one fingerprint share a bucket: with a million live keys the odds that any two do are one in tens of millions. The hash is
 * not cryptographic; the seed, new for each table, keeps outsiders from working out which keys are neighbours.
 *
 * `nowMs` counts from a near epoch, as for every algorithm but the fixed window.
 */
import type { Decision, Limit, PastCharge, Step } from './decision.ts';
import { tokenBucket } from './token-bucket.ts';

const SLOT_BYTES = 16;
const WORDS_PER_SLOT = SLOT_BYTES / Int32Array.BYTES_PER_ELEMENT;
const TIMES_PER_SLOT = SLOT_BYTES / Float64Array.BYTES_PER_ELEMENT;

/**
 * Slots that a key may be in: 1 KB in a row. With two live keys to three slots a key finds a free one after two on average, and
 * 64 taken in a row are met by 2 keys in 100,000 (by 60 with half as many slots); what a longer row costs is the search for a
 * key that is not there, once every slot has been used.
 */
const NEIGHBOURHOOD_SLOTS = 64;

export interface BucketTableOptions {
  /** How many buckets there is room for; half as many again as the live keys that are expected. */
  readonly slots: number;
  /** 32 random bits. */
  readonly seed: number;
}

export class BucketTable {
  readonly #slots: number;
  readonly #reach: number;
  readonly #seed: number;
  /** Two views of the one block: a slot is two words of fingerprint, then one time. */
  readonly #words: Int32Array;
  readonly #fullAtUs: Float64Array;
  /** The fingerprint of the key in hand: returning two numbers from a function would allocate. */
  #high = 0;
  #low = 0;
  #displaced = 0;

  constructor({ slots, seed }: BucketTableOptions) {
    const block = new ArrayBuffer(slots * SLOT_BYTES);
    this.#slots = slots;
    this.#reach = Math.min(slots, NEIGHBOURHOOD_SLOTS);
    this.#seed = seed;
    this.#words = new Int32Array(block);
    this.#fullAtUs = new Float64Array(block);
  }

  get byteLength(): number {
    return this.#words.byteLength;
  }

  /** How many buckets have had to give way before they were full. */
  get displaced(): number {
    return this.#displaced;
  }

  decide(key: string, limit: Limit, cost: number, nowMs: number): Decision {
    return this.step(key, limit, cost, nowMs).decision;
  }

  /** Decides, keeps the state, and hands it out too: what is left can be read off it without looking the key up again. */
  step(key: string, limit: Limit, cost: number, nowMs: number): Step<number> {
    const slot = this.#locate(key);
    const step = tokenBucket.decide(limit, this.#read(slot), cost, nowMs);
    this.#keep(slot, step.state, nowMs);
    return step;
  }

  available(key: string, limit: Limit, nowMs: number): number {
    return tokenBucket.available(limit, this.#read(this.#locate(key)), nowMs);
  }

  charge(key: string, limit: Limit, cost: number, nowMs: number): void {
    const slot = this.#locate(key);
    this.#keep(slot, tokenBucket.charge(limit, this.#read(slot), cost, nowMs), nowMs);
  }

  giveBack(key: string, limit: Limit, past: PastCharge, nowMs: number): void {
    const slot = this.#locate(key);
    this.#keep(slot, tokenBucket.giveBack(limit, this.#read(slot), past, nowMs), nowMs);
  }

  /** Whether the key has a bucket that is not full. */
  has(key: string, nowMs: number): boolean {
    const fullAtUs = this.#read(this.#locate(key));
    return fullAtUs !== undefined && fullAtUs > nowMs * 1000;
  }

  /** Starts the key's bucket anew with `units` in it, from -quota to the burst. */
  set(key: string, limit: Limit, units: number, nowMs: number): void {
    const slot = this.#locate(key);
    this.#keep(slot, tokenBucket.charge(limit, undefined, limit.burst - units, nowMs), nowMs);
  }

  /** The slot that holds the key; or, when none does, the slot that it may take: a free one, or the one nearest to full. */
  #locate(key: string): number {
    this.#fingerprint(key);
    const words = this.#words;
    const fullAtUs = this.#fullAtUs;
    const high = this.#high;
    const low = this.#low;
    let slot = Math.floor(((high >>> 0) / 2 ** 32) * this.#slots);
    let nearestToFull = slot;
    for (let left = this.#reach; left > 0; left -= 1) {
      const high2 = words[slot * WORDS_PER_SLOT]!;
      const low2 = words[slot * WORDS_PER_SLOT + 1]!;
      if (high2 === high && low2 === low) return slot;
      if (fullAtUs[slot * TIMES_PER_SLOT + 1]! < fullAtUs[nearestToFull * TIMES_PER_SLOT + 1]!)
        nearestToFull = slot;
      // Slots are never emptied, so beyond one that was never used this key has never been.
      if ((high2 | low2) === 0) return slot;
      slot += 1;
      if (slot === this.#slots) slot = 0;
    }
    return nearestToFull;
  }

  #holdsKey(slot: number): boolean {
    return (
      this.#words[slot * WORDS_PER_SLOT] === this.#high &&
      this.#words[slot * WORDS_PER_SLOT + 1] === this.#low
    );
  }

  #read(slot: number): number | undefined {
    return this.#holdsKey(slot) ? this.#fullAtUs[slot * TIMES_PER_SLOT + 1] : undefined;
  }

  #keep(slot: number, fullAtUs: number | undefined, nowMs: number): void {
    if (!this.#holdsKey(slot)) {
      if (fullAtUs === undefined) return;
      if (this.#fullAtUs[slot * TIMES_PER_SLOT + 1]! > nowMs * 1000) this.#displaced += 1;
      this.#words[slot * WORDS_PER_SLOT] = this.#high;
      this.#words[slot * WORDS_PER_SLOT + 1] = this.#low;
    }
    this.#fullAtUs[slot * TIMES_PER_SLOT + 1] = fullAtUs ?? 0;
  }

  /**
   * Two lanes of 32 bits in one pass, multiplied and mixed as in MurmurHash3. One character at a time, because two in one word
   * would let a difference in the topmost bit pass both lanes unchanged, and cancel it with the next, whatever the seed.
   */
  #fingerprint(key: string): void {
    let high = this.#seed ^ 0x9e3779b9;
    let low = Math.imul(this.#seed, 0x27d4eb2f) ^ key.length;
    for (let at = 0; at < key.length; at += 1) {
      const character = key.charCodeAt(at);
      high = Math.imul(high ^ character, 0x85ebca6b);
      low = Math.imul(low ^ character, 0xc2b2ae35);
    }
    high ^= low >>> 15;
    high = Math.imul(high ^ (high >>> 16), 0x7feb352d);
    high ^= high >>> 15;
    low = Math.imul(low ^ (low >>> 16) ^ high, 0x846ca68b);
    low ^= low >>> 16;
    this.#high = high;
    // Two words of 0 mark a slot that was never used, so no key may have them.
    this.#low = (high | low) === 0 ? 1 : low;
  }
}
