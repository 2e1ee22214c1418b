/**
 * A root and its middle owners as real `Owner` machines over storage, without isolates between: whoever asks, asks an owner directly.
 *
 * Time passes only when a test lets it. What one owner says to the other goes as `mail` has it, each copy and each answer by itself, so
 * a message can be lost, repeated, late and overtaken.
 */
import { available, nowMsFor } from '../../src/core/algorithms.ts';
import { levelOf } from '../../src/engine/bucket-level.ts';
import type { Counter } from '../../src/engine/counters.ts';
import type { Answer, OwnerCall, OwnerReply, Question } from '../../src/engine/messages.ts';
import type { RootCall } from '../../src/engine/middle.ts';
import { Owner } from '../../src/engine/owner.ts';
import { roleOf, rootNameOf } from '../../src/engine/role.ts';
import { restore, WriteBehind } from '../../src/engine/write-behind.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { inRegion } from '../../src/policy/place.ts';
import type { Region } from '../../src/policy/region.ts';
import { type WinnerOptions, winner } from './rules.ts';
import { callOf, START_MS } from './world.ts';

/** When copies of a report arrive, and when the reply to each of them does; none for what is lost. */
export interface Mail {
  readonly thereMs: readonly number[];
  readonly backMs: readonly number[];
}

export const PROMPT: Mail = { thereMs: [40], backMs: [40] };
export const LOST: Mail = { thereMs: [], backMs: [] };

export const ROOT = 'own/anne';

/** A rule of regions, counted at the whole; `inRegion` has it elsewhere. */
export function regionalRule(options: Partial<WinnerOptions> = {}): Winner {
  return winner({ quota: 100, windowMs: 1_000, owner: ROOT, scope: 'regional', ...options });
}

interface Machine {
  readonly name: string;
  owner: Owner;
  storage: WriteBehind;
  lives: number;
  /** Its raw clock is so far ahead. */
  aheadMs: number;
  wake: Happening | undefined;
}

interface Happening {
  readonly atMs: number;
  readonly act: () => void;
}

export interface Said {
  readonly atMs: number;
  readonly from: string;
  readonly call: OwnerCall;
}

export class Realm {
  readonly rule: Winner;
  /** What becomes of the next message of a middle owner. */
  mail: (said: Said) => Mail = () => PROMPT;
  /** What arrives of a reply of the root's. */
  heard: (reply: OwnerReply) => OwnerReply | undefined = (reply) => reply;
  /** All that middle owners have said to their root. */
  readonly said: Said[] = [];
  readonly #machines = new Map<string, Machine>();
  #coming: Happening[] = [];
  #nowMs = 0;
  #asked = 0;

  constructor(rule: Winner = regionalRule()) {
    this.rule = rule;
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  get root(): Owner {
    return this.#machine(ROOT).owner;
  }

  region(region: Region): Owner {
    return this.#machine(regionName(region)).owner;
  }

  /** Asks a region's owner, as an isolate without a lease does. */
  ask(region: Region, { cost = 1, unitsPerSecond = 1 } = {}): Answer {
    const { counterId, rule } = inRegion(this.rule, region);
    return this.askOwner(regionName(region), counterId, {
      cost,
      unitsPerSecond,
      startCredit: rule.regional?.startCredit ?? 0,
    });
  }

  askOwner(
    name: string,
    counterId: string,
    {
      cost = 1,
      unitsPerSecond = 1,
      holder = 'isolate',
      startCredit,
      ...riders
    }: { cost?: number; unitsPerSecond?: number; holder?: string; startCredit?: number } & Partial<Question>,
  ): Answer {
    this.#asked += 1;
    const asked = {
      id: counterId,
      limit: this.rule.rule.limit!,
      shadow: false,
      unitsPerSecond,
      ...(startCredit !== undefined && { startCredit }),
    };
    const question = { id: `question ${this.#asked}`, cost, counters: [asked], ...riders };
    return this.tell(name, { holder, question }).answer!;
  }

  tell(name: string, parts: Partial<OwnerCall>): OwnerReply {
    const machine = this.#machine(name);
    const reply = machine.owner.handle(callOf(structuredClone(parts)), this.rawMs(name));
    this.#tellRoot(machine);
    return structuredClone(reply);
  }

  /** How many of so many requests at once are admitted. */
  admitted(region: Region, times: number, cost = 1): number {
    let units = 0;
    for (let sent = 0; sent < times; sent += 1)
      if (this.ask(region, { cost }).outcome === 'allowed') units += cost;
    return units;
  }

  /** A request each `everyMs`; answers the units that were admitted. */
  flood(regions: readonly Region[], forMs: number, everyMs = 5): number {
    let units = 0;
    for (const untilMs = this.#nowMs + forMs; this.#nowMs < untilMs; this.pass(everyMs))
      for (const region of regions) units += this.admitted(region, 1);
    return units;
  }

  pass(ms: number): void {
    const untilMs = this.#nowMs + ms;
    for (;;) {
      const next = this.#coming[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#coming.shift();
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.act();
    }
    this.#nowMs = untilMs;
  }

  rawMs(name: string): number {
    return START_MS + this.#nowMs + (this.#machines.get(name)?.aheadMs ?? 0);
  }

  /** The root's counter as it stands now. */
  rootCounter(): Counter | undefined {
    return this.counterOf(ROOT);
  }

  counterOf(name: string): Counter | undefined {
    // Whatever it is asked brings it to the present.
    this.tell(name, { inspect: [...this.#machine(name).owner.counters()] });
    return [...this.#machine(name).owner.counters()][0];
  }

  /** Units in the root's own bucket now, below 0 for a debt. */
  rootLevel(): number {
    const counter = this.rootCounter();
    return counter === undefined ? this.rule.rule.limit!.burst : levelOf(counter, this.root.clock);
  }

  /** What a middle owner could admit at once. */
  regionLevel(region: Region): number {
    const name = regionName(region);
    const { limit, state } = this.counterOf(name)!;
    return available(limit, state, nowMsFor(limit, this.#machine(name).owner.clock));
  }

  /** Rate and room that the root has lent. */
  lent() {
    return this.rootCounter()?.lent?.lentNow(this.root.clock.logicalMs) ?? { unitsPerMs: 0, capacity: 0 };
  }

  restInMs(name: string): number {
    return this.#machine(name).owner.restInMs(this.rawMs(name));
  }

  /** A new life: of what was stored just before, or of nothing, and on a clock that may be off. */
  restart(name: string, { isForgotten = false, aheadMs = 0 } = {}): void {
    const machine = this.#machine(name);
    const rows = [...machine.storage.take(machine.owner, this.rawMs(name))];
    machine.aheadMs = aheadMs;
    machine.lives += 1;
    this.#begin(machine, isForgotten ? [] : rows);
    this.#tellRoot(machine);
  }

  /** Where a clock is ahead before the owner is made. */
  setAhead(name: string, aheadMs: number): void {
    this.#machine(name).aheadMs = aheadMs;
    this.#begin(this.#machine(name), []);
  }

  #machine(name: string): Machine {
    const known = this.#machines.get(name);
    if (known !== undefined) return known;
    const machine = { name, lives: 1, aheadMs: 0, wake: undefined } as unknown as Machine;
    this.#machines.set(name, machine);
    this.#begin(machine, []);
    return machine;
  }

  #begin(machine: Machine, rows: readonly (readonly [string, unknown])[]): void {
    const { name, lives } = machine;
    const storage = new WriteBehind(1);
    const stored = restore(structuredClone(rows.filter(([, row]) => row !== undefined)));
    const options = {
      incarnation: `${name}#${lives}`,
      countersMax: 64,
      ...roleOf(name, Math.ceil(this.rawMs(name))),
      onChanged: storage.changed.bind(storage),
      onDisplaced: () => {},
    };
    machine.storage = storage;
    machine.owner = new Owner(options, this.rawMs(name), stored);
    for (const counter of machine.owner.counters()) storage.changed(counter, Number.POSITIVE_INFINITY);
  }

  /** As the object does it: after everything that it is told, and when its timer rings. */
  #tellRoot(machine: Machine): void {
    const { name, owner } = machine;
    const root = rootNameOf(name);
    if (root === undefined) return;
    if (machine.wake !== undefined) this.#coming.splice(this.#coming.indexOf(machine.wake), 1);
    machine.wake = undefined;
    const rootCall = owner.rootCall(this.rawMs(name));
    const dueInMs = owner.rootCallInMs(this.rawMs(name));
    if (dueInMs !== undefined)
      machine.wake = this.#after(Math.max(1, dueInMs), () => {
        machine.wake = undefined;
        this.#tellRoot(machine);
      });
    if (rootCall !== undefined) this.#send(machine, rootCall, root);
  }

  #send(machine: Machine, rootCall: RootCall, root: string): void {
    const said = { atMs: this.#nowMs, from: machine.name, call: structuredClone(rootCall.call) };
    this.said.push(said);
    const { owner } = machine;
    const { thereMs, backMs } = this.mail(said);
    for (const delayMs of thereMs) {
      this.#after(delayMs, () => {
        const reply = this.tell(root, said.call);
        for (const answerMs of backMs) {
          this.#after(answerMs, () => {
            // An answer to an earlier life reaches nobody.
            if (machine.owner !== owner) return;
            owner.rootReplied(rootCall, this.heard(structuredClone(reply)), this.rawMs(machine.name));
            this.#tellRoot(machine);
          });
        }
      });
    }
  }

  #after(delayMs: number, act: () => void): Happening {
    if (!Number.isFinite(delayMs)) throw new Error(`Something is to happen in ${delayMs} ms.`);
    const happening = { atMs: this.#nowMs + delayMs, act };
    const later = this.#coming.findIndex(({ atMs }) => atMs > happening.atMs);
    this.#coming.splice(later === -1 ? this.#coming.length : later, 0, happening);
    return happening;
  }
}

export function regionName(region: Region): string {
  return `region/${region}/${ROOT}`;
}

interface Admitted {
  readonly atMs: number;
  readonly units: number;
}

/** The most that was admitted beyond one ideal bucket in any interval. */
export function excessOf(
  admitted: readonly Admitted[],
  { quota, windowMs, burst }: { readonly quota: number; readonly windowMs: number; readonly burst: number },
): number {
  let [level, atMs, excess] = [burst, 0, 0];
  for (const { units, atMs: nowMs } of admitted) {
    level = Math.min(burst, level + ((nowMs - atMs) * quota) / windowMs) - units;
    atMs = nowMs;
    excess = Math.max(excess, -level);
  }
  return excess;
}
