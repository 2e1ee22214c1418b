/**
 * What the admin API needs of the Worker that it is part of.
 */
import type { OwnerCall, OwnerReply } from '../engine/messages.ts';
import type { Background } from '../engine/ports.ts';
import type { Verdict } from '../engine/verdict.ts';
import type { Caller, KnownKeys } from '../policy/caller.ts';
import type { Clamp } from '../policy/clamp.ts';
import type { ControlApi } from '../policy/control.ts';
import type { Facts, Match, Matcher } from '../policy/match.ts';
import type { Region } from '../policy/region.ts';

/** A domain as this isolate has it. */
export interface AdminDomain extends KnownKeys {
  readonly matcher: Matcher;
  /** What applies to a request, clamps included, and wherever it is counted. */
  match(facts: Facts): Match;
  /** As the gateway would decide it. */
  decide(facts: Facts, options: AdminQuestion, background: Background): Promise<AdminDecision>;
  /** These counters were set back. */
  forget(counterIds: readonly string[]): void;
}

export interface AdminQuestion {
  /** In place of the ruleset's. */
  readonly cost: number | undefined;
  /** Where the request comes from. */
  readonly region: Region;
}

export interface AdminDecision {
  readonly verdict: Verdict;
  readonly match: Match;
  readonly cost: number;
}

/** What was changed in a domain: rules that are in force by now, or what was decided about a caller. */
export interface AdminChange {
  readonly domain: string;
  readonly activation?: number | undefined;
  readonly clamp?: Clamp;
}

export interface AdminPorts {
  /** The token that opens the API; without one there is no API. */
  readonly token: string | undefined;
  /** The gateway's own domain: what a request is about that names none. */
  readonly ownDomain: string;
  nowMs(): number;
  domain(name: string): Promise<AdminDomain | undefined>;
  /** Who shows a key; `undefined` where there is nobody to ask. */
  lookUp(hash: string, address: string, background: Background): Promise<Caller> | undefined;
  forgetKey(hash: string): void;
  /** Rejects when the owner does not answer in time. */
  callOwner(owner: string, call: OwnerCall): Promise<OwnerReply>;
  /** The control plane; absent where none is bound. */
  readonly control: ControlApi | undefined;
  /** All metrics in the text format of Prometheus; absent where there is no hub. */
  readonly metrics: (() => Promise<string>) | undefined;
  /** A change was made here, so it is to be in force here at once. */
  changed(change: AdminChange, background: Background): void;
}
