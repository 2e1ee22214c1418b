/**
 * What the engine needs of the world. Production, the tests and the simulator differ in these and in nothing else.
 */
import type { OwnerRef, Winner } from '../policy/counter.ts';
import type { OwnerCall, OwnerReply } from './messages.ts';

export interface Ports {
  /** The raw clock, in milliseconds since the Unix epoch. It may stand still, and it may step. */
  nowMs(): number;
  /** Uniform in [0, 1). */
  random(): number;
  /** A timer that belongs to the request that set it. */
  timer(delayMs: number): Timer;
  /** One call, one attempt. Rejects with anything; `failureOf` reads it. */
  callOwner(owner: OwnerRef, call: OwnerCall): Promise<OwnerReply>;
  /** Something happened that is worth a number. */
  count(event: EngineEvent, amount?: number): void;
  /** Something changed that is worth a line. */
  log(line: EngineLog): void;
  /** A shadow rule would have denied a request; said of each, also after the verdict has fallen. */
  shadowDenied?(winner: Winner): void;
  /** An owner took so long to answer. */
  answered?(tookMs: number): void;
  /** An owner knows newer rules than the isolate does, or an operator's word about a caller. */
  heard?(word: Pick<OwnerReply, 'version' | 'clamps'>): void;
}

export interface Timer {
  readonly done: Promise<void>;
  cancel(): void;
}

/** Keeps the request alive until the promise settles, after its response has gone. */
export type Background = (work: Promise<unknown>) => void;

export type EngineEvent =
  | 'owner_call'
  | 'owner_failure'
  | 'deny_memory_hit'
  | 'fallback_decision'
  | 'give_back'
  | 'lease_granted'
  | 'lease_hold'
  | 'give_back_lost'
  | 'debt_reported'
  | 'debt_lost'
  | 'correction_made'
  | 'correction_lost'
  | 'slot_release_lost'
  | 'shadow_denied';

export interface EngineLog {
  readonly event: 'breaker_opened' | 'breaker_closed' | 'all_owners_unreachable' | 'owners_reachable';
  /** The owner's name; it holds no raw key. Absent when it is about all owners. */
  readonly owner?: string;
}

/** How a call failed, as the platform marks its errors. */
export interface OwnerFailure {
  /** The owner has more calls than it can take: never retried, and its breaker opens at once. */
  readonly overloaded: boolean;
  /** The connection was lost; another attempt may succeed, and is safe because a question is charged once. */
  readonly retryable: boolean;
}

export function failureOf(error: unknown): OwnerFailure {
  const marks = typeof error === 'object' && error !== null ? (error as Partial<OwnerFailure>) : {};
  return { overloaded: marks.overloaded === true, retryable: marks.retryable === true };
}
