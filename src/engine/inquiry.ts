/**
 * One question to one owner, with a deadline: asked at most once, repeated only over a lost connection, and never forgotten.
 *
 * The result comes in time or says that it did not; it never rejects. What comes later is handed out as `late`, so that the request
 * that asked can settle it in the background: a charge nobody waited for must be taken back, or kept in place of a debt.
 */
import type { OwnerRef } from '../policy/counter.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import type { Advice, Change, FleetBreaker } from './breaker.ts';
import type { Known } from './known.ts';
import {
  type Correction,
  type Debt,
  isAnswerTo,
  isReadable,
  MESSAGE_FORMAT,
  type OwnerCall,
  type OwnerReply,
  type Question,
  type SlotNotice,
} from './messages.ts';
import type { OwnerLink } from './owner-link.ts';
import { type Background, failureOf, type Ports } from './ports.ts';

/** What came of a call; without a reply, whether the owner said that it was overloaded. */
export interface Reply {
  readonly reply: OwnerReply | undefined;
  readonly overloaded: boolean;
}

export type InquiryResult =
  | { readonly kind: 'answered'; readonly reply: OwnerReply }
  /** `late` settles when the question's fate is known; absent when it was never sent. */
  | { readonly kind: 'unanswered'; readonly late?: Promise<Reply> };

export interface Message {
  readonly version: Version;
  readonly question?: Question;
  /** Ids of counters that a slice may have begun with. */
  readonly knock?: readonly string[];
}

export interface Patience {
  readonly waitMs: number;
  /** An owner that has had so long for an answer, to this or to what was asked before, has failed; in less there is not enough left of the deadline. */
  readonly fairMs: number;
}

/** Nobody waits for a probe, so it has as long as any request ever has: an owner that starts again is slow at first. */
const PROBE_PATIENCE: Patience = { waitMs: 1_000, fairMs: 1_000 };

/** A slice that is asked by thousands at once may take a while. */
const KNOCK_PATIENCE: Patience = { waitMs: 500, fairMs: 500 };

const UNANSWERED: InquiryResult = { kind: 'unanswered' };

export interface InquiriesOptions {
  readonly ports: Ports;
  readonly fleet: FleetBreaker;
  readonly known: Known;
  readonly holder: string;
  readonly nowMs: () => number;
}

export class Inquiries {
  readonly #ports: Ports;
  readonly #fleet: FleetBreaker;
  readonly #known: Known;
  readonly #holder: string;
  readonly #nowMs: () => number;
  #debtsMade = 0;

  constructor({ ports, fleet, known, holder, nowMs }: InquiriesOptions) {
    this.#ports = ports;
    this.#fleet = fleet;
    this.#known = known;
    this.#holder = holder;
    this.#nowMs = nowMs;
  }

  /** Asks and waits, unless a breaker says that it is not worth it. A probe is made in the background. */
  async ask(
    to: Recipient,
    message: Message & { readonly question: Question },
    patience: Patience,
    background: Background,
  ): Promise<InquiryResult> {
    const advice = this.#advise(to.link);
    if (advice === 'probe') background(this.#within(to, { version: message.version }, PROBE_PATIENCE));
    if (advice !== 'ask') return UNANSWERED;
    const result = await this.#within(to, message, patience);
    if (result.kind === 'unanswered') to.link.voids.add(message.question.id, undefined, this.#nowMs());
    return result;
  }

  /** Whether a slice has begun with these counters; false when it does not answer. */
  async knock(to: Recipient, message: Message): Promise<boolean> {
    // Where a probe is due, the knock is it.
    if (this.#advise(to.link) === 'avoid') return false;
    const result = await this.#within(to, message, KNOCK_PATIENCE);
    return result.kind === 'answered' && result.reply.isOpen === true;
  }

  /** Delivers what no request waits for: the message, and what rides along (debts, voids, corrections, slots). */
  async deliver(to: Recipient, message: Message): Promise<void> {
    await this.#send(to, message);
  }

  #advise({ breaker, inFlight }: OwnerLink): Advice {
    const nowMs = this.#nowMs();
    const advice = this.#fleet.advise(nowMs);
    return advice === 'ask' ? breaker.advise({ inFlight: inFlight.count(nowMs), nowMs }) : advice;
  }

  async #within(to: Recipient, message: Message, { waitMs, fairMs }: Patience): Promise<InquiryResult> {
    const { link } = to;
    const timer = this.#ports.timer(waitMs);
    link.inFlight.began(this.#nowMs());
    link.awaited(this.#nowMs());
    const sent = this.#send(to, message);
    const first = await Promise.race([sent, timer.done]);
    timer.cancel();
    // A call that nobody waits for any more may hang for as long as it likes: it must not keep the breaker from closing.
    link.inFlight.ended();
    if (first?.reply === undefined) {
      const isFair = waitMs >= fairMs || link.awaitedMs(this.#nowMs()) >= fairMs;
      if (first !== undefined || isFair) this.#failed(to, { overloaded: first?.overloaded ?? false });
      return { kind: 'unanswered', late: sent };
    }
    link.answeredInTime();
    this.#note(link.breaker.answered(), to.owner);
    return { kind: 'answered', reply: first.reply };
  }

  async #send({ owner, link }: Recipient, message: Message): Promise<Reply> {
    const sentMs = this.#nowMs();
    const debts = link.debts.due(() => this.#newDebtId(), sentMs);
    const giveBacks = link.voids.due(sentMs);
    const corrections = link.corrections.due(sentMs);
    const slots = link.slots.due(sentMs);
    const call = this.#compose(message, { debts, giveBacks, corrections, slots });
    try {
      const reply = await this.#attempt(owner, call);
      const nowMs = this.#nowMs();
      link.answered();
      // A slice that has not begun does next to nothing: how long it takes for that says nothing of a question.
      if (message.knock === undefined) link.tookMs(nowMs - sentMs);
      this.#ports.answered?.(nowMs - sentMs);
      if (reply.clamps !== undefined || isNewer(reply.version, message.version)) this.#ports.heard?.(reply);
      link.debts.acknowledged(debts);
      for (const { counterId, units } of debts) this.#known.charged(counterId, units);
      link.voids.acknowledged(giveBacks, reply.incarnation);
      link.slots.acknowledged(slots, sentMs);
      this.#corrected(link.corrections.acknowledged(corrections));
      if (debts.length > 0) this.#ports.count('debt_reported', debts.length);
      if (this.#fleet.answered(nowMs) === 'closed') this.#ports.log({ event: 'owners_reachable' });
      return { reply, overloaded: false };
    } catch (error) {
      return { reply: undefined, overloaded: failureOf(error).overloaded };
    }
  }

  /** A lost connection is worth one more attempt: the question's id makes that safe. An overloaded owner is left alone. */
  async #attempt(owner: OwnerRef, call: OwnerCall): Promise<OwnerReply> {
    this.#ports.count('owner_call');
    try {
      return checked(await this.#ports.callOwner(owner, call), call);
    } catch (error) {
      const { overloaded, retryable } = failureOf(error);
      if (overloaded || !retryable) throw error;
      this.#ports.count('owner_call');
      return checked(await this.#ports.callOwner(owner, call), call);
    }
  }

  /** The owner's next answer may be older than what it has just been told, so what is known of it moves with the telling. */
  #corrected(corrections: readonly Correction[]): void {
    for (const { counters, units } of corrections)
      for (const { id } of counters) this.#known.charged(id, units);
    if (corrections.length > 0) this.#ports.count('correction_made', corrections.length);
  }

  #compose(
    { version, question, knock }: Message,
    { debts, giveBacks, corrections, slots }: Riders,
  ): OwnerCall {
    return {
      format: MESSAGE_FORMAT,
      holder: this.#holder,
      version,
      ...(question && { question }),
      ...(knock && { knock }),
      ...(giveBacks.length > 0 && { giveBacks }),
      ...(debts.length > 0 && { debts }),
      ...(corrections.length > 0 && { corrections }),
      ...(slots.length > 0 && { slots }),
    };
  }

  #failed({ owner, link }: Recipient, { overloaded }: { overloaded: boolean }): void {
    const nowMs = this.#nowMs();
    this.#ports.count('owner_failure');
    link.failed(nowMs);
    this.#note(link.breaker.failed({ overloaded, nowMs, jitter: this.#ports.random() }), owner);
    // An owner that says it is overloaded can be reached.
    if (!overloaded && this.#fleet.failed(owner.name, nowMs) === 'opened')
      this.#ports.log({ event: 'all_owners_unreachable' });
  }

  #note(change: Change, owner: OwnerRef): void {
    if (change === 'opened') this.#ports.log({ event: 'breaker_opened', owner: owner.name });
    if (change === 'closed') this.#ports.log({ event: 'breaker_closed', owner: owner.name });
  }

  #newDebtId(): string {
    this.#debtsMade += 1;
    return `${this.#holder}:debt:${this.#debtsMade}`;
  }
}

export interface Recipient {
  readonly owner: OwnerRef;
  readonly link: OwnerLink;
}

/** What rides on a message, whatever it is about. */
interface Riders {
  readonly debts: readonly Debt[];
  readonly giveBacks: readonly string[];
  readonly corrections: readonly Correction[];
  readonly slots: readonly SlotNotice[];
}

/** An answer that cannot be read is as good as none. */
function checked(reply: OwnerReply, { question }: OwnerCall): OwnerReply {
  if (!isReadable(reply?.format, MESSAGE_FORMAT))
    throw new TypeError('the owner answered in a format that cannot be read');
  if (question !== undefined && !isAnswerTo(question, reply.answer))
    throw new TypeError('the owner answered another question');
  return reply;
}
