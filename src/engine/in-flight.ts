/**
 * How many calls are on their way.
 *
 * The platform stops a request whose client has gone, without a word: its calls would be counted for ever. No call is waited for
 * longer than a second, so a count that nothing was added to for two seconds is one of requests that vanished, and is void.
 */
import { BoundedMap } from './bounded-map.ts';
import type { Group } from './groups.ts';

const VOID_AFTER_MS = 2_000;

export class InFlight {
  #count = 0;
  #lastBeganMs = Number.NEGATIVE_INFINITY;

  count(nowMs: number): number {
    if (nowMs - this.#lastBeganMs > VOID_AFTER_MS) this.#count = 0;
    return this.#count;
  }

  /** Whether the latest of them has been on its way for longer than that. */
  isOlderThan(ms: number, nowMs: number): boolean {
    return this.count(nowMs) > 0 && nowMs - this.#lastBeganMs > ms;
  }

  began(nowMs: number): void {
    this.#count = this.count(nowMs) + 1;
    this.#lastBeganMs = nowMs;
  }

  ended(): void {
    this.#count = Math.max(0, this.#count - 1);
  }
}

/** Questions on their way, apart for each group of counters and for each counter. */
export class QuestionsInFlight {
  readonly #groups: BoundedMap<InFlight>;
  readonly #counters: BoundedMap<InFlight>;

  constructor(groupsMax: number) {
    this.#groups = new BoundedMap(groupsMax);
    this.#counters = new BoundedMap(groupsMax);
  }

  /** The counters of a group are asked about together, so the first stands for all. What is asked of a slice is apart from what its owner was asked. */
  of({ owner, enforced, shadow }: Group): InFlight {
    const first = (enforced[0] ?? shadow[0])!;
    return inFlightIn(this.#groups, first.owner === owner ? first.counterId : owner.name);
  }

  /** Of each of its counters, whichever group asks: several groups may have one in common. */
  ofEach({ owner, enforced, shadow }: Group): readonly InFlight[] {
    return [...enforced, ...shadow].map(({ counterId }) =>
      inFlightIn(this.#counters, `${owner.name}\n${counterId}`),
    );
  }
}

function inFlightIn(map: BoundedMap<InFlight>, key: string): InFlight {
  const known = map.get(key);
  if (known !== undefined) return known;
  const inFlight = new InFlight();
  map.set(key, inFlight);
  return inFlight;
}
