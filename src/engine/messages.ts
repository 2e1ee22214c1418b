/**
 * What an isolate says to an owner, and what the owner answers.
 *
 * One message carries whatever there is to say: a question, debts of an outage, charges to take back. All of it may arrive late, twice
 * or out of order: each part bears an id under which the owner applies it at most once. During a rollout two code versions
 * talk to each other, so a message says its format, and a reader takes the one before and the one after its own.
 */
import type { LogicalClock } from '../core/clock.ts';
import type { Decision, Limit } from '../core/decision.ts';
import type { Clamp } from '../policy/clamp.ts';
import type { Version } from '../policy/ruleset.ts';
import type { LeaseGrant, LeaseReport } from './lease.ts';

export const MESSAGE_FORMAT = 1;

export interface OwnerCall {
  readonly format: number;
  /** The isolate that asks: random, so that no two ever share it. */
  readonly holder: string;
  /** The ruleset that the numbers in `question` come from. */
  readonly version: Version;
  readonly question?: Question;
  readonly debts?: readonly Debt[];
  /** Ids of questions whose charge is to be taken back. */
  readonly giveBacks?: readonly string[];
  readonly corrections?: readonly Correction[];
  readonly slots?: readonly SlotNotice[];
  /** What operators have decided about callers whose counters this owner holds. */
  readonly clamps?: readonly Clamp[];
  /** Counters that an operator wants to see; nothing is charged, and nobody counts as asking for them. */
  readonly inspect?: readonly CounterRef[];
  /** What a request of this cost would meet at the counters that are inspected; 0 where it is not said. */
  readonly inspectCost?: number;
  /** Ids of counters to be set back to full. */
  readonly reset?: readonly string[];
  /** What a middle owner says of the leases that it has of this one. */
  readonly middle?: readonly MiddleReport[];
  /** Ids of counters: whether this owner, a slice of another, has begun with them. Nothing is asked of them. */
  readonly knock?: readonly string[];
}

export interface Question {
  /** Unique per request of an isolate; a repeated question gets its first answer again and is charged once. */
  readonly id: string;
  /** Whole units, >= 0; 0 asks and charges nothing. */
  readonly cost: number;
  readonly counters: readonly CounterQuestion[];
  /** The cost is an estimate; a correction will follow, and wants to know when it was charged. */
  readonly isEstimate?: boolean;
  /** A slice of the owner can be asked instead: one that has been split does not decide this. */
  readonly isMovable?: boolean;
  /** What a slice of an owner begins with, as that owner told the isolate. */
  readonly opening?: readonly MiddleGrant[];
  /** The holder would like to spend these counters by itself; what it still has of an earlier lease, if anything. */
  readonly lease?: LeaseReport;
}

export interface CounterQuestion {
  readonly id: string;
  readonly limit: Limit;
  /** A shadow counter is charged with the others and never decides. */
  readonly shadow: boolean;
  /** How fast this counter is asked for in the isolate, without what other counters denied. */
  readonly unitsPerSecond: number;
  /** What part of the limit a region admits on credit; only where regions share it. */
  readonly startCredit?: number;
}

/** A sum that only grows within an epoch: whichever of two messages comes first, the larger one counts. */
export interface Total {
  readonly units: number;
  /** So much of it the root is known to have heard; what a root takes for granted that knows nothing of the epoch. */
  readonly heard: number;
}

/** A part of a counter that is lent, for so long at most. */
export interface LentNow {
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly endsInMs: number;
}

/** What a middle owner says to the root about one counter. Lost, repeated or overtaken, it changes nothing that a later one does not say. */
export interface MiddleReport {
  readonly counterId: string;
  readonly limit: Limit;
  /** Grows with each life of the middle owner, and each time that it has given its lease up. */
  readonly epoch: number;
  /** The newest grant that has come, by which it goes from now on; 0 for none. */
  readonly number: number;
  /** What that grant lends; a root that has forgotten it learns of it here. Absent without a lease. */
  readonly lease?: LentNow | undefined;
  /** What it has lent on under earlier grants may be more than that, and is gone by until then. */
  readonly lentOn: LentNow;
  /** Units in hand; in a final report those that were. */
  readonly held: number;
  /** Units admitted beyond what was lent. */
  readonly owed: Total;
  /** Units that were lent, and were more than there was room for. */
  readonly returned: Total;
  /** As many units have come from the root as `MiddleGrant.lent` said at most. */
  readonly lent: number;
  readonly unitsPerSecond: number;
  readonly largestCost: number;
  /** Requests were denied since the last report. */
  readonly isShort: boolean;
  /** It gives the lease up and wants no other. */
  readonly isFinal: boolean;
}

/** What the root lends to a middle owner of one counter. */
export interface MiddleGrant {
  readonly counterId: string;
  /** The newest epoch that the root has heard of; if it is not the report's own, nothing of the report was heard. */
  readonly epoch: number;
  readonly number: number;
  /** Units lent in this epoch, all grants together. */
  readonly lent: number;
  readonly unitsPerMs: number;
  readonly capacity: number;
  readonly lifeMs: number;
  /** When to report again, counted from the reply. */
  readonly renewInMs: number;
  /** All that is left is shared out: there is nothing to be had before it is to be renewed. */
  readonly isScarce: boolean;
  /** The middle owner's part of the demand, 0 to 1. */
  readonly share: number;
  /** What the root has heard of the totals. */
  readonly owed: number;
  readonly returned: number;
  /** Of what slices begin with: those that it is not for, by number, since the root has heard of them. */
  readonly notFor?: readonly number[];
}

/** Units that a fallback admitted without asking, to be charged after the fact. */
export interface Debt {
  readonly id: string;
  readonly counterId: string;
  readonly limit: Limit;
  readonly units: number;
}

/** A counter as a message names it that is not a question. */
export interface CounterRef {
  readonly id: string;
  readonly limit: Limit;
}

/** What a request turned out to cost, beside what it was charged. */
export interface Correction {
  readonly id: string;
  readonly counters: readonly CounterRef[];
  /** Whole units: above 0 to be charged as well, below 0 to be given back. */
  readonly units: number;
  /** When the owner charged the estimate, as its answer said; absent when the units were not charged by a question. */
  readonly chargedAt?: LogicalClock;
}

/** What there is to say about the slots of one request: they are held from now on, or they are free. */
export interface SlotNotice {
  readonly id: string;
  readonly counters: readonly CounterRef[];
  readonly isHeld: boolean;
}

export interface OwnerReply {
  readonly format: number;
  /** Random per life of the owner in memory: what an earlier life promised is void. */
  readonly incarnation: string;
  /** The newest ruleset that the owner has seen. */
  readonly version: Version;
  readonly answer?: Answer;
  /** What is in force, or was lifted lately, about the callers of the question. */
  readonly clamps?: readonly Clamp[];
  readonly inspected?: readonly CounterReport[];
  /** One for each report of a middle owner that could be read. */
  readonly middle?: readonly MiddleGrant[];
  /** Whether it has something of every counter that it was knocked for. */
  readonly isOpen?: boolean;
}

/** The question's outcome over all enforced counters: the worst of theirs. It charged exactly when `allowed` and cost > 0. */
export interface Answer {
  readonly outcome: Decision['outcome'];
  readonly counters: readonly CounterReport[];
  /** Absent when there was nothing worth lending. */
  readonly lease?: LeaseGrant;
  /**
   * The owner is asked more often than it can answer: whoever would have a lease should ask its slice (`engine/slices`).
   */
  readonly split?: Split;
  /** Denied by a slice that has nothing yet and will know in a moment what it has (`engine/unready`). */
  readonly isUnready?: boolean;
  /** The owner's clock when it charged an estimate. */
  readonly chargedAt?: LogicalClock;
}

/** An owner that has been split. */
export interface Split {
  /** Into how many slices. */
  readonly slices: number;
  /** What each of them begins with, to be taken along; nothing once they have all begun. */
  readonly opening: readonly MiddleGrant[];
}

export interface CounterReport {
  readonly id: string;
  readonly decision: Decision;
  /** The limit that decided: the owner's own, when the question came from an older ruleset. */
  readonly limit: Limit;
  /** Whole units that can be spent now, 0 to the capacity. */
  readonly remaining: number;
  /** Until the full quota is back if nothing more is sent. */
  readonly resetMs: number;
  /** How long until the same question would fit again if nothing more is charged; 0 when it would fit at once. */
  readonly fitsAgainInMs: number;
  /** Isolates that asked for this counter lately. */
  readonly activeHolders: number;
  /** The asking isolate's part of the counter's demand, 0 to 1. */
  readonly share: number;
}

/** Whether a message of this format can be read: one's own, the one before and the one after. */
export function isReadable(format: unknown, own: number): boolean {
  return typeof format === 'number' && Math.abs(format - own) <= 1;
}

/** Whether a reply answers the question: what it says of each counter asked about can be read. */
export function isAnswerTo(question: Question, answer: Answer | undefined): boolean {
  if (!Array.isArray(answer?.counters)) return false;
  const reports: readonly (Partial<CounterReport> | null)[] = answer.counters;
  const read = new Set(reports.map((report) => (report?.decision && report.limit ? report.id : undefined)));
  return question.counters.every(({ id }) => read.has(id));
}
