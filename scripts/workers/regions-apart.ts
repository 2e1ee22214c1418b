/**
 * What lies between regions: time, and partitions that can be switched on.
 *
 * Under `serve` all owners live in one process, so a root is given a home: the region of the first middle owner that calls it. A call from
 * another region is under way for half of the latency each way. Where one of the two is cut off, the message is lost, be it the call or
 * what comes of it; who sent it learns of that long after it has given up, as with a connection that dies in silence.
 */
import { placeOf } from '../../src/policy/place.ts';
import type { Region } from '../../src/policy/region.ts';

/** Longer than any middle owner waits. Each calls once a second, so no more than so many are under way at once, a second each. */
const LOST_MS = 5_000;

/** A home is some 200 bytes. Beyond this the oldest is forgotten, and found anew. */
const HOMES_MAX = 100_000;

export interface Apart {
  /** Of a call and its answer together. */
  readonly latencyMs: number;
  readonly wait: (ms: number) => Promise<unknown>;
}

export class RegionsApart {
  readonly #options: Apart;
  readonly #homes = new Map<string, Region>();
  readonly #cut = new Set<Region>();

  constructor(options: Apart) {
    this.#options = options;
  }

  set(region: Region, mode: 'cut' | 'ok'): void {
    if (mode === 'cut') this.#cut.add(region);
    else this.#cut.delete(region);
  }

  /** What a middle owner is answered by the root, `answer` being what the root does when the call is there. */
  async call<T>(middle: string, root: string, answer: () => Promise<T>): Promise<T> {
    const region = placeOf(middle)?.region;
    if (region === undefined) return answer();
    const home = this.#homeOf(root, region);
    if (region === home) return answer();
    await this.#travel(region, home);
    const reply = await answer();
    await this.#travel(home, region);
    return reply;
  }

  async #travel(from: Region, to: Region): Promise<void> {
    const { latencyMs, wait } = this.#options;
    if (this.#cut.has(from) || this.#cut.has(to)) {
      await wait(LOST_MS);
      throw new Error('Network connection lost.');
    }
    if (latencyMs > 0) await wait(latencyMs / 2);
  }

  #homeOf(root: string, caller: Region): Region {
    const known = this.#homes.get(root);
    if (known !== undefined) return known;
    const [oldest] = this.#homes.keys();
    if (this.#homes.size >= HOMES_MAX) this.#homes.delete(oldest!);
    this.#homes.set(root, caller);
    return caller;
  }
}
