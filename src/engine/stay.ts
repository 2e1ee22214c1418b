/**
 * An admitted request from its admission to the end of its response: the slots that it holds meanwhile, and the estimate that it was charged.
 *
 * Promise: slots are let go once, and the difference between the estimate and the cost that is then known is charged or given back
 * once, whoever decided the request: an owner (by a correction under the request's id), a lease (from what is in hand), the fallback
 * or a local rule. Neither makes a request wait. While a response takes long, its slots are renewed.
 */
import type { Limit } from '../core/decision.ts';
import { countsSlots } from '../core/decision.ts';
import type { Winner } from '../policy/counter.ts';
import type { Ask, Asked } from './asked.ts';
import type { Errands } from './errands.ts';
import type { Group } from './groups.ts';
import type { LocalRules } from './local-rules.ts';
import type { Answer, CounterRef } from './messages.ts';
import type { Owners } from './owners.ts';
import type { Background, Ports } from './ports.ts';
import type { Settlement, Substitute } from './settlement.ts';
import type { GateRequest, InProgress } from './verdict.ts';

/** With more than half of the slots free a moment ago, nobody is refused for want of one that is told of a quarter of a second late. */
const PLENTY = 0.5;
const LATELY_MS = 1_000;

/** What a stay needs of the isolate it is in. */
export interface House {
  readonly ports: Ports;
  readonly nowMs: () => number;
  readonly owners: Owners;
  readonly local: LocalRules;
  readonly settlement: Settlement;
  readonly errands: Errands;
}

/** What decided, and so was charged: for one owner's counters, or for all the local rules. */
type Part =
  | { readonly kind: 'answered'; readonly group: Group; readonly answer: Answer }
  | { readonly kind: 'leased'; readonly group: Group; readonly chargedRawMs: number }
  | { readonly kind: 'substituted'; readonly substitute: Substitute }
  | { readonly kind: 'local'; readonly winners: readonly Winner[] };

/** Slots at one owner, under an id of their own. */
interface Holding {
  readonly id: string;
  readonly group: Group;
  readonly counters: readonly CounterRef[];
}

export class Stay implements InProgress {
  readonly #house: House;
  readonly #ask: Ask;
  readonly #background: Background;
  readonly #parts: Part[] = [];
  readonly #holdings: Holding[] = [];
  readonly #over = Promise.withResolvers<void>();
  #isOver = false;
  #correction: number | undefined;

  constructor(house: House, ask: Ask, background: Background) {
    this.#house = house;
    this.#ask = ask;
    this.#background = background;
  }

  addLocal(winners: readonly Winner[]): void {
    this.#add({ kind: 'local', winners });
  }

  /** What owners and leases have decided. Shadow counters may be heard of later, even when all is over. */
  addAsked({ group, result }: Asked): void {
    if (result?.kind === 'answered') {
      this.#add({ kind: 'answered', group, answer: result.answer });
      const { questionId: id, answer } = result;
      this.#hold({ id, group, counters: slotsIn(chargedBy(answer, group)) }, this.#ask);
    }
    if (result?.kind === 'leased')
      this.#add({ kind: 'leased', group, chargedRawMs: this.#house.ports.nowMs() });
  }

  /** What stood in for a silent owner. The question itself is void, so these slots have another id. */
  addSubstitute(substitute: Substitute): void {
    const { group } = substitute;
    this.#add({ kind: 'substituted', substitute });
    this.#hold({ id: `${this.#ask.id}:fallback`, group, counters: slotsIn(refsOf(group.enforced)) });
  }

  /** The response has ended, in whatever way. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#over.resolve();
    for (const holding of this.#holdings) this.#free(holding);
  }

  /** What the request has turned out to cost, in whole units; only the first call counts. */
  settle(units: number): void {
    if (this.#correction !== undefined) return;
    this.#correction = units - this.#ask.cost;
    for (const part of this.#parts) this.#correct(part, this.#correction);
  }

  #add(part: Part): void {
    this.#parts.push(part);
    if (this.#correction !== undefined) this.#correct(part, this.#correction);
  }

  #hold(holding: Holding, taken?: { readonly startedMs: number }): void {
    const { id, group, counters } = holding;
    if (counters.length === 0 || this.#ask.cost === 0) return;
    if (this.#isOver) {
      this.#free(holding);
      return;
    }
    this.#holdings.push(holding);
    const { slots } = this.#house.owners.link(group.owner);
    const takenMs = taken && { takenMs: taken.startedMs };
    this.#background(this.#keep(group, id, slots.hold({ id, counters, ...takenMs })));
  }

  /** Renews the slots for as long as the request lasts; one message renews those of all requests that it is time for. */
  async #keep({ owner }: Group, id: string, renewAfterMs: number): Promise<void> {
    const { ports, owners, nowMs, errands } = this.#house;
    const isUntold = () => owners.link(owner).slots.isRenewalDue(id, nowMs());
    while (!this.#isOver) {
      const timer = ports.timer(renewAfterMs);
      await Promise.race([timer.done, this.#over.promise]);
      timer.cancel();
      await errands.run({ owner, version: this.#ask.version, isUrgent: false, isUntold });
    }
  }

  #free({ id, group, counters }: Holding): void {
    const { owners, nowMs } = this.#house;
    owners.link(group.owner).slots.free(id, counters, nowMs());
    const isUrgent = counters.some((counter) => this.#isScarce(counter));
    for (const counter of counters) {
      owners.denyMemory.forget(counter.id);
      owners.known.charged(counter.id, -1);
    }
    this.#tell(group, isUrgent, () => owners.link(group.owner).slots.isFreed(id, nowMs()));
  }

  /** Whether somebody may be waiting for a slot: for all that is known, or because nothing has been heard of it lately. */
  #isScarce({ id, limit }: CounterRef): boolean {
    const { owners, nowMs } = this.#house;
    const level = owners.known.level(id, nowMs());
    return level === undefined || nowMs() - level.atMs > LATELY_MS || level.remaining <= limit.quota * PLENTY;
  }

  #correct(part: Part, units: number): void {
    if (units === 0) return;
    const { local, nowMs, settlement } = this.#house;
    switch (part.kind) {
      case 'answered':
        this.#owe(part.group, chargedBy(part.answer, part.group), units, part.answer);
        break;
      case 'leased':
        this.#correctLease(part, units);
        break;
      case 'substituted':
        settlement.correct(part.substitute, units);
        break;
      case 'local':
        if (units > 0) local.charge(part.winners, units, nowMs());
        else local.giveBack(part.winners, -units, nowMs());
    }
  }

  /** From what is in hand, else at the owner. A window's units come back only to that window. */
  #correctLease({ group, chargedRawMs }: Part & { kind: 'leased' }, units: number): void {
    const { leases } = this.#house.owners;
    if (units > 0 && leases.take(group, units) === 'taken') return;
    const isPast = group.enforced.some(({ rule }) => this.#isPast(rule.limit!, chargedRawMs));
    if (units < 0 && isPast) return;
    if (units < 0 && leases.held(group) !== undefined) leases.giveBack(group, -units);
    else this.#owe(group, refsOf(group.enforced), units);
  }

  #isPast({ algorithm, windowMs }: Limit, chargedRawMs: number): boolean {
    const windowOf = (rawMs: number) => Math.floor(rawMs / windowMs);
    return algorithm === 'fixed_window' && windowOf(chargedRawMs) !== windowOf(this.#house.ports.nowMs());
  }

  #owe(
    group: Group,
    charged: readonly CounterRef[],
    units: number,
    { chargedAt }: Partial<Answer> = {},
  ): void {
    const { owners, nowMs } = this.#house;
    const counters = charged.filter(({ limit }) => !countsSlots(limit));
    if (counters.length === 0) return;
    const id = `${this.#ask.id}:cost`;
    owners
      .link(group.owner)
      .corrections.add({ id, counters, units, ...(chargedAt && { chargedAt }) }, nowMs());
    if (units < 0) for (const counter of counters) owners.denyMemory.forget(counter.id);
    this.#tell(group, units > 0, () => owners.link(group.owner).corrections.isUntold(id, nowMs()));
  }

  #tell({ owner }: Group, isUrgent: boolean, isUntold: () => boolean): void {
    this.#background(this.#house.errands.run({ owner, version: this.#ask.version, isUrgent, isUntold }));
  }
}

/** Whether there will be anything to say once the request is admitted: slots to hold, or an estimate to correct. */
export function needsStay({ enforced, shadow, isEstimate }: GateRequest): boolean {
  return isEstimate === true || enforced.some(hasSlots) || shadow.some(hasSlots);
}

function hasSlots({ rule }: Winner): boolean {
  return rule.limit !== undefined && countsSlots(rule.limit);
}

/** The counters that the question charged: a shadow counter that would have denied was not. */
function chargedBy({ counters }: Answer, { enforced, shadow }: Group): readonly CounterRef[] {
  const denied = new Set(
    counters.filter(({ decision }) => decision.outcome !== 'allowed').map(({ id }) => id),
  );
  return refsOf([...enforced, ...shadow]).filter(({ id }) => !denied.has(id));
}

function refsOf(winners: readonly Winner[]): readonly CounterRef[] {
  return winners.map(({ counterId, rule }) => ({ id: counterId, limit: rule.limit! }));
}

function slotsIn(counters: readonly CounterRef[]): readonly CounterRef[] {
  return counters.filter(({ limit }) => countsSlots(limit));
}
