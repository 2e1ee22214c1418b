/** A map that never holds more than `entriesMax` entries: when it is full, the one that was touched longest ago gives way. */
import { RecencyMap } from './recency-map.ts';

export class BoundedMap<Value> {
  readonly #entries = new RecencyMap<Value>();
  readonly #entriesMax: number;
  readonly #onDisplaced: (value: Value, key: string) => void;

  constructor(entriesMax: number, onDisplaced: (value: Value, key: string) => void = () => {}) {
    this.#entriesMax = entriesMax;
    this.#onDisplaced = onDisplaced;
  }

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  /** Like `get`, and counts as a touch. */
  touch(key: string): Value | undefined {
    return this.#entries.touch(key);
  }

  set(key: string, value: Value): void {
    this.#entries.put(key, value);
    if (this.#entries.size <= this.#entriesMax) return;
    const [oldest, displaced] = this.#entries.shift()!;
    this.#onDisplaced(displaced, oldest);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  /** From the one that was touched longest ago on. */
  values(): readonly Value[] {
    return this.#entries.values();
  }
}
