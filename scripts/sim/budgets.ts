/**
 * How long each hop of a request may take in a world in which nothing is slow. A journey with a hop above its budget exits 1.
 *
 * What the network and the owner take is what `faults` calls usual; the rest is what the engine promises.
 */
import { HEALTHY } from './faults.ts';

/** Nothing is waited for within an isolate; its clock tells whole milliseconds. */
export const IN_ISOLATE_MS = 1;

export const ONE_WAY_MS = HEALTHY.delayMs + HEALTHY.jitterMs;
export const AT_OWNER_MS = HEALTHY.serviceMs;

/** An owner that is not in memory starts first. */
export const AT_COLD_OWNER_MS = HEALTHY.startMs + HEALTHY.serviceMs;

/** A whole request that asks a warm owner, and one that asks a cold one. */
export const ASKED_MS = 2 * ONE_WAY_MS + AT_OWNER_MS;
export const ASKED_COLD_MS = 2 * ONE_WAY_MS + AT_COLD_OWNER_MS;

/** How long a journey's rule file lets a request wait for an owner. */
export const DEADLINE_MS = 150;

/** A breaker probes half a second after a failure, up to a fifth later (`engine/breaker`). */
export const PROBE_MS = 600;

/** A probe that was lost is waited for a second, the next comes `PROBE_MS` later, and closing gradually takes seven answers. */
export const RECOVERY_MS = 2_000;

/** A calm lease is renewed every half second, a tenth earlier or later (`engine/lease-terms`, `engine/leases`). */
export const RENEWAL_MS = 550;

/** Fetching a document of rules is a round trip to wherever it is kept. */
export const FETCH_MS = 2 * ONE_WAY_MS;
