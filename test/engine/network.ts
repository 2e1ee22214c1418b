/**
 * What may become of a call on its way to an owner and back.
 */
import type { Fate } from '../../scripts/sim/fate.ts';
import type { OwnerCall } from '../../src/engine/messages.ts';
import type { OwnerFailure } from '../../src/engine/ports.ts';

export type { Fate };

export interface Sent {
  readonly owner: string;
  readonly call: OwnerCall;
  /** Calls so far to this owner, from 0. */
  readonly number: number;
}

export type Network = (sent: Sent) => Fate;

export function answers({ thereMs = 1, backMs = 1 } = {}): Fate {
  return { arrivesAfterMs: [thereMs], heard: { copy: 0, afterMs: backMs } };
}

export function questionLost(): Fate {
  return { arrivesAfterMs: [], heard: 'nothing' };
}

export function answerLost(thereMs = 1): Fate {
  return { arrivesAfterMs: [thereMs], heard: 'nothing' };
}

/** The platform's own retry: the owner gets two copies, and the caller hears the reply to the second. */
export function deliveredTwice({ thereMs = 1, againMs = 20, backMs = 1 } = {}): Fate {
  return { arrivesAfterMs: [thereMs, againMs], heard: { copy: 1, afterMs: backMs } };
}

export interface FailureOptions extends Partial<OwnerFailure> {
  readonly afterMs?: number;
  /** The owner did what it was asked to before the connection broke. */
  readonly isDone?: boolean;
}

export function fails({
  afterMs = 0,
  isDone = false,
  retryable = false,
  overloaded = false,
}: FailureOptions = {}): Fate {
  return { arrivesAfterMs: isDone ? [afterMs] : [], heard: { failure: { retryable, overloaded }, afterMs } };
}

export const healthy: Network = () => answers();
export const down: Network = () => fails();
export const stalled: Network = () => questionLost();
