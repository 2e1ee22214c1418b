/** How a counter of a middle owner stands with the root, as it is stored with the counter. Times are on the owner's logical clock. */
import type { Limit } from '../core/decision.ts';
import type { Advance } from './advance.ts';
import type { StoredAccount } from './middle-account.ts';
import type { MiddleLease } from './middle-lease.ts';

/** `credit`: no lease yet. `leased`: what is left of the advance stays as it is. `cut`: the lease has ended unrenewed. */
export type Mode = 'credit' | 'leased' | 'cut';

/** What an eviction must not forget. */
export interface StoredUpstream {
  readonly rule: Limit;
  readonly startCredit: number;
  readonly mode: Mode;
  readonly lease: MiddleLease;
  readonly advance: Advance;
  readonly credit: Advance | undefined;
  readonly account: StoredAccount;
  readonly share: number;
}

export interface NewUpstream {
  readonly rule: Limit;
  readonly startCredit: number;
  /** Larger than that of any earlier life. */
  readonly epoch: number;
  readonly nowMs: number;
}
