/**
 * Words to an owner that no request waits for, when no question is on its way that could carry them: in batches, and again until the
 * owner has acknowledged them.
 *
 * The first word waits a moment for others and then takes them all along; meanwhile any question to that owner takes them too. While the
 * breaker is open nothing is sent: its probes carry what there is to tell. Each errand belongs to a request and ends with it at the
 * latest (the platform keeps one alive for half a minute); what is left then waits for the next message to that owner.
 */
import type { OwnerRef } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';
import type { Owners } from './owners.ts';
import type { Ports } from './ports.ts';

/** Long enough for requests that end together, and hardly longer than the way to the owner. */
const BATCH_MS = 10;

/** A lost word is repeated after this, then after twice as long, and so on. */
const REPEAT_AFTER_MS = 500;
const REPEAT_AFTER_MS_MAX = 4_000;

export interface ErrandsOptions {
  readonly ports: Ports;
  readonly nowMs: () => number;
  readonly owners: Pick<Owners, 'link' | 'tell'>;
}

export interface Errand {
  readonly owner: OwnerRef;
  readonly version: Version;
  /** Whether the owner has yet to be told. */
  readonly isUntold: () => boolean;
}

export class Errands {
  readonly #options: ErrandsOptions;

  constructor(options: ErrandsOptions) {
    this.#options = options;
  }

  /** Settles when the owner has been told, or there is nothing to tell any more. */
  async run({ owner, version, isUntold }: Errand): Promise<void> {
    const { ports, nowMs, owners } = this.#options;
    const link = owners.link(owner);
    // Somebody else's errand is about to take this word along; if that one dies with its request, this one goes itself.
    const isMine = nowMs() >= link.errandDueMs;
    if (isMine) link.errandDueMs = nowMs() + BATCH_MS;
    let waitMs = isMine ? BATCH_MS : REPEAT_AFTER_MS;
    while (isUntold()) {
      await ports.timer(waitMs).done;
      if (isUntold() && owners.link(owner).breaker.isClosed) await owners.tell(owner, version);
      waitMs = Math.min(REPEAT_AFTER_MS_MAX, Math.max(REPEAT_AFTER_MS, 2 * waitMs));
    }
  }
}
