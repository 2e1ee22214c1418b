/**
 * Chance from one seed: the same seed, the same run. Nothing in the simulator reads any other randomness.
 *
 * `fork` gives each part of the world a stream of its own, so that one more draw in one part does not change what happens in the others.
 */
export class Random {
  readonly #seed: number;
  #state: number;

  constructor(seed: number) {
    this.#seed = seed | 0;
    this.#state = this.#seed;
  }

  /** Uniform in [0, 1). The generator known as mulberry32: 32 bits of state, and good enough to draw arrivals and delays with. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    const state = this.#state;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A stream of its own: it depends on the seed and the name, and not on what has been drawn. */
  fork(name: string): Random {
    let hash = this.#seed ^ 0x9e3779b9;
    for (let at = 0; at < name.length; at += 1) hash = Math.imul(hash ^ name.charCodeAt(at), 0x85ebca6b);
    return new Random(hash ^ (hash >>> 15));
  }

  chance(probability: number): boolean {
    return probability > 0 && this.next() < probability;
  }

  between(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.next() * count);
  }

  /** The time to the next of events that happen at random, `mean` apart. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }

  oneOf<Value>(values: readonly Value[]): Value {
    return values[this.below(values.length)]!;
  }
}

/** Draws an index with the odds of the weights. */
export type Draw = (random: Random) => number;

export function weighted(weights: readonly number[]): Draw {
  const sums: number[] = [];
  let total = 0;
  for (const weight of weights) {
    total += weight;
    sums.push(total);
  }
  return (random) => {
    const at = random.next() * total;
    let low = 0;
    let high = sums.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (sums[middle]! > at) high = middle;
      else low = middle + 1;
    }
    return low;
  };
}

/** Zipf's law: the k-th has 1/k of the weight of the first. */
export function zipf(count: number): Draw {
  return weighted(Array.from({ length: count }, (_, at) => 1 / (at + 1)));
}

export function evenly(count: number): Draw {
  return (random) => random.below(count);
}
