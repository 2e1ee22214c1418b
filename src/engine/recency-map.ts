/**
 * A map that knows which of its entries was put last, and which longest ago: both are found at once, however many have come and gone.
 *
 * A `Map` keeps entries in order of insertion as well. But it looks for its first past the places of all that were taken out before it,
 * thousands at worst, and putting an entry last means taking it out. So the order is a chain of its own here.
 */

interface Link<Value> {
  readonly key: string;
  value: Value;
  older: Link<Value> | undefined;
  newer: Link<Value> | undefined;
}

export class RecencyMap<Value> {
  readonly #links = new Map<string, Link<Value>>();
  #oldest: Link<Value> | undefined;
  #newest: Link<Value> | undefined;

  get size(): number {
    return this.#links.size;
  }

  get oldest(): Value | undefined {
    return this.#oldest?.value;
  }

  get newest(): Value | undefined {
    return this.#newest?.value;
  }

  get(key: string): Value | undefined {
    return this.#links.get(key)?.value;
  }

  /** The entry is the newest from now on. */
  put(key: string, value: Value): void {
    const known = this.#links.get(key);
    if (known === undefined) {
      const link = { key, value, older: undefined, newer: undefined };
      this.#links.set(key, link);
      this.#append(link);
      return;
    }
    known.value = value;
    this.#renew(known);
  }

  /** Like `get`, and the entry, if there is one, is the newest from now on. */
  touch(key: string): Value | undefined {
    const known = this.#links.get(key);
    if (known !== undefined) this.#renew(known);
    return known?.value;
  }

  delete(key: string): void {
    const known = this.#links.get(key);
    if (known === undefined) return;
    this.#links.delete(key);
    this.#unlink(known);
  }

  clear(): void {
    this.#links.clear();
    this.#oldest = undefined;
    this.#newest = undefined;
  }

  /** From the oldest on. */
  values(): readonly Value[] {
    const values: Value[] = [];
    for (let link = this.#oldest; link !== undefined; link = link.newer) values.push(link.value);
    return values;
  }

  /** Takes the oldest entry out, if there is one. */
  shift(): readonly [key: string, value: Value] | undefined {
    const oldest = this.#oldest;
    if (oldest === undefined) return undefined;
    this.delete(oldest.key);
    return [oldest.key, oldest.value];
  }

  #renew(link: Link<Value>): void {
    if (link === this.#newest) return;
    this.#unlink(link);
    this.#append(link);
  }

  #append(link: Link<Value>): void {
    link.older = this.#newest;
    link.newer = undefined;
    if (this.#newest === undefined) this.#oldest = link;
    else this.#newest.newer = link;
    this.#newest = link;
  }

  #unlink({ older, newer }: Link<Value>): void {
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
  }
}
