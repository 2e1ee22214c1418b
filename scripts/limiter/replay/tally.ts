/**
 * What a replay counts: each ruleset by itself, and the requests that only one of the two would have refused, by caller.
 *
 * However many callers there are, a fixed number of them is told apart; the requests of all others are counted together.
 */
import { RequestView } from '../../../src/policy/request-view.ts';
import { routeTable } from '../../../src/policy/route-pattern.ts';
import type { Ruleset } from '../../../src/policy/ruleset.ts';
import type { LogRecord } from './log.ts';
import type { Outcome } from './side.ts';

export interface ReplayReport {
  readonly requests: number;
  /** When the first and the last of them came, in milliseconds since the Unix epoch; absent where there was none. */
  readonly fromMs?: number;
  readonly toMs?: number;
  /** The two rulesets, in the order in which they were named. */
  readonly rulesets: readonly [SideReport, SideReport];
  /** Of each policy of either ruleset, how many requests it refused under each; of one in shadow, would have. */
  readonly policies: readonly PolicyReport[];
  /** Refused under the first ruleset and admitted under the second. */
  readonly gained: Moved;
  /** Admitted under the first ruleset and refused under the second. */
  readonly lost: Moved;
  readonly notes: readonly string[];
}

export interface SideReport {
  readonly rules: string;
  readonly domain: string;
  readonly admitted: number;
  /** Of those admitted, how many would have been held back for a while first. */
  readonly delayed: number;
  readonly denied: number;
  /** Refused for a cost that is above what some limit can ever hold. */
  readonly impossible: number;
  /** No rule matched: they passed, and are among the admitted. */
  readonly unmatched: number;
}

export interface PolicyReport {
  readonly policy: string;
  readonly shadow: boolean;
  /** Under each ruleset. */
  readonly refused: readonly [number, number];
}

export interface Moved {
  readonly requests: number;
  /** How many callers they came from, as far as callers were told apart. */
  readonly callers: number;
  /** Those with the most of them. */
  readonly top: readonly CallerCount[];
  /** Requests of callers that were not told apart. */
  readonly others: number;
}

export interface CallerCount {
  readonly attribute: string;
  /** Of an API key, the first digits of its hash. */
  readonly value: string;
  readonly requests: number;
}

/** Both of a request's outcomes. */
export type Outcomes = readonly [Outcome, Outcome];

export interface NamedRuleset {
  readonly name: string;
  readonly ruleset: Ruleset;
}

/** About 200 bytes each. Who comes first is told apart: a log long enough to have more is best cut by what it is about. */
const CALLERS_MAX = 100_000;

/** A caller's name in memory and on paper. */
const VALUE_LENGTH_MAX = 100;
const KEY_DIGITS = 12;

const NO_ROUTES = routeTable([]);

export class Tally {
  readonly #rulesets: readonly [NamedRuleset, NamedRuleset];
  readonly #sides: readonly [SideCount, SideCount];
  readonly #policies = new Map<string, PolicyCount>();
  readonly #gained = new CallerCounts();
  readonly #lost = new CallerCounts();
  #requests = 0;
  #fromMs: number | undefined;
  #toMs: number | undefined;

  constructor(rulesets: readonly [NamedRuleset, NamedRuleset]) {
    this.#rulesets = rulesets;
    this.#sides = [new SideCount(), new SideCount()];
    for (const { ruleset } of rulesets) {
      for (const { policy, shadow, unlimited } of ruleset.rules)
        if (!unlimited) this.#policyOf(policy, shadow);
    }
  }

  get requests(): number {
    return this.#requests;
  }

  decided(record: LogRecord, outcomes: Outcomes): void {
    this.#requests += 1;
    this.#fromMs ??= record.atMs;
    this.#toMs = record.atMs;
    for (const [at, outcome] of outcomes.entries()) {
      this.#sides[at]!.count(outcome);
      for (const policy of outcome.refusedBy) this.#policyOf(policy, false).refused[at]! += 1;
    }
    const [wasAdmitted, isAdmitted] = outcomes.map(({ kind }) => kind === 'allowed');
    if (wasAdmitted === isAdmitted) return;
    (isAdmitted ? this.#gained : this.#lost).count(this.#callerOf(record));
  }

  shadowDenied(policy: string, side: 0 | 1): void {
    this.#policyOf(policy, true).refused[side] += 1;
  }

  report(top: number, notes: readonly string[]): ReplayReport {
    const [a, b] = this.#rulesets.map(({ name, ruleset }, at) =>
      this.#sides[at]!.report(name, ruleset.domain),
    );
    return {
      requests: this.#requests,
      ...(this.#fromMs !== undefined && { fromMs: this.#fromMs }),
      ...(this.#toMs !== undefined && { toMs: this.#toMs }),
      rulesets: [a!, b!],
      policies: [...this.#policies.values()].map(({ policy, shadow, refused: [one, two] }) => ({
        policy,
        shadow,
        refused: [one, two],
      })),
      gained: this.#gained.report(top),
      lost: this.#lost.report(top),
      notes,
    };
  }

  #policyOf(policy: string, shadow: boolean): PolicyCount {
    const name = `${shadow ? 's' : 'e'}${policy}`;
    const known = this.#policies.get(name);
    if (known !== undefined) return known;
    const count: PolicyCount = { policy, shadow, refused: [0, 0] };
    this.#policies.set(name, count);
    return count;
  }

  /** As the second ruleset counts by default: an IPv6 address is its network. */
  #callerOf({ attributes }: LogRecord): Caller {
    const { ruleset } = this.#rulesets[1];
    const [attribute, value] = new RequestView(ruleset, NO_ROUTES, { attributes }).subject();
    return { attribute, value: value.slice(0, attribute === 'api_key' ? KEY_DIGITS : VALUE_LENGTH_MAX) };
  }
}

interface PolicyCount {
  readonly policy: string;
  readonly shadow: boolean;
  readonly refused: [number, number];
}

class SideCount {
  #admitted = 0;
  #delayed = 0;
  #denied = 0;
  #impossible = 0;
  #unmatched = 0;

  count({ kind, isUnmatched, isDelayed }: Outcome): void {
    if (kind === 'allowed') this.#admitted += 1;
    else if (kind === 'impossible') this.#impossible += 1;
    else this.#denied += 1;
    if (isDelayed) this.#delayed += 1;
    if (isUnmatched) this.#unmatched += 1;
  }

  report(rules: string, domain: string): SideReport {
    return {
      rules,
      domain,
      admitted: this.#admitted,
      delayed: this.#delayed,
      denied: this.#denied,
      impossible: this.#impossible,
      unmatched: this.#unmatched,
    };
  }
}

type Caller = Omit<CallerCount, 'requests'>;

class CallerCounts {
  readonly #byName = new Map<string, Caller & { requests: number }>();
  #requests = 0;
  #others = 0;

  count(caller: Caller): void {
    this.#requests += 1;
    const name = `${caller.attribute} ${caller.value}`;
    const known = this.#byName.get(name);
    if (known !== undefined) known.requests += 1;
    else if (this.#byName.size < CALLERS_MAX) this.#byName.set(name, { ...caller, requests: 1 });
    else this.#others += 1;
  }

  report(top: number): Moved {
    const all = [...this.#byName.values()].sort((one, other) => other.requests - one.requests);
    return { requests: this.#requests, callers: all.length, top: all.slice(0, top), others: this.#others };
  }
}
