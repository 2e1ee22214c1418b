/**
 * The Worker: what Cloudflare calls, and what other Workers may import.
 */

import { createGateway, type GatewayBindings } from './gateway/app.ts';
import { bundledSnapshot, type Snapshot } from './gateway/rules-source.ts';
import bundledRuleset from './generated/ruleset.json';
import type { Ruleset } from './policy/ruleset.ts';

export { LimiterOwner } from './objects/limiter-owner.ts';

interface WorkerBindings extends GatewayBindings {
  /** A compiled ruleset in place of the one that was bundled. */
  readonly BUNDLED_RULES?: Ruleset;
  /** Spreads invented values over the shared owners; a secret, so that nobody can aim at a neighbour's owner. */
  readonly OWNER_SEED?: string;
}

let snapshot: Snapshot | undefined;

/** The bindings do not change in the life of an isolate, so its first request makes the snapshot. */
function rules(bindings: GatewayBindings): Snapshot {
  const { BUNDLED_RULES, OWNER_SEED } = bindings as WorkerBindings;
  snapshot ??= bundledSnapshot(BUNDLED_RULES ?? (bundledRuleset as unknown as Ruleset), OWNER_SEED);
  return snapshot;
}

export default createGateway({ rules }) satisfies ExportedHandler<WorkerBindings>;
