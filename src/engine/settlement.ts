/**
 * How a request ends once its owners have answered or not: the silent ones are replaced by the rules' failure mode, and what was
 * charged for a request that is then denied is taken back.
 *
 * An owner that did not answer in time has been decided without: its question is void, and what a fallback admitted in its place is
 * owed as a debt. If the answer comes after all and says that it charged, that charge is taken back; the debt stands for it.
 */
import type { BucketTable } from '../core/bucket-table.ts';
import type { Limit } from '../core/decision.ts';
import type { Ask, Asked } from './asked.ts';
import { type Charged, Fallback, type FallbackResult } from './fallback.ts';
import type { Group } from './groups.ts';
import type { Owners } from './owners.ts';
import type { Background, Ports } from './ports.ts';
import type { GateRequest, PolicyReport } from './verdict.ts';

/** A breaker probes its owner every half second, so by then there is something new to try. */
const UNAVAILABLE_RETRY_MS = 1_000;

/** What stood in for a silent owner. */
export interface Substitute extends FallbackResult {
  readonly group: Group;
}

export interface Settled {
  readonly reports: readonly PolicyReport[];
  /** Those that admitted; none when the request was denied. */
  readonly substitutes: readonly Substitute[];
}

const NOTHING_SETTLED: Settled = { reports: [], substitutes: [] };

export interface Ending {
  readonly ask: Ask;
  readonly request: GateRequest;
  /** Another counter has denied the request already. */
  readonly isDenied: boolean;
}

export class Settlement {
  readonly #ports: Ports;
  readonly #owners: Owners;
  readonly #fallback: Fallback;
  readonly #nowMs: () => number;

  constructor(ports: Ports, owners: Owners, table: BucketTable, nowMs: () => number) {
    this.#ports = ports;
    this.#owners = owners;
    this.#fallback = new Fallback(table, owners.known);
    this.#nowMs = nowMs;
  }

  /** Ends the request, and answers what was decided in place of silent owners. */
  settle(asked: readonly Asked[], ending: Ending, background: Background): Settled {
    const silent = ending.isDenied ? [] : asked.filter(({ result }) => result?.kind === 'unanswered');
    const settled = this.#withoutOwners(silent, ending);
    const { reports } = settled;
    const isAdmitted = !ending.isDenied && reports.every(({ outcome }) => outcome === 'allowed');
    if (ending.request.cost === 0) return settled;
    for (const each of asked) {
      if (each.result?.kind === 'leased') {
        // At once, so that nobody finds the lease emptier than it is.
        if (!isAdmitted) this.#owners.leases.giveBack(each.group, ending.ask.cost, each.result.takenMs);
      } else if (!isAdmitted || each.result?.kind !== 'answered') {
        background(this.takeBack(each, ending.ask));
      }
    }
    return settled;
  }

  /** A request that a substitute admitted turned out to cost more or less than it was taken for: `units` above 0 or below. */
  correct({ group, charged }: Substitute, units: number): void {
    const nowMs = this.#nowMs();
    if (units > 0) {
      this.#fallback.charge(charged, units, nowMs);
      this.#admitted(group, charged, units);
      return;
    }
    this.#fallback.giveBack(charged, -units, nowMs);
    const { debts } = this.#owners.link(group.owner);
    for (const { winner } of charged) debts.forgive(winner.counterId, -units, nowMs);
  }

  #withoutOwners(silent: readonly Asked[], { request }: Ending): Settled {
    if (silent.length === 0) return NOTHING_SETTLED;
    const winners = silent.flatMap(({ group }) => group.enforced);
    if (winners.some(({ rule }) => rule.failureMode === 'closed')) {
      const reports = winners
        .filter(({ rule }) => rule.failureMode === 'closed')
        .map(
          ({ rule }): PolicyReport => ({
            policy: rule.policy,
            limit: rule.limit!,
            outcome: 'unavailable',
            source: 'fallback',
            waitMs: UNAVAILABLE_RETRY_MS,
            level: undefined,
          }),
        );
      return { reports, substitutes: [] };
    }
    this.#ports.count('fallback_decision');
    const substitutes = silent.map(({ group }) => this.#substitute(group, request));
    const reports = substitutes.flatMap((substitute) => substitute.reports);
    const isAdmitted = this.#owe(substitutes, request.cost);
    return { reports, substitutes: isAdmitted ? substitutes : [] };
  }

  #substitute(group: Group, { cost, largestCost }: GateRequest): Substitute {
    const nowMs = this.#nowMs();
    const { debts, slots, silentSinceMs = nowMs } = this.#owners.link(group.owner);
    const owedUnits = (counterId: string) => debts.owed(counterId, nowMs);
    const heldSlots = (counterId: string) => slots.live(counterId);
    const winners = group.enforced;
    return {
      group,
      ...this.#fallback.decide({ winners, cost, largestCost, silentSinceMs, owedUnits, heldSlots }, nowMs),
    };
  }

  /** All or nothing over the substitutes too: what they admitted is owed, or goes back to their buckets. True when it is owed. */
  #owe(substitutes: readonly Substitute[], cost: number): boolean {
    if (substitutes.every(({ isAdmitted }) => isAdmitted)) {
      for (const { group, charged } of substitutes) this.#admitted(group, charged, cost);
      return true;
    }
    const taken = substitutes.filter(({ isAdmitted }) => isAdmitted);
    for (const { charged } of taken) this.#fallback.giveBack(charged, cost, this.#nowMs());
    return false;
  }

  #admitted({ owner }: Group, charged: readonly Charged[], cost: number): void {
    const nowMs = this.#nowMs();
    const { debts } = this.#owners.link(owner);
    for (const { winner, bucket } of charged) {
      const limit = winner.rule.limit!;
      const refill = this.#refillOf(limit, bucket.limit, nowMs);
      debts.admitted({ counterId: winner.counterId, limit, cost, ...refill }, nowMs);
    }
  }

  /** How a debt shrinks: as its bucket refills or, for a window, at once when the window ends. Windows have their edges in UTC. */
  #refillOf(limit: Limit, bucket: Limit, nowMs: number): { unitsPerMs: number; untilMs: number } {
    if (limit.algorithm !== 'fixed_window') {
      return { unitsPerMs: bucket.quota / bucket.windowMs, untilMs: Number.POSITIVE_INFINITY };
    }
    const intoWindowMs = this.#ports.nowMs() % limit.windowMs;
    return { unitsPerMs: 0, untilMs: nowMs + limit.windowMs - intoWindowMs };
  }

  /** Waits for what the owner did, however late, and has it taken back if it charged. */
  async takeBack(asked: Asked, ask: Ask): Promise<void> {
    const result = asked.result ?? (await asked.done);
    const { group } = asked;
    if (result === undefined || result.kind === 'remembered' || result.kind === 'dry') return;
    if (result.kind === 'leased') {
      this.#owners.leases.giveBack(group, ask.cost, result.takenMs);
      return;
    }
    const reply = result.kind === 'answered' ? result : await result.late;
    if (reply?.answer.outcome === 'allowed') await this.#owners.giveBack(group, ask.version, reply);
  }
}
