/**
 * All owners, as one isolate sees them: how to reach each, what each said last, and how many questions may be on their way.
 *
 * A question about a counter that already has 64 of them in flight waits on a timer of its own and looks again at what the isolate knows,
 * until a place is free, a denial settles it, or its deadline has come. It never waits for another request.
 */
import type { OwnerRef, Winner } from '../policy/counter.ts';
import type { Version } from '../policy/ruleset.ts';
import { BoundedMap } from './bounded-map.ts';
import { FleetBreaker } from './breaker.ts';
import { DenyMemory } from './deny-memory.ts';
import type { Group } from './groups.ts';
import { InFlight } from './in-flight.ts';
import { Inquiries, type InquiryResult } from './inquiry.ts';
import { Known } from './known.ts';
import type { Answer, CounterReport, OwnerReply, Question } from './messages.ts';
import { OwnerLink } from './owner-link.ts';
import type { Background, Ports } from './ports.ts';

/** An owner answers about one call a millisecond, so more at once than this only wait in its queue. */
const IN_FLIGHT_MAX = 64;

/** How often a request without a place looks again: a few times within the shortest sensible deadline. */
const LOOK_AGAIN_MS = 5;

/** A deadline is at least three times an owner's usual time (up to a second), so half of it is still more than that. */
const FAIR_PART = 0.5;

/** About 500 bytes each. A displaced link costs one first deadline, and the debts it held, which are counted. */
const LINKS_MAX = 8_192;

export interface Ask {
  readonly id: string;
  readonly version: Version;
  readonly cost: number;
  /** When the request began to wait: owners that are asked one after the other share its deadline. */
  readonly startedMs: number;
  readonly deadlineMs: number;
}

/** A denial that the isolate remembers of one of the counters asked about. */
export interface Remembered {
  readonly winner: Winner;
  readonly retryAfterMs: number;
}

/** One owner's part in a request; `result` is there once `done` has settled. */
export interface Asked {
  readonly group: Group;
  done: Promise<GroupResult>;
  result: GroupResult | undefined;
}

/** What an owner answered, and which incarnation of it charged what the answer allows. */
export interface Told {
  readonly answer: Answer;
  readonly incarnation: string;
}

export type GroupResult =
  | ({ readonly kind: 'answered' } & Told)
  /** Denials of other requests settled it while it waited for a place. */
  | { readonly kind: 'remembered'; readonly denials: readonly Remembered[] }
  | { readonly kind: 'unanswered'; readonly late?: Promise<Told | undefined> };

export class Owners {
  readonly denyMemory = new DenyMemory();
  readonly known = new Known();
  readonly #ports: Ports;
  readonly #nowMs: () => number;
  readonly #inquiries: Inquiries;
  readonly #links: BoundedMap<OwnerLink>;
  readonly #inFlight = new BoundedMap<InFlight>(LINKS_MAX);

  constructor(ports: Ports, holder: string, nowMs: () => number) {
    this.#ports = ports;
    this.#nowMs = nowMs;
    this.#inquiries = new Inquiries({ ports, fleet: new FleetBreaker(), known: this.known, holder, nowMs });
    this.#links = new BoundedMap(LINKS_MAX, (link) => {
      this.#debtLost(link.debts.size);
      this.#giveBackLost(link.voids.charged);
    });
  }

  link(owner: OwnerRef): OwnerLink {
    const known = this.#links.touch(owner.name);
    if (known !== undefined) return known;
    const link = new OwnerLink({
      onDebtLost: (count) => this.#debtLost(count),
      onGiveBackLost: (count) => this.#giveBackLost(count),
    });
    this.#links.set(owner.name, link);
    return link;
  }

  /** Whether the counter held less than `cost` when its owner last spoke of it. */
  isEmpty(winner: Winner, cost: number): boolean {
    const level = this.known.level(winner.counterId, this.#nowMs());
    return level !== undefined && level.remaining < cost;
  }

  /** What is remembered as denied among these counters. */
  remembered(winners: readonly Winner[], cost: number): readonly Remembered[] {
    const nowMs = this.#nowMs();
    const denials: Remembered[] = [];
    for (const winner of winners) {
      const retryAfterMs = this.denyMemory.retryAfterMs(winner.counterId, cost, nowMs);
      if (retryAfterMs !== undefined) denials.push({ winner, retryAfterMs });
    }
    return denials;
  }

  async ask(group: Group, ask: Ask, background: Background): Promise<GroupResult> {
    const link = this.link(group.owner);
    const deadlineMs = link.deadlineMs(ask.deadlineMs);
    const untilMs = ask.startedMs + deadlineMs;
    const first = (group.enforced[0] ?? group.shadow[0])!;
    const inFlight = this.#inFlightOf(first.counterId);
    while (inFlight.count(this.#nowMs()) >= IN_FLIGHT_MAX) {
      const leftMs = untilMs - this.#nowMs();
      if (leftMs <= 0) return { kind: 'unanswered' };
      await this.#ports.timer(Math.min(LOOK_AGAIN_MS, leftMs)).done;
      const denials = this.remembered(group.enforced, ask.cost);
      if (denials.length > 0) return { kind: 'remembered', denials };
    }
    const waitMs = untilMs - this.#nowMs();
    if (waitMs <= 0) return { kind: 'unanswered' };
    const counted = [
      inFlight,
      ...group.enforced.flatMap(({ counterId }) => this.denyMemory.rechecks(counterId) ?? []),
    ];
    for (const each of counted) each.began(this.#nowMs());
    const message = { version: ask.version, question: questionOf(group, ask) };
    const patience = { waitMs, isFair: waitMs >= deadlineMs * FAIR_PART };
    const result = await this.#inquiries.ask({ owner: group.owner, link }, message, patience, background);
    for (const each of counted) each.ended();
    return this.#learnFrom(result, group, ask.cost);
  }

  /** Takes back what a question charged, once this incarnation of the owner has said that it did. */
  async giveBack(group: Group, ask: Ask, incarnation: string): Promise<void> {
    const link = this.link(group.owner);
    for (const { counterId } of group.enforced) this.denyMemory.forget(counterId);
    this.#ports.count('give_back');
    link.voids.add(ask.id, incarnation, this.#nowMs());
    await this.#inquiries.deliver({ owner: group.owner, link }, ask.version);
  }

  #inFlightOf(counterId: string): InFlight {
    const known = this.#inFlight.get(counterId);
    if (known !== undefined) return known;
    const inFlight = new InFlight();
    this.#inFlight.set(counterId, inFlight);
    return inFlight;
  }

  #learnFrom(result: InquiryResult, group: Group, cost: number): GroupResult {
    if (result.kind === 'answered') return this.#learned(result.reply, group, cost);
    const { late } = result;
    if (late === undefined) return { kind: 'unanswered' };
    return { kind: 'unanswered', late: late.then(({ reply }) => this.#learnedLate(reply)) };
  }

  #learned({ answer, incarnation }: OwnerReply, group: Group, cost: number): GroupResult {
    if (answer === undefined) return { kind: 'unanswered' };
    this.#learnLevels(answer);
    const enforced = new Set(group.enforced.map(({ counterId }) => counterId));
    for (const report of answer.counters) if (enforced.has(report.id)) this.#remember(report, cost);
    return { kind: 'answered', answer, incarnation };
  }

  /** Nobody knows how old a late answer is, so a denial in it may be over by now: only the levels are worth keeping. */
  #learnedLate(reply: OwnerReply | undefined): Told | undefined {
    if (reply?.answer === undefined) return undefined;
    const { answer, incarnation } = reply;
    this.#learnLevels(answer);
    return { answer, incarnation };
  }

  #learnLevels({ counters }: Answer): void {
    for (const report of counters) this.known.learn(report, this.#nowMs());
  }

  /** A denial is remembered, and so is an allowance that took the last: the next request need not ask to be denied. */
  #remember({ id, decision, limit, fitsAgainInMs, activeHolders }: CounterReport, cost: number): void {
    // A charge moves the time that was told. A peek charges nothing, and says nothing about what was denied.
    if (decision.outcome === 'allowed' && cost > 0) this.denyMemory.forget(id);
    const retryAfterMs = decision.outcome === 'denied' ? decision.retryAfterMs : fitsAgainInMs;
    if (decision.outcome === 'impossible' || retryAfterMs === 0) return;
    this.denyMemory.remember({ counterId: id, cost, limit, retryAfterMs, activeHolders }, this.#nowMs());
  }

  #debtLost(debts: number): void {
    if (debts > 0) this.#ports.count('debt_lost', debts);
  }

  #giveBackLost(giveBacks: number): void {
    if (giveBacks > 0) this.#ports.count('give_back_lost', giveBacks);
  }
}

function questionOf({ enforced, shadow }: Group, { id, cost }: Ask): Question {
  const asked = (winners: readonly Winner[], isShadow: boolean) =>
    winners.map(({ counterId, rule }) => ({ id: counterId, limit: rule.limit!, shadow: isShadow }));
  return { id, cost, counters: [...asked(enforced, false), ...asked(shadow, true)] };
}
