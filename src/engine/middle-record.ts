/** What a root keeps of one middle owner, and how it tells it what it was lent. */
import type { MiddleGrant, MiddleReport } from './messages.ts';
import type { MiddleTerms } from './middle-terms.ts';

export interface MiddleRecord {
  readonly epoch: number;
  readonly owed: number;
  readonly returned: number;
  readonly lent: number;
  readonly number: number;
  readonly unitsPerMs: number;
  readonly grants: number;
  /** How often it was told to wait on its credit. */
  readonly waits: number;
  /** The newest grant that it has given up. */
  readonly ended: number;
  /** Whether it has reported: until then it may not know what it was lent. */
  readonly isHeard: boolean;
}

/** Of a slice that has been lent to, and does not know it yet. */
export function silentRecord(
  parts: Pick<MiddleRecord, 'epoch' | 'lent' | 'number' | 'unitsPerMs'>,
): MiddleRecord {
  return { ...parts, owed: 0, returned: 0, grants: 1, waits: 0, ended: 0, isHeard: false };
}

/** Of an epoch that nothing is known of: what the middle owner says was heard of it before. */
export function recordOf({ epoch, owed, returned, lent, number }: MiddleReport): MiddleRecord {
  return {
    epoch,
    owed: owed.heard,
    returned: returned.heard,
    lent,
    number,
    unitsPerMs: 0,
    grants: 0,
    waits: 0,
    ended: 0,
    isHeard: true,
  };
}

/** Says what has been heard, and lends nothing. */
export const NO_TERMS = { unitsPerMs: 0, capacity: 0, lifeMs: 0, renewInMs: 0, isScarce: false, share: 0 };

export function grantOf(
  counterId: string,
  { epoch, owed, returned, lent, number }: MiddleRecord,
  { unitsPerMs, capacity, lifeMs, renewInMs, isScarce, share }: Omit<MiddleTerms, 'units'>,
): MiddleGrant {
  const terms = { unitsPerMs, capacity, lifeMs, renewInMs, isScarce, share };
  return { counterId, epoch, number, lent, ...terms, owed, returned };
}
