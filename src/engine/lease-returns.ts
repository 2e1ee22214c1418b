/**
 * Leases that nobody spends: what would be lost to everybody when one ends goes back to its owner before that.
 *
 * Nothing waits for it, and a return that is lost costs the units that it spoke of, never more.
 */
import type { Ask } from './asked.ts';
import type { Group } from './groups.ts';
import { type HeldLease, type LeaseGrant, type LeaseReport, NO_LEASE } from './lease.ts';
import type { Leases } from './leases.ts';
import type { Timer } from './ports.ts';

/** A lease goes back this long before it ends, which is time enough to arrive before the owner writes it off. */
const BEFORE_END_MS = 150;

/** One that ends with its window may live for less than that; most of its life is then for spending it. */
const PART_OF_LIFE = 0.25;

export interface LeaseReturnsPorts {
  readonly leases: Leases;
  readonly nowMs: () => number;
  readonly timer: (delayMs: number) => Timer;
  /** Whether a question about these counters is on its way, which is taken for a renewal. */
  readonly isAsking: (group: Group) => boolean;
  /** How long the owner usually takes to answer. */
  readonly usualMs: (group: Group) => number;
  /** Tells the owner of the group, on the occasion of that question. */
  readonly tell: (group: Group, ask: Ask, report: LeaseReport) => Promise<void>;
}

export class LeaseReturns {
  readonly #ports: LeaseReturnsPorts;

  constructor(ports: LeaseReturnsPorts) {
    this.#ports = ports;
  }

  /** Waits until the lease is about to end, and gives it back unless it has been renewed or is about to be. */
  async unspent(lease: HeldLease, group: Group, ask: Ask): Promise<void> {
    const { leases, nowMs, timer, isAsking, usualMs, tell } = this.#ports;
    const { number } = lease;
    const lifeMs = lease.endsAtMs - nowMs();
    await timer(lifeMs - Math.min(BEFORE_END_MS, lifeMs * PART_OF_LIFE)).done;
    if (lease.number !== number || leases.last(group) !== lease || isAsking(group)) return;
    const isUntold = group.shadow.length > 0 && lease.spent > 0;
    if (lease.held(nowMs()) < 1 && !isUntold) return;
    await tell(group, ask, lease.surrender(nowMs(), usualMs(group)));
  }

  /**
   * A grant that was over when it came, as a first one may be of an owner that had to start: the owner still counts it. Where there is one of the
   * same life, the next report tells which of them the holder goes by.
   */
  async late({ number, units }: LeaseGrant, incarnation: string, group: Group, ask: Ask): Promise<void> {
    const { leases, tell } = this.#ports;
    if (leases.last(group)?.incarnation === incarnation) return;
    await tell(group, ask, { ...NO_LEASE, incarnation, number, held: units, isFinal: true });
  }
}
