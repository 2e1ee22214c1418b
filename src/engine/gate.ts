/**
 * The way of a request through its limits: local rules, what is remembered as denied, the owners, and a fallback for the ones that do
 * not answer in time.
 *
 * Promise: a denied request is charged nowhere. Whatever some counters charged before another one denied is given back: in the isolate
 * at once, at an owner in the background, once its answer (however late) says that it charged. A request that no owner answered is
 * decided by the rules' failure mode. Nothing here throws for what an owner does, and no request waits longer than its deadline.
 */
import { BucketTable } from '../core/bucket-table.ts';
import { advance, type LogicalClock, startClock } from '../core/clock.ts';
import type { Winner } from '../policy/counter.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import {
  type Ask,
  type Asked,
  type Asker,
  denialOrAll,
  isDenial,
  type Remembered,
  startAsking,
} from './asked.ts';
import { Errands } from './errands.ts';
import { type Group, groupByOwner, phasesOf } from './groups.ts';
import { LocalRules } from './local-rules.ts';
import { Owners } from './owners.ts';
import type { Background, Ports } from './ports.ts';
import { merge, othersDenied, Reports, reportOn } from './reports.ts';
import { Settlement } from './settlement.ts';
import { type House, needsStay, Stay } from './stay.ts';
import {
  type GateRequest,
  type PolicyReport,
  refusedByClamp,
  type Verdict,
  verdictOf,
  worstOutcome,
} from './verdict.ts';

export interface GateOptions {
  /** Names this isolate to owners: random, so that no two ever share it. */
  readonly holder: string;
  /** Slots of the isolate's bucket table, 16 bytes each. */
  readonly bucketSlots: number;
}

export class Gate {
  readonly #ports: Ports;
  readonly #holder: string;
  readonly #owners: Owners;
  readonly #local: LocalRules;
  readonly #table: BucketTable;
  readonly #settlement: Settlement;
  readonly #reports: Reports;
  readonly #house: House;
  #clock: LogicalClock;
  /** What is decided at once is decided at one instant: on the platform a clock stands still meanwhile, and is dear to read. */
  #instantMs: number | undefined;
  #version: Version = { activation: 0, builtAtMs: 0 };
  #asks = 0;

  constructor(ports: Ports, { holder, bucketSlots }: GateOptions) {
    this.#ports = ports;
    this.#holder = holder;
    this.#clock = startClock(ports.nowMs());
    const nowMs = () => this.#nowMs();
    const table = new BucketTable({ slots: bucketSlots, seed: Math.floor(ports.random() * 2 ** 32) });
    this.#table = table;
    this.#owners = new Owners(ports, holder, nowMs);
    this.#local = new LocalRules(table);
    this.#reports = new Reports(this.#owners.known, nowMs);
    this.#settlement = new Settlement(ports, this.#owners, table, nowMs);
    const [owners, local, settlement] = [this.#owners, this.#local, this.#settlement];
    this.#house = { ports, nowMs, owners, local, settlement, errands: new Errands({ ports, nowMs, owners }) };
  }

  /**
   * Decides a request: at once where nobody has to be asked, else in a promise. `background` keeps what is left to do alive
   * after the response has gone.
   */
  decide(request: GateRequest, background: Background): Verdict | Promise<Verdict> {
    this.#instantMs = this.#nowMs();
    try {
      return this.#decide(request, background);
    } finally {
      this.#instantMs = undefined;
    }
  }

  /** Owners that are not asked at present, since they did not answer. */
  get silentOwners(): number {
    return this.#owners.silent;
  }

  /** How many of the isolate's own buckets have had to give way before they were full. */
  get displacedBuckets(): number {
    return this.#table.displaced;
  }

  /** Who is denied has been decided anew. */
  forgetDenied(): void {
    this.#owners.denyMemory.forgetAll();
  }

  /** These counters are not what they were: what is remembered of them is void. */
  forget(counterIds: readonly string[]): void {
    for (const counterId of counterIds) this.#owners.denyMemory.forget(counterId);
  }

  #decide(request: GateRequest, background: Background): Verdict | Promise<Verdict> {
    this.#adopt(request.version);
    if (request.denyUntilMs !== undefined)
      return refusedByClamp(Math.max(1, request.denyUntilMs - this.#ports.nowMs()));
    const { local, owned: winners } = divide(request.enforced);
    const localReports =
      local.length === 0 ? NO_REPORTS : this.#local.take(local, request.cost, this.#nowMs());
    if (worstOutcome(localReports) !== 'allowed') return verdictOf(localReports);
    if (winners.length === 0 && request.shadow.length === 0)
      return withStay(verdictOf(localReports), this.#localStay(request, local, background));
    const owned = this.#decideOwned(request, winners, background);
    return owned instanceof Promise
      ? owned.then((settled) => this.#conclude(request, local, localReports, settled))
      : this.#conclude(request, local, localReports, owned);
  }

  #conclude(
    { cost, shadow }: GateRequest,
    local: readonly Winner[],
    localReports: readonly PolicyReport[],
    owned: Owned,
  ): Verdict {
    const reports = localReports.length === 0 ? owned.reports : [...localReports, ...owned.reports];
    const verdict = verdictOf(reports, owned.shadowDenied);
    if (verdict.outcome !== 'allowed') {
      if (local.length === 0) return verdict;
      this.#local.giveBack(local, cost, this.#nowMs());
      // What is left of them is told as it is after that.
      const levels = this.#local.take(local, 0, this.#nowMs());
      return verdictOf([...levels, ...owned.reports], owned.shadowDenied);
    }
    owned.stay?.addLocal(local);
    if (shadow.length === 0) return withStay(verdict, owned.stay);
    const denied = this.#local.takeShadow(divide(shadow).local, cost, this.#nowMs());
    const shadowDenied = [...verdict.shadowDenied, ...this.#noteShadowDenied(denied)];
    return withStay({ ...verdict, shadowDenied }, owned.stay);
  }

  #localStay(request: GateRequest, local: readonly Winner[], background: Background): Stay | undefined {
    if (request.isEstimate !== true) return undefined;
    const stay = new Stay(this.#house, this.#newAsk(request), background);
    stay.addLocal(local);
    return stay;
  }

  /** Everything that owners decide, or what stands in for them. */
  #decideOwned(
    request: GateRequest,
    winners: readonly Winner[],
    background: Background,
  ): Owned | Promise<Owned> {
    this.#owners.leases.arrive(winners, request.cost);
    const denials = this.#owners.remembered(winners, request.cost);
    if (denials.length > 0 && !this.#areLeased(denials, winners, request.cost)) {
      this.#ports.count('deny_memory_hit');
      const reports = this.#reports.of(winners, { asked: [], denials, cost: request.cost });
      if (winners.length > 1) this.#owners.leases.unarrive(othersDenied(winners, reports, []), request.cost);
      return { reports, shadowDenied: [] };
    }
    const { deciding, shadowOnly } = this.#owners.placed(groupByOwner(winners, divide(request.shadow).owned));
    const ask = this.#newAsk(request);
    const spent = this.#spendLeases(deciding, ask, background);
    if (spent.length < deciding.length && !spent.some(({ result }) => isDenial(result)))
      return this.#askOwners({ request, winners, deciding, shadowOnly, ask, spent }, background);
    return this.#end({ request, winners, shadowOnly, ask, asked: spent }, background);
  }

  /** What an owner denied says nothing of the units that it has lent to this isolate. */
  #areLeased(denials: readonly Remembered[], winners: readonly Winner[], cost: number): boolean {
    if (this.#owners.leases.isEmpty) return false;
    const { deciding } = this.#owners.placed(groupByOwner(winners, NO_WINNERS));
    const leased = deciding.filter((group) => this.#owners.leases.canTake(group, cost));
    return denials.every(({ winner }) => leased.some(({ enforced }) => enforced.includes(winner)));
  }

  /** Takes from every lease in hand, so far as none is dry, and asks for more of those that run low. */
  #spendLeases(groups: readonly Group[], ask: Ask, background: Background): readonly Asked[] {
    const spent: Asked[] = [];
    for (const group of groups) {
      const result = this.#owners.spendLease(group, ask);
      if (result !== undefined) {
        spent.push({ group, result });
        this.#owners.renewIfDue(group, ask, background);
      }
      if (isDenial(result)) break;
    }
    return spent;
  }

  async #askOwners(asking: Asking, background: Background): Promise<Owned> {
    const { deciding, ask, spent } = asking;
    const missing = deciding.filter((group) => !spent.some((each) => each.group === group));
    const asked = await this.#askInPhases(missing, ask, background);
    return this.#end({ ...asking, asked: [...spent, ...asked] }, background);
  }

  #end({ request, winners, shadowOnly, ask, asked }: Ended, background: Background): Owned {
    const waited = asked.flatMap(({ result }) => (result?.kind === 'remembered' ? result.denials : []));
    const answered = this.#reports.of(winners, { asked, denials: waited, cost: request.cost });
    const isDenied = worstOutcome(answered) !== 'allowed';
    const settled = this.#settlement.settle(asked, { ask, request, isDenied }, background);
    const reports = merge(answered, settled.reports);
    const shadowDenied = this.#shadowDenied(asked);
    if (worstOutcome(reports) !== 'allowed') {
      this.#owners.leases.unarrive(othersDenied(winners, reports, asked), request.cost);
      return { reports, shadowDenied };
    }
    const stay = needsStay(request) ? new Stay(this.#house, ask, background) : undefined;
    for (const each of asked) stay?.addAsked(each);
    for (const substitute of settled.substitutes) stay?.addSubstitute(substitute);
    for (const group of shadowOnly) background(this.#askShadow(group, ask, background, stay));
    return { reports, shadowDenied, ...(stay && { stay }) };
  }

  async #askInPhases(groups: readonly Group[], ask: Ask, background: Background): Promise<readonly Asked[]> {
    const asked: Asked[] = [];
    const asker: Asker = {
      ask: (group) => this.#owners.ask(group, ask, background),
      sentOn: (group, result) => this.#owners.sentOn(group, result, ask, background),
      ahead: (group) => this.#owners.ahead(group, ask),
      around: (group, first) => this.#owners.around(group, ask, first),
      leave: (group, done) => {
        if (ask.cost > 0) background(this.#settlement.takeBack({ group, result: undefined, done }, ask));
      },
    };
    for (const phase of phasesOf(groups, (winner) => this.#owners.isEmpty(winner, ask.cost))) {
      const now = phase.map((group) => startAsking(group, asker));
      asked.push(...now);
      // A client that goes away must not stop what its request has begun: a charge would be left without anybody to take it back.
      for (const { done } of now) background(done);
      await denialOrAll(now);
      if (now.some(({ result }) => isDenial(result))) break;
    }
    return asked;
  }

  async #askShadow(group: Group, ask: Ask, background: Background, stay: Stay | undefined): Promise<void> {
    const asked = { group, result: await this.#owners.ask(group, ask, background) };
    stay?.addAsked(asked);
    this.#shadowDenied([asked]);
  }

  #shadowDenied(asked: readonly Asked[]): readonly string[] {
    const denied = asked.flatMap(({ group, result }) => {
      if (result?.kind !== 'answered') return [];
      return group.shadow.filter((winner) => reportOn(winner, result.answer)?.decision.outcome !== 'allowed');
    });
    return this.#noteShadowDenied(denied);
  }

  #noteShadowDenied(denied: readonly Winner[]): readonly string[] {
    if (denied.length > 0) this.#ports.count('shadow_denied', denied.length);
    for (const winner of denied) this.#ports.shadowDenied?.(winner);
    return denied.map(({ rule }) => rule.policy);
  }

  #adopt(version: Version): void {
    if (!isNewer(version, this.#version)) return;
    this.#version = version;
    this.#owners.adopt(version);
  }

  #newAsk({ version, cost, largestCost, isEstimate = false, deadlineMs }: GateRequest): Ask {
    this.#asks += 1;
    const id = `${this.#holder}:${this.#asks}`;
    return { id, version, cost, largestCost, isEstimate, startedMs: this.#nowMs(), deadlineMs };
  }

  /** The isolate's own logical time: a raw clock that steps back must not hold a denial or a breaker for longer than it said. */
  #nowMs(): number {
    if (this.#instantMs !== undefined) return this.#instantMs;
    this.#clock = advance(this.#clock, this.#ports.nowMs());
    return this.#clock.logicalMs;
  }
}

interface Owned {
  readonly reports: readonly PolicyReport[];
  readonly shadowDenied: readonly string[];
  readonly stay?: Stay;
}

interface Ended {
  readonly request: GateRequest;
  readonly winners: readonly Winner[];
  readonly shadowOnly: readonly Group[];
  readonly ask: Ask;
  readonly asked: readonly Asked[];
}

interface Asking extends Omit<Ended, 'asked'> {
  readonly deciding: readonly Group[];
  /** What leases have settled already. */
  readonly spent: readonly Asked[];
}

const NO_WINNERS: readonly Winner[] = [];
const NO_REPORTS: readonly PolicyReport[] = [];

/** Those that are decided in the isolate, and those that owners decide. Most requests have one kind, and no list is made. */
function divide(winners: readonly Winner[]): { local: readonly Winner[]; owned: readonly Winner[] } {
  let locals = 0;
  for (const { rule } of winners) if (rule.scope === 'local') locals += 1;
  if (locals === 0) return { local: NO_WINNERS, owned: winners };
  if (locals === winners.length) return { local: winners, owned: NO_WINNERS };
  return {
    local: winners.filter(({ rule }) => rule.scope === 'local'),
    owned: winners.filter(({ rule }) => rule.scope !== 'local'),
  };
}

function withStay(verdict: Verdict, stay: Stay | undefined): Verdict {
  return stay === undefined ? verdict : { ...verdict, stay };
}
