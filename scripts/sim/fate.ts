/**
 * What may become of a call on its way to an owner and back.
 */
import type { OwnerFailure } from '../../src/engine/ports.ts';
import type { Faults } from './faults.ts';
import type { Random } from './random.ts';

export interface Fate {
  /** When each copy of the call reaches the owner, in milliseconds since it was sent; none: it never does. */
  readonly arrivesAfterMs: readonly number[];
  /** What the caller hears of it; `nothing` leaves it waiting for ever. */
  readonly heard: Heard;
}

export type Heard =
  | 'nothing'
  /** The reply to the copy of this number (from 0), so long after it was made. */
  | { readonly copy: number; readonly afterMs: number }
  /** A failure, so long after the call was sent. */
  | { readonly failure: OwnerFailure; readonly afterMs: number };

const CONNECTION_LOST: OwnerFailure = { overloaded: false, retryable: true };

/** What becomes of the next call. */
export function drawFate(faults: Faults, random: Random): Fate {
  const thereMs = onTheWayMs(faults, random);
  const backMs = onTheWayMs(faults, random);
  if (random.chance(faults.callsLost)) return { arrivesAfterMs: [], heard: 'nothing' };
  if (random.chance(faults.repliesLost)) return { arrivesAfterMs: [thereMs], heard: 'nothing' };
  if (random.chance(faults.connectionsLost)) {
    const arrivesAfterMs = random.chance(0.5) ? [thereMs] : [];
    return { arrivesAfterMs, heard: { failure: CONNECTION_LOST, afterMs: thereMs } };
  }
  if (random.chance(faults.callsRepeated)) {
    const againMs = thereMs + onTheWayMs(faults, random);
    return { arrivesAfterMs: [thereMs, againMs], heard: { copy: 1, afterMs: backMs } };
  }
  return { arrivesAfterMs: [thereMs], heard: { copy: 0, afterMs: backMs } };
}

function onTheWayMs({ delayMs, jitterMs, stragglers, stragglerMs }: Faults, random: Random): number {
  return delayMs + jitterMs * random.next() + (random.chance(stragglers) ? stragglerMs : 0);
}
