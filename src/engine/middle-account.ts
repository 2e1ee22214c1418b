/**
 * A middle owner's account with its root, of one counter: sums that only grow within an epoch, and what of them the other side has heard.
 *
 * A message that is lost, repeated or overtaken changes nothing that a later one does not say again. An epoch ends when the middle owner gives
 * its lease up, or finds that the root knows of a later one than it does; what is owed and was not heard of goes into the next.
 */
import type { MiddleGrant, Total } from './messages.ts';

const NOTHING: Total = { units: 0, heard: 0 };

export interface StoredAccount {
  readonly epoch: number;
  readonly owed: Total;
  readonly returned: Total;
  readonly lent: number;
}

export class MiddleAccount {
  #epoch: number;
  #owed = NOTHING;
  #returned = NOTHING;
  #lent = 0;

  constructor(epoch: number, stored?: StoredAccount) {
    this.#epoch = stored?.epoch ?? epoch;
    this.#owed = stored?.owed ?? NOTHING;
    this.#returned = stored?.returned ?? NOTHING;
    this.#lent = stored?.lent ?? 0;
  }

  get epoch(): number {
    return this.#epoch;
  }

  /** `missing` is what was admitted beyond what was lent, and may yet come back before the root hears of it. */
  owed(missing: number): Total {
    return { ...this.#owed, units: this.#owed.units + missing };
  }

  get returned(): Total {
    return this.#returned;
  }

  /** Units that have come from the root. */
  get lent(): number {
    return this.#lent;
  }

  stored(): StoredAccount {
    return { epoch: this.#epoch, owed: this.#owed, returned: this.#returned, lent: this.#lent };
  }

  /** So much was admitted beyond what was lent, for good. */
  owe(units: number): void {
    this.#owed = { ...this.#owed, units: this.#owed.units + units };
  }

  /** So much of what was lent goes back. */
  giveBack(units: number): void {
    this.#returned = { ...this.#returned, units: this.#returned.units + units };
  }

  /** What an answer brings: units that are new, and how much of what may yet have come back the root has taken for owed. */
  hear({ owed, returned, lent }: Pick<MiddleGrant, 'owed' | 'returned' | 'lent'>): {
    units: number;
    owed: number;
  } {
    const news = Math.max(0, owed - this.#owed.units);
    this.#owed = { units: this.#owed.units + news, heard: Math.max(this.#owed.heard, owed) };
    this.#returned = { ...this.#returned, heard: Math.max(this.#returned.heard, returned) };
    const units = Math.max(0, lent - this.#lent);
    this.#lent += units;
    return { units, owed: news };
  }

  begin(epoch: number): void {
    this.#epoch = epoch;
    this.#owed = { units: Math.max(0, this.#owed.units - this.#owed.heard), heard: 0 };
    this.#returned = NOTHING;
    this.#lent = 0;
  }
}
