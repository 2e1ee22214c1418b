/**
 * Words to an owner that no request waits for, when no question is on its way that could carry them: in batches, and again until the
 * owner has acknowledged them.
 *
 * The first word waits a moment for others, then one message takes all there is to tell; any question to that owner meanwhile does so
 * too. As long as that message is on its way nobody sends another, so however many words wait for a silent owner, they cost one call
 * in half a second. Each errand belongs to a request, which the platform keeps alive for half a minute after its response; what is
 * left then waits for the next message to that owner.
 */
import type { OwnerRef } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';
import type { Owners } from './owners.ts';
import type { Ports } from './ports.ts';

/** Long enough for requests that end together, and hardly longer than the way to the owner. */
const BATCH_MS = 10;

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
  /** Whether there still is something to tell. */
  readonly isUntold: () => boolean;
}

export class Errands {
  readonly #options: ErrandsOptions;

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  /** Settles when the owner has been told, or there is nothing to tell any more, or half a minute has passed. */
  async run({ owner, version, isUntold }: Errand): Promise<void> {
    const { ports, nowMs, owners } = this.#options;
    let repeatAfterMs = REPEAT_AFTER_MS;
    const untilMs = nowMs() + ERRAND_MS_MAX;
    let isMessenger = false;
    while (nowMs() < untilMs && (isUntold() || (isMessenger && owners.link(owner).hasUntold(nowMs())))) {
      const link = owners.link(owner);
      isMessenger = nowMs() >= link.messengerUntilMs;
      if (isMessenger) link.messengerUntilMs = nowMs() + BATCH_MS;
      // Whoever is no messenger looks again when the messenger should be back, for its request may have died meanwhile.
      await ports.timer(link.messengerUntilMs - nowMs()).done;
      if (!isMessenger) continue;
      if (!link.hasUnsent(nowMs() - REPEAT_AFTER_MS, nowMs())) {
        // A question has just taken it along, and its answer is the acknowledgement to wait for.
        link.messengerUntilMs = nowMs() + link.usualMs;
        continue;
      }
      link.messengerUntilMs = nowMs() + PATIENCE_MS;
      const timer = ports.timer(PATIENCE_MS);
      await Promise.race([owners.tell(owner, version), timer.done]);
      timer.cancel();
      link.messengerUntilMs = nowMs() + repeatAfterMs;
      repeatAfterMs = Math.min(REPEAT_AFTER_MS_MAX, 2 * repeatAfterMs);
      if (!isUntold()) link.messengerUntilMs = nowMs();
    }
  }
}
