/**
 * A rule change on its way through a fleet: one isolate has read it, its owner learns of it with the next call, and the others by the
 * owner's replies; whoever takes it up renews its leases at once.
 */
import type { Version } from '../../../src/policy/ruleset.ts';
import { FETCH_MS, IN_ISOLATE_MS, ONE_WAY_MS, RENEWAL_MS } from '../budgets.ts';
import type { Isolate } from '../isolate.ts';
import type { Journey, Walk } from '../journey.ts';
import { perSecond } from '../scenarios/kit.ts';

const ISOLATES = 5;
const NEW: Version = { activation: 2, builtAtMs: 0 };

/** Each isolate's requests, one this often: it holds leases, and renews them with a request. */
const EVERY_MS = 20;

/** So that nobody is on its first, short lease any more. */
const SETTLED_MS = 1_500;

/** A calm lease is renewed in time; then the new rules are fetched, and the next request comes under them. */
const SPREAD_MS = RENEWAL_MS + EVERY_MS + 2 * ONE_WAY_MS + 2 + FETCH_MS + EVERY_MS;

export const RULE_CHANGE: Journey = {
  name: 'rule-change',
  about: 'a rule change reaches a fleet: by an owner’s replies, and leases are hurried',
  isolates: ISOLATES,
  async go(walk) {
    const fleet = new Fleet(walk);
    await fleet.serve(SETTLED_MS);
    walk.leg('2,000 a second become 500: one isolate has read the new rules');
    fleet.publish();
    await fleet.serve(2 * SPREAD_MS);
    fleet.expectAll();
  },
};

class Fleet {
  readonly #walk: Walk;
  readonly #versions = new Map<string, Version>();
  readonly #news = new Set<string>();
  readonly #takenUpMs = new Map<string, number>();
  /** Isolates that have asked their owner under the new rules. */
  readonly #asked = new Set<string>();
  #publishedMs = 0;

  constructor(walk: Walk) {
    this.#walk = walk;
    walk.whenHeard((from, { version }) => this.#heard(from, version));
    // Each isolate's first message under the new rules, and no other.
    walk.tellOf(({ holder }, { version }) => {
      if (version.activation < NEW.activation || this.#asked.has(holder)) return false;
      this.#asked.add(holder);
      return { ms: walk.nowMs - this.#takenUpMs.get(holder)!, budgetMs: EVERY_MS + IN_ISOLATE_MS };
    });
  }

  publish(): void {
    this.#publishedMs = this.#walk.nowMs;
    this.#takeUp(this.#walk.world.isolates[0]!, 'reads activation 2');
  }

  /** Lets every isolate have its requests, under the rules that it has. */
  async serve(forMs: number): Promise<void> {
    const { world } = this.#walk;
    const untilMs = this.#walk.nowMs + forMs;
    while (this.#walk.nowMs < untilMs) {
      for (const [isolate, { holder }] of world.isolates.entries()) {
        const version = this.#versions.get(holder);
        const enforced = [
          perSecond({ perSecond: version === undefined ? 2_000 : 500, consistency: 'leased' }),
        ];
        void this.#walk.askQuietly({ isolate, enforced, ...(version && { version }) });
      }
      await this.#walk.pass(EVERY_MS);
    }
  }

  /** Nothing is told of what did not happen, so that is. */
  expectAll(): void {
    if (this.#versions.size < ISOLATES) this.#hopOfAll('does not decide by the new rules everywhere');
  }

  #hopOfAll(what: string): void {
    this.#walk.hop('the fleet', what, {
      took: { ms: this.#walk.nowMs - this.#publishedMs, budgetMs: SPREAD_MS },
    });
  }

  #heard(from: Isolate, { activation }: Version): void {
    const { holder } = from;
    if (activation < NEW.activation || this.#news.has(holder) || this.#versions.has(holder)) return;
    const heardMs = this.#walk.nowMs;
    this.#news.add(holder);
    this.#walk.hop(holder, 'hears of activation 2 by a reply to a renewal', {
      took: { ms: heardMs - this.#publishedMs, budgetMs: RENEWAL_MS + EVERY_MS + 2 * ONE_WAY_MS + 2 },
    });
    this.#walk.world.time.after(FETCH_MS, () =>
      this.#takeUp(from, 'has fetched activation 2', {
        ms: this.#walk.nowMs - heardMs,
        budgetMs: FETCH_MS + IN_ISOLATE_MS,
      }),
    );
  }

  #takeUp(from: Isolate, what: string, took?: { ms: number; budgetMs: number }): void {
    this.#versions.set(from.holder, NEW);
    this.#takenUpMs.set(from.holder, this.#walk.nowMs);
    this.#walk.hop(from.holder, `${what}, and renews its leases with the next request`, { took });
    if (this.#versions.size === ISOLATES) this.#hopOfAll('decides by the new rules everywhere');
  }
}
