/**
 * Words to an owner that no request waits for, when no question is on its way that could carry them: in batches, and again until the
 * owner has acknowledged them.
 *
 * The first word waits a while for others, then one message takes all there is to tell; any question to that owner meanwhile does so
 * too. An urgent word waits less, and takes the calm ones along. As long as that message is on its way nobody sends another, so however many words wait for a silent owner, they cost one call
 * in half a second. Each errand belongs to a request, which the platform keeps alive for half a minute after its response; what is
 * left then waits for the next message to that owner.
 */
import type { OwnerRef } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';
import type { Messenger } from './owner-link.ts';
import type { Owners } from './owners.ts';
import type { Ports } from './ports.ts';

/** Long enough for requests that end together, and hardly longer than the way to the owner. */
const URGENT_MS = 10;

/** Where nobody waits for the word: long enough for the caller's next request to take it along. */
const CALM_MS = 250;

/** A call may hang for as long as it likes; this one is then given up, as it would be for a request. */
const PATIENCE_MS = 1_000;

/** A lost word is repeated after this, then after twice as long, and so on. */
const REPEAT_AFTER_MS = 500;
const REPEAT_AFTER_MS_MAX = 4_000;

/** As long as the platform keeps a request alive whose response has ended. */
const ERRAND_MS_MAX = 30_000;

export interface ErrandsOptions {
  readonly ports: Ports;
  readonly nowMs: () => number;
  readonly owners: Pick<Owners, 'link' | 'tell'>;
}

export interface Errand {
  readonly owner: OwnerRef;
  readonly version: Version;
  /** Somebody may be refused for want of this word. */
  readonly isUrgent: boolean;
  /** Whether there still is something to tell. */
  readonly isUntold: () => boolean;
}

export class Errands {
  readonly #options: ErrandsOptions;

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  /** Settles when the owner has been told, or there is nothing to tell any more, or half a minute has passed. */
  async run({ owner, version, isUrgent, isUntold }: Errand): Promise<void> {
    const { ports, nowMs, owners } = this.#options;
    const batchMs = isUrgent ? URGENT_MS : CALM_MS;
    const untilMs = nowMs() + ERRAND_MS_MAX;
    let repeatAfterMs = REPEAT_AFTER_MS;
    while (isUntold() && nowMs() < untilMs) {
      const { messenger } = owners.link(owner);
      const goesAtMs = nowMs() + batchMs;
      const isMessenger = nowMs() >= messenger.untilMs || (!messenger.isAway && goesAtMs < messenger.untilMs);
      if (isMessenger) {
        messenger.untilMs = goesAtMs;
        messenger.isAway = false;
      }
      // Whoever is no messenger looks again when the messenger should be back, for its request may have died meanwhile.
      await ports.timer(messenger.untilMs - nowMs()).done;
      const isOvertaken = messenger.untilMs !== goesAtMs;
      if (!isMessenger || isOvertaken || !isUntold()) continue;
      if (!this.#hasUnsent(owner)) {
        // A question has just taken it along, and its answer is the acknowledgement to wait for.
        messenger.untilMs = nowMs() + owners.link(owner).usualMs;
        continue;
      }
      // Words that came up while the messenger was away have waited long enough.
      do await this.#go({ owner, version }, messenger);
      while (!isUntold() && this.#hasUnsent(owner));
      // An owner that is silent is left alone for a while, whatever else there may be to tell it.
      messenger.isAway = isUntold();
      messenger.untilMs = nowMs() + (isUntold() ? repeatAfterMs : 0);
      repeatAfterMs = Math.min(REPEAT_AFTER_MS_MAX, 2 * repeatAfterMs);
    }
  }

  #hasUnsent(owner: OwnerRef): boolean {
    const { nowMs, owners } = this.#options;
    return owners.link(owner).hasUnsent(nowMs() - REPEAT_AFTER_MS, nowMs());
  }

  async #go({ owner, version }: Pick<Errand, 'owner' | 'version'>, messenger: Messenger): Promise<void> {
    const { ports, nowMs, owners } = this.#options;
    messenger.isAway = true;
    messenger.untilMs = nowMs() + PATIENCE_MS;
    const timer = ports.timer(PATIENCE_MS);
    await Promise.race([owners.tell(owner, version), timer.done]);
    timer.cancel();
  }
}
