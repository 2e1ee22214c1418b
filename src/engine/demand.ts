/**
 * Who asks for a counter, and how much: a decaying sum of arrivals per holder, and of all holders together.
 *
 * All sums decay alike, so the total is the sum of the parts at any instant, and a share costs two divisions. A holder that has
 * not asked for a while is forgotten; it had decayed to nothing by then.
 */

/** Half of what arrived is forgotten after this long: a few round trips, yet quick enough for a caller that moves to another isolate. */
const HALF_LIFE_MS = 5_000;

/** Ten half-lives leave a thousandth, which changes no share that matters. */
const FORGET_AFTER_MS = 10 * HALF_LIFE_MS;

/** An object answers about 1,000 calls a second, so more holders than this cannot ask often enough to be told a useful share. */
const HOLDERS_MAX = 4_096;

interface Sum {
  value: number;
  atMs: number;
}

export class Demand {
  /** In order of the last arrival, so the ones to forget stand in front. */
  readonly #holders = new Map<string, Sum>();
  readonly #total: Sum = { value: 0, atMs: 0 };

  arrive(holder: string, cost: number, nowMs: number): void {
    const sum = this.#holders.get(holder) ?? { value: 0, atMs: nowMs };
    this.#holders.delete(holder);
    this.#holders.set(holder, sum);
    add(sum, cost, nowMs);
    add(this.#total, cost, nowMs);
    this.#forget(nowMs);
  }

  /** This holder's part of the demand, 0 to 1; 0 for a holder that never arrived. */
  share(holder: string, nowMs: number): number {
    const own = this.#holders.get(holder);
    if (own === undefined || own.value === 0) return 0;
    const total = decayed(this.#total, nowMs);
    return total > 0 ? Math.min(1, decayed(own, nowMs) / total) : 1;
  }

  get activeHolders(): number {
    return this.#holders.size;
  }

  #forget(nowMs: number): void {
    for (const [holder, sum] of this.#holders) {
      if (nowMs - sum.atMs < FORGET_AFTER_MS && this.#holders.size <= HOLDERS_MAX) return;
      this.#holders.delete(holder);
      this.#total.value = Math.max(0, decayed(this.#total, nowMs) - decayed(sum, nowMs));
      this.#total.atMs = nowMs;
    }
  }
}

function decayed(sum: Sum, nowMs: number): number {
  return sum.value * 2 ** (-Math.max(0, nowMs - sum.atMs) / HALF_LIFE_MS);
}

function add(sum: Sum, cost: number, nowMs: number): void {
  sum.value = decayed(sum, nowMs) + cost;
  sum.atMs = nowMs;
}
