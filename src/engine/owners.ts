/**
 * All owners, as one isolate sees them: how to reach each, what each said last, and how many questions may be on their way.
 *
 * A question about a counter that already has 64 of them in flight waits on a timer of its own and looks again at what the isolate knows,
 * until a place is free, a denial settles it, or its deadline has come. It never waits for another request.
 */
import { takenBy } from '../core/decision.ts';
import type { OwnerRef, Winner } from '../policy/counter.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import { type Answered, type Ask, type GroupResult, questionOf, type Remembered } from './asked.ts';
import { FleetBreaker } from './breaker.ts';
import { DenyMemory } from './deny-memory.ts';
import { Detour } from './detour.ts';
import type { Group, Groups } from './groups.ts';
import { QuestionsInFlight } from './in-flight.ts';
import { Inquiries, type InquiryResult } from './inquiry.ts';
import { Known, type Word } from './known.ts';
import { type LeaseReport, NO_LEASE } from './lease.ts';
import { LeaseReturns } from './lease-returns.ts';
import { Leases } from './leases.ts';
import { LINKS_MAX, Links } from './links.ts';
import type { Answer, CounterReport, OwnerReply, Question } from './messages.ts';
import type { OwnerLink } from './owner-link.ts';
import type { Background, Ports } from './ports.ts';
import { Slices } from './slices.ts';
import { untilReady } from './unready.ts';

/** An owner answers about one call a millisecond, so more at once than this only wait in its queue. */
const IN_FLIGHT_MAX = 64;

/**
 * Questions at once about counters that are lent, renewals among them: the answer brings a lease that serves all who wait, and if a
 * hundred isolates each sent two, they would wait longer for it than a request waits.
 */
const LEASING_IN_FLIGHT_MAX = 1;

/** A renewal should be asked for when the lease, or what is in hand of it, lasts for no longer than this many usual answer times. */
const RENEW_AHEAD = 1.5;

/** How often a request without a place looks again: a few times within the shortest sensible deadline. */
const LOOK_AGAIN_MS = 5;

/** About as long as a slice that is not ready needs for a word with its root, which is nearby. */
const UNREADY_MS = 20;

/** A deadline is at least three times an owner's usual time (up to a second), so half of it is still more than that. */
const FAIR_PART = 0.5;

export class Owners {
  readonly denyMemory = new DenyMemory();
  readonly known = new Known();
  readonly leases: Leases;
  readonly #ports: Ports;
  readonly #nowMs: () => number;
  readonly #slices: Slices;
  readonly #detour: Detour;
  readonly #inquiries: Inquiries;
  readonly #links: Links;
  readonly #returns: LeaseReturns;
  readonly #inFlight = new QuestionsInFlight(LINKS_MAX);
  #version: Version = { activation: 0, builtAtMs: 0 };

  constructor(ports: Ports, holder: string, nowMs: () => number) {
    this.#ports = ports;
    this.#nowMs = nowMs;
    this.leases = new Leases(nowMs, () => ports.random());
    this.#inquiries = new Inquiries({ ports, fleet: new FleetBreaker(), known: this.known, holder, nowMs });
    this.#slices = new Slices(holder, nowMs);
    this.#detour = new Detour(this.#slices, {
      nowMs,
      timer: (delayMs) => ports.timer(delayMs),
      linkTo: ({ owner }) => this.link(owner),
      knock: ({ owner, enforced }, version) => {
        const knock = enforced.map(({ counterId }) => counterId);
        return this.#inquiries.knock({ owner, link: this.link(owner) }, { version, knock });
      },
    });
    this.#links = new Links((event, amount) => ports.count(event, amount));
    this.#returns = new LeaseReturns({
      leases: this.leases,
      nowMs,
      timer: (delayMs) => ports.timer(delayMs),
      isAsking: (group) => this.#inFlight.of(group).count(nowMs()) > 0,
      usualMs: ({ owner }) => this.link(owner).usualMs,
      tell: (group, ask, lease) => {
        const { owner } = group;
        const told = { ...ask, id: `${ask.id}:return`, cost: 0 };
        const question = this.#questionOf(group, told, lease);
        return this.#inquiries.deliver({ owner, link: this.link(owner) }, { version: ask.version, question });
      },
    });
  }

  /** How many owners are not asked at present, because they did not answer. */
  get silent(): number {
    return this.#links.silent;
  }

  /** The rules are newer: they may have raised a limit, so nothing that was denied under older ones counts any more. */
  adopt(version: Version): void {
    this.#version = version;
    this.denyMemory.forgetAll();
    this.leases.adopt(version);
  }

  link(owner: OwnerRef): OwnerLink {
    return this.#links.to(owner);
  }

  /** The groups as they are to be asked for: what is too hot for one object at the isolate's slice of it. */
  placed({ deciding, shadowOnly }: Groups): Groups {
    const place = (group: Group) => this.#slices.placed(group);
    return { deciding: deciding.map(place), shadowOnly: shadowOnly.map(place) };
  }

  /** Whether the counter held less than `cost` when its owner last spoke of it. */
  isEmpty(winner: Winner, cost: number): boolean {
    const level = this.known.level(winner.counterId, this.#nowMs());
    return level !== undefined && level.remaining < takenBy(level.limit, cost);
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

  /** Without a call: from the lease in hand, if there is one. */
  spendLease(group: Group, { cost }: { cost: number }): GroupResult | undefined {
    const take = this.leases.take(group, cost);
    if (take === 'taken') return { kind: 'leased', takenMs: this.#nowMs() };
    if (take === 'ask') return undefined;
    const retryAfterMs = this.leases.held(group)?.waitMs(cost, this.#nowMs()) ?? 1;
    return { kind: 'dry', retryAfterMs };
  }

  ask(group: Group, ask: Ask, background: Background): Promise<GroupResult> {
    return untilReady(ask, (each) => this.#ask(group, each, background));
  }

  async #ask(group: Group, ask: Ask, background: Background): Promise<GroupResult> {
    const link = this.link(group.owner);
    const deadlineMs = link.deadlineMs(ask.deadlineMs);
    const untilMs = ask.startedMs + deadlineMs;
    const inFlight = this.#inFlight.of(group);
    const ofEach = this.#inFlight.ofEach(group);
    const isLeasing = this.leases.isWanted(group, ask);
    const placesMax = isLeasing ? LEASING_IN_FLIGHT_MAX : IN_FLIGHT_MAX;
    const hasPlace = (nowMs: number) =>
      link.hasPlace(inFlight, placesMax, nowMs) && ofEach.every((each) => each.count(nowMs) < IN_FLIGHT_MAX);
    while (!hasPlace(this.#nowMs())) {
      const leftMs = untilMs - this.#nowMs();
      if (leftMs <= 0) return this.#outOfTime(group, link, isLeasing);
      await this.#ports.timer(Math.min(LOOK_AGAIN_MS, leftMs)).done;
      const settled = this.#settledMeanwhile(group, ask, isLeasing);
      if (settled !== undefined) return settled;
    }
    const sentMs = this.#nowMs();
    const waitMs = untilMs - sentMs;
    const isInVain = (isLeasing || link.isUnready) && waitMs < link.usualMs;
    if (waitMs <= 0 || isInVain) return this.#outOfTime(group, link, isLeasing);
    const counted = [
      inFlight,
      ...ofEach,
      ...group.enforced.flatMap(({ counterId }) => this.denyMemory.rechecks(counterId) ?? []),
    ];
    for (const each of counted) each.began(sentMs);
    const lease = isLeasing
      ? (this.leases.report(group, { usualMs: link.usualMs, patienceMs: deadlineMs }) ??
        this.#noLease(group, ask))
      : this.leases.surrender(group, link.usualMs);
    const message = { version: ask.version, question: this.#questionOf(group, ask, lease) };
    const patience = { waitMs, fairMs: deadlineMs * FAIR_PART };
    const result = await this.#inquiries.ask({ owner: group.owner, link }, message, patience, background);
    for (const each of counted) each.ended();
    return this.#learnFrom(result, { group, ask, sentMs, background });
  }

  /** The group as it is to be asked for after all, where that result is not the last word (`engine/slices`). */
  sentOn(group: Group, result: GroupResult, { version }: Ask, background: Background): Group | undefined {
    // An owner that is too busy to answer may have been split, for whoever comes next.
    if (result.kind === 'unanswered' && result.late !== undefined)
      background(this.#detour.look(group, version));
    return this.#slices.sentOn(group, result);
  }

  /** The group as it is to be asked for instead, where that is known before its owner has been asked (`engine/detour`). */
  ahead(group: Group, { version }: Ask): Promise<Group | undefined> | undefined {
    return this.#detour.ahead(group, version);
  }

  /** The group as it is to be asked for instead, once its owner is late and that is known (`engine/detour`). */
  around(group: Group, { version }: Ask, first: Promise<unknown>): Promise<Group | undefined> | undefined {
    return this.#detour.around(group, version, first);
  }

  /** Asks for more of a lease in the background, when it is time to. */
  renewIfDue(group: Group, ask: Ask, background: Background): void {
    const link = this.link(group.owner);
    const isAsking = this.#inFlight.of(group).count(this.#nowMs()) >= LEASING_IN_FLIGHT_MAX;
    if (isAsking || !link.breaker.isClosed) return;
    if (this.leases.wantsRenewal(group, ask, RENEW_AHEAD * link.usualMs))
      background(this.#renew(group, ask, background));
  }

  async #renew(group: Group, ask: Ask, background: Background): Promise<void> {
    const counted = [this.#inFlight.of(group), ...this.#inFlight.ofEach(group)];
    const sentMs = this.#nowMs();
    for (const each of counted) each.began(sentMs);
    const renewal = { ...ask, id: `${ask.id}:renewal`, cost: 0 };
    const link = this.link(group.owner);
    const waitMs = link.deadlineMs(ask.deadlineMs);
    const lease = this.leases.report(group, { usualMs: link.usualMs, patienceMs: waitMs }) ?? NO_LEASE;
    const message = { version: ask.version, question: this.#questionOf(group, renewal, lease) };
    const patience = { waitMs, fairMs: waitMs };
    const result = await this.#inquiries.ask({ owner: group.owner, link }, message, patience, background);
    for (const each of counted) each.ended();
    this.#learnFrom(result, { group, ask: renewal, sentMs, background });
  }

  /** Tells the owner whatever there is to tell it. */
  async tell(owner: OwnerRef, version: Version): Promise<void> {
    await this.#inquiries.deliver({ owner, link: this.link(owner) }, { version });
  }

  /** Takes back what a question charged, once the owner has answered that it did. */
  async giveBack(group: Group, version: Version, { questionId, incarnation }: Answered): Promise<void> {
    const link = this.link(group.owner);
    for (const { counterId } of group.enforced) this.denyMemory.forget(counterId);
    this.#ports.count('give_back');
    link.voids.add(questionId, incarnation, this.#nowMs());
    await this.#inquiries.deliver({ owner: group.owner, link }, { version });
  }

  /**
   * A request whose time has run out while others waited for the owner. If the owner answers them and has lent, or will know in a moment what it
   * has, it is the lease that is short and not the owner that is away: a fallback would admit beyond what there is.
   */
  #outOfTime(group: Group, link: OwnerLink, isLeasing: boolean): GroupResult {
    const isShort = link.isUnready || (isLeasing && this.leases.last(group) !== undefined);
    if (!isShort || !link.isAnswering) return { kind: 'unanswered' };
    return { kind: 'dry', retryAfterMs: this.leases.held(group)?.waitMs(1, this.#nowMs()) ?? link.usualMs };
  }

  /** What other requests have learned while this one waited for a place. */
  #settledMeanwhile(group: Group, ask: Ask, isLeasing: boolean): GroupResult | undefined {
    const spent = isLeasing ? this.spendLease(group, ask) : undefined;
    if (spent !== undefined) return spent;
    const denials = this.remembered(group.enforced, ask.cost);
    return denials.length > 0 ? { kind: 'remembered', denials } : undefined;
  }

  #learnFrom(result: InquiryResult, learning: Learning): GroupResult {
    if (result.kind === 'answered') return this.#learned(result.reply, learning);
    const { late } = result;
    if (late === undefined) return { kind: 'unanswered' };
    return { kind: 'unanswered', late: late.then(({ reply }) => this.#learnedLate(reply, learning)) };
  }

  #learned(reply: OwnerReply, learning: Learning): GroupResult {
    const { answer, incarnation } = reply;
    if (answer === undefined) return { kind: 'unanswered' };
    const { group, ask, sentMs } = learning;
    this.#learnLevels(answer, { incarnation, sentMs });
    const result: GroupResult = { kind: 'answered', answer, incarnation, questionId: ask.id };
    const link = this.link(group.owner);
    link.unreadyUntil(answer.isUnready ? this.#nowMs() + Math.max(UNREADY_MS, link.usualMs) : undefined);
    if (answer.isUnready) return result;
    if (answer.split !== undefined) this.#slices.move(group, answer.split, sentMs);
    if (this.#acceptLease(reply, learning)) {
      // Whether the next request is admitted, the lease says, and no denial of the owner's own bucket.
      for (const { counterId } of group.enforced) this.denyMemory.forget(counterId);
      const spent = answer.outcome === 'denied' ? this.spendLease(group, ask) : undefined;
      return spent ?? result;
    }
    // What an owner that has been split has not, its slices may have; and what was denied under older rules, newer ones may allow.
    if (this.#slices.placed(group) !== group || isNewer(this.#version, ask.version)) return result;
    const enforced = new Set(group.enforced.map(({ counterId }) => counterId));
    for (const report of answer.counters) if (enforced.has(report.id)) this.#remember(report, ask.cost);
    return result;
  }

  /** Nobody knows how old a late answer is, so a denial in it may be over by now: only levels and leases are worth keeping. */
  #learnedLate(reply: OwnerReply | undefined, learning: Learning): Answered | undefined {
    if (reply?.answer === undefined) return undefined;
    const { answer, incarnation } = reply;
    const { group, sentMs } = learning;
    this.#learnLevels(answer, { incarnation, sentMs });
    if (answer.split !== undefined) this.#slices.move(group, answer.split, sentMs);
    this.#acceptLease(reply, learning);
    return { answer, incarnation, questionId: learning.ask.id };
  }

  #acceptLease({ answer, incarnation }: OwnerReply, learning: Learning): boolean {
    const grant = answer?.lease;
    const { group, ask, sentMs, background } = learning;
    if (grant === undefined) return false;
    if (sentMs + grant.lifeMs <= this.#nowMs()) {
      background(this.#returns.late(grant, incarnation, group, ask));
      return false;
    }
    const lease = this.leases.accept(group, grant, { incarnation, sentMs, version: ask.version });
    if (lease === undefined) return false;
    this.#ports.count('lease_granted');
    if (grant.isScarce) this.#ports.count('lease_hold');
    background(this.#returns.unspent(lease, group, ask));
    return true;
  }

  #learnLevels({ counters }: Answer, word: Word): void {
    for (const report of counters) this.known.learn(report, word, this.#nowMs());
  }

  /** A denial is remembered, and so is an allowance that took the last: the next request need not ask to be denied. */
  #remember({ id, decision, limit, fitsAgainInMs, activeHolders }: CounterReport, cost: number): void {
    // A charge moves the time that was told. A peek charges nothing, and says nothing about what was denied.
    if (decision.outcome === 'allowed' && cost > 0) this.denyMemory.forget(id);
    const retryAfterMs = decision.outcome === 'denied' ? decision.retryAfterMs : fitsAgainInMs;
    if (decision.outcome === 'impossible' || retryAfterMs === 0) return;
    this.denyMemory.remember({ counterId: id, cost, limit, retryAfterMs, activeHolders }, this.#nowMs());
  }

  /** The patience with an owner that has yet to answer, or has not been asked for a minute, says nothing of the next question. */
  #noLease(group: Group, { deadlineMs }: Ask): LeaseReport {
    const link = this.link(group.owner);
    const patienceMs = link.isUnknown(this.#nowMs()) ? deadlineMs : link.deadlineMs(deadlineMs);
    return { ...NO_LEASE, patienceMs, isTentative: this.leases.isTentative(group) };
  }

  #questionOf(group: Group, ask: Ask, lease: LeaseReport | undefined): Question {
    return questionOf(group, ask, { lease, unitsPerSecond: (id) => this.leases.unitsPerSecond(id) });
  }
}

/** What an answer is an answer to. */
interface Learning {
  readonly group: Group;
  readonly ask: Ask;
  readonly sentMs: number;
  readonly background: Background;
}
