/**
 * A map that never holds more than `entriesMax` entries: when it is full, the one that was touched longest ago gives way.
 *
 * A `Map` iterates in order of insertion, so touching is taking out and putting back.
 */
export class BoundedMap<Value> {
  readonly #entries = new Map<string, Value>();
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
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  set(key: string, value: Value): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.#entriesMax) return;
    const oldest = this.#entries.entries().next().value;
    if (oldest === undefined) return;
    this.#entries.delete(oldest[0]);
    this.#onDisplaced(oldest[1], oldest[0]);
  }

  delete(key: string): void {
    this.#entries.delete(key);
  }

  clear(): void {
    this.#entries.clear();
  }

  values(): IterableIterator<Value> {
    return this.#entries.values();
  }

  entries(): IterableIterator<[string, Value]> {
    return this.#entries.entries();
  }
}
