/**
 * A link to each owner that the isolate has had to do with lately. What goes with a link that has to give way is counted.
 */
import type { OwnerRef } from '../policy/counter.ts';
import { BoundedMap } from './bounded-map.ts';
import { OwnerLink } from './owner-link.ts';
import type { EngineEvent } from './ports.ts';

/** About 500 bytes each. A displaced link costs one first deadline, and what it still had to tell. */
export const LINKS_MAX = 8_192;

export class Links {
  readonly #count: (event: EngineEvent, amount: number) => void;
  readonly #links: BoundedMap<OwnerLink>;

  constructor(count: (event: EngineEvent, amount: number) => void) {
    this.#count = count;
    this.#links = new BoundedMap(LINKS_MAX, ({ debts, voids, corrections, slots }) => {
      this.#lost('debt_lost', debts.size);
      this.#lost('give_back_lost', voids.charged);
      this.#lost('correction_lost', corrections.size);
      this.#lost('slot_release_lost', slots.size);
    });
  }

  /** How many have an open breaker. */
  get silent(): number {
    let open = 0;
    for (const { breaker } of this.#links.values()) if (!breaker.isClosed) open += 1;
    return open;
  }

  to(owner: OwnerRef): OwnerLink {
    const known = this.#links.touch(owner.name);
    if (known !== undefined) return known;
    const link = new OwnerLink({
      onDebtLost: (count) => this.#lost('debt_lost', count),
      onGiveBackLost: (count) => this.#lost('give_back_lost', count),
      onCorrectionLost: (count) => this.#lost('correction_lost', count),
      onReleaseLost: (count) => this.#lost('slot_release_lost', count),
    });
    this.#links.set(owner.name, link);
    return link;
  }

  #lost(event: EngineEvent, amount: number): void {
    if (amount > 0) this.#count(event, amount);
  }
}
