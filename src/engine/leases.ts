/**
 * The leases of one isolate: which counters it may spend by itself, and when it asks for that.
 *
 * A request names the counters of one owner that it touches; the same set of counters is one lease, whoever sends the request. Asking
 * rides on a question that has to be sent anyway, or on one in the background when what is in hand runs low; a request never
 * waits for another's. Rules say `strict` (never), `leased` (always) or `auto`: once a counter is asked for often enough.
 */
import { capacity, type Limit } from '../core/decision.ts';
import type { Winner } from '../policy/counter.ts';
import { isNewer, type Rule, type Version } from '../policy/ruleset.ts';
import { BoundedMap } from './bounded-map.ts';
import type { Group } from './groups.ts';
import { HeldLease, type LeaseGrant, type LeaseReport, type Reporting } from './lease.ts';
import { isLendable } from './lease-terms.ts';
import { Meter } from './meter.ts';

/**
 * `auto` leases what is asked for at least this often, and may be: below that, calls cost little, and of a small limit every unit that
 * waits in one isolate is missing in the others. (A flood on a small limit is denied from memory, without calls.)
 */
const AUTO_UNITS_PER_SECOND = 34;
const AUTO_UNITS_MIN = 8;

/**
 * A limit as high as this is there for a key that is hot, so the first question asks for a lease: of a cold key, each isolate would
 * otherwise have to ask twice, and each of a hundred waits for all the others.
 */
const HIGH_LIMIT_PER_SECOND = 1_000;

/**
 * A lease is renewed twice a second, so for a key that asks more rarely than this it saves no calls; and what waits in the hands of many
 * who hardly ask is missing for the one who does. Whoever has a lease renews it down to half of that. One arrival that finds a cold isolate
 * looks like more, until the next one shows.
 */
const CALLS_PER_SECOND_MIN = 8;

/** About 350 bytes each. A displaced lease is lost to the caller for a second at most. */
const LEASES_MAX = 8_192;

/** About 150 bytes each. A displaced meter starts again. */
const METERS_MAX = 16_384;

interface Entry {
  lease: HeldLease | undefined;
  /** When the question was sent that brought the newest grant. */
  sentMs: number;
}

export interface LeaseRequest {
  readonly cost: number;
  readonly largestCost: number;
}

export type Take = 'taken' | 'scarce' | 'ask';

export class Leases {
  readonly #nowMs: () => number;
  readonly #random: () => number;
  readonly #entries = new BoundedMap<Entry>(LEASES_MAX);
  readonly #meters = new BoundedMap<Meter>(METERS_MAX);
  #version: Version = { activation: 0, builtAtMs: 0 };

  constructor(nowMs: () => number, random: () => number) {
    this.#nowMs = nowMs;
    this.#random = random;
  }

  /** A request has arrived at these counters. */
  arrive(winners: readonly Winner[], cost: number): void {
    const nowMs = this.#nowMs();
    for (const { counterId } of winners) this.#meterOf(counterId, nowMs).arrive(cost, nowMs);
  }

  /** Another counter denied it, so these were not really wanted. */
  unarrive(winners: readonly Winner[], cost: number): void {
    const nowMs = this.#nowMs();
    for (const { counterId } of winners) this.#meterOf(counterId, nowMs).takeBack(cost, nowMs);
  }

  unitsPerSecond(counterId: string): number {
    const nowMs = this.#nowMs();
    return this.#meterOf(counterId, nowMs).unitsPerSecond(nowMs);
  }

  /** Whether the isolate should hold a lease of this group's counters. */
  isWanted(group: Group, { cost, largestCost }: LeaseRequest): boolean {
    const leastCalls = this.held(group) === undefined ? CALLS_PER_SECOND_MIN : CALLS_PER_SECOND_MIN / 2;
    if (this.#slowest(group) < leastCalls * Math.max(1, cost)) return false;
    for (const { rule, counterId } of group.enforced) {
      if (!canLease(rule, Math.max(cost, largestCost))) return false;
      if (rule.consistency === 'auto' && !this.#isHot(rule.limit!, counterId)) return false;
    }
    return true;
  }

  /** Whether nothing but the height of the limit says that the isolate should hold a lease: it has seen one request of the group lately. */
  isTentative({ enforced }: Group): boolean {
    const nowMs = this.#nowMs();
    return enforced.every(
      ({ rule, counterId }) => rule.consistency === 'auto' && this.#meterOf(counterId, nowMs).isLone(nowMs),
    );
  }

  /** Several arrivals have to say so: two that come together by chance look like a hot key in an isolate that has just begun. */
  #isHot(limit: Limit, counterId: string): boolean {
    if (isHighLimit(limit)) return true;
    if (unitsPerSecondOf(limit) < AUTO_UNITS_PER_SECOND) return false;
    const nowMs = this.#nowMs();
    const meter = this.#meterOf(counterId, nowMs);
    return meter.units(nowMs) >= AUTO_UNITS_MIN && meter.unitsPerSecond(nowMs) >= AUTO_UNITS_PER_SECOND;
  }

  /** A lease that can be spent; a rule that has become strict, or cannot be lent any more, ends it at once. */
  held(group: Group): HeldLease | undefined {
    const lease = this.#entries.touch(keyOf(group))?.lease;
    if (lease === undefined || lease.isOver(this.#nowMs())) return undefined;
    return mayLeaseAll(group) ? lease : undefined;
  }

  /** The last word on a lease that a rule ended: the question that goes instead of spending it gives back what is in hand. */
  surrender(group: Group, usualMs: number): LeaseReport | undefined {
    const lease = this.last(group);
    const nowMs = this.#nowMs();
    if (lease === undefined || lease.isOver(nowMs) || mayLeaseAll(group)) return undefined;
    return lease.surrender(nowMs, usualMs);
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  canTake(group: Group, cost: number): boolean {
    return (this.held(group)?.held(this.#nowMs()) ?? Number.NEGATIVE_INFINITY) >= cost;
  }

  /** The lease that a message to the owner should speak of, even if it is over: what it returns is still the owner's. */
  last(group: Group): HeldLease | undefined {
    return this.#entries.get(keyOf(group))?.lease;
  }

  /** What a message to the owner says of that lease, if there is one. */
  report(group: Group, waits: Omit<Reporting, 'unitsPerSecond'>): LeaseReport | undefined {
    return this.last(group)?.report(this.#nowMs(), { ...waits, unitsPerSecond: this.#slowest(group) });
  }

  /** Spends the lease if it can; says whether an empty one is all that there is. */
  take(group: Group, cost: number): Take {
    const lease = this.held(group);
    if (lease === undefined) return 'ask';
    const nowMs = this.#nowMs();
    if (lease.take(cost, nowMs)) return 'taken';
    return lease.isScarceFor(cost, nowMs) ? 'scarce' : 'ask';
  }

  /** Units taken at `takenMs` are not needed after all, or units that are the caller's own come back now. */
  giveBack(group: Group, cost: number, takenMs = this.#nowMs()): void {
    this.held(group)?.giveBack(cost, { takenMs, nowMs: this.#nowMs() });
  }

  /** Whether the lease should be renewed; `soonMs` is how long a renewal takes. */
  wantsRenewal(group: Group, request: LeaseRequest, soonMs: number): boolean {
    const lease = this.held(group);
    const nowMs = this.#nowMs();
    if (lease === undefined) return false;
    if (!lease.wantsRenewal({ unitsPerSecond: this.#slowest(group), soonMs }, nowMs)) return false;
    return this.isWanted(group, request);
  }

  accept(
    group: Group,
    grant: LeaseGrant,
    { incarnation, sentMs, version }: { incarnation: string; sentMs: number; version: Version },
  ): HeldLease | undefined {
    const entry = this.#entryOf(keyOf(group));
    const nowMs = this.#nowMs();
    if (entry.lease?.incarnation !== incarnation) {
      // A reply that was overtaken may come from an earlier life of the owner, of whose grants the present one knows nothing.
      if (sentMs <= entry.sentMs) return undefined;
      entry.lease = new HeldLease(incarnation);
    }
    entry.sentMs = Math.max(entry.sentMs, sentMs);
    const delayMs = (this.#random() - 0.5) * RENEWAL_JITTER * grant.renewInMs;
    entry.lease.accept(grant, { sentMs, nowMs, delayMs });
    if (isNewer(this.#version, version)) entry.lease.hurry();
    return entry.lease;
  }

  /** The rules have changed: every lease is to be renewed under them, also one that was asked for before and is yet to come. */
  adopt(version: Version): void {
    this.#version = version;
    for (const { lease } of this.#entries.values()) lease?.hurry();
  }

  /** The demand for all the counters together: no more of them is spent than of the one that is asked for least. */
  #slowest({ enforced }: Group): number {
    let slowest = Number.POSITIVE_INFINITY;
    for (const { counterId } of enforced) slowest = Math.min(slowest, this.unitsPerSecond(counterId));
    return slowest;
  }

  #entryOf(key: string): Entry {
    const known = this.#entries.get(key);
    if (known !== undefined) return known;
    const entry = { lease: undefined, sentMs: Number.NEGATIVE_INFINITY };
    this.#entries.set(key, entry);
    return entry;
  }

  #meterOf(counterId: string, nowMs: number): Meter {
    const known = this.#meters.touch(counterId);
    if (known !== undefined) return known;
    const meter = new Meter(nowMs);
    this.#meters.set(counterId, meter);
    return meter;
  }
}

/** Isolates that were told the same time to renew at must not all do so at once: a tenth earlier or later. */
const RENEWAL_JITTER = 0.2;

/** One counter is its own name; several are named together, which is as injective since each id is. */
function keyOf({ enforced }: Group): string {
  return enforced.length === 1
    ? enforced[0]!.counterId
    : enforced.map(({ counterId }) => counterId).join('\n');
}

/** Whether a rule is leased in an isolate with such a demand, once that is steady. */
export function isLeasedAt(
  rule: Rule,
  { requestsPerSecond, cost, largestCost }: LeaseRequest & { readonly requestsPerSecond: number },
): boolean {
  if (!canLease(rule, Math.max(cost, largestCost)) || requestsPerSecond < CALLS_PER_SECOND_MIN) return false;
  const unitsPerSecond = requestsPerSecond * Math.max(1, cost);
  return rule.consistency === 'leased' || isHighLimit(rule.limit!) || unitsPerSecond >= AUTO_UNITS_PER_SECOND;
}

function isHighLimit(limit: Limit): boolean {
  return unitsPerSecondOf(limit) >= HIGH_LIMIT_PER_SECOND;
}

function unitsPerSecondOf({ quota, windowMs }: Limit): number {
  return (quota * 1_000) / windowMs;
}

/** A cost of half the bucket or more would wait for units that lie in other hands, so such a counter is not lent. */
function canLease(rule: Rule, largestCost: number): boolean {
  return mayLease(rule) && largestCost * 2 <= capacity(rule.limit!);
}

function mayLeaseAll({ enforced }: Group): boolean {
  return enforced.every(({ rule }) => mayLease(rule));
}

function mayLease({ consistency, limit }: Rule): boolean {
  return consistency !== 'strict' && limit !== undefined && isLendable(limit);
}
