/**
 * A clamp: what an operator decides about one caller for a while, whatever the rules say.
 *
 * It names its caller by the same pairs that counters are named by, so the owner of those counters is the owner of the clamp. `deny`
 * refuses, `limit` adds a policy with numbers of its own, `unlimited` sets the rules aside. Of several that are about one request
 * `deny` wins, then every `limit` holds, and only without those `unlimited` does. Each change has a revision, larger than that of every
 * change before, so whoever hears of changes in any order ends with the last; a clamp that was lifted is heard of as `none`.
 */
import type { Limit } from '../core/decision.ts';
import { counterId, encodePairs, ownerOf, type Pairs, rulePrefix, type Winner } from './counter.ts';
import type { RequestView } from './request-view.ts';
import type { Rule } from './ruleset.ts';

export type ClampAction = 'deny' | 'limit' | 'unlimited';

export interface Clamp {
  readonly domain: string;
  /** The caller; sorted by attribute. */
  readonly pairs: Pairs;
  /** `none` is a clamp that was lifted before its time. */
  readonly action: ClampAction | 'none';
  /** There exactly when the action is `limit`. */
  readonly limit?: Limit;
  /** When it ends by itself, in milliseconds since the Unix epoch. */
  readonly untilMs: number;
  readonly revision: number;
}

/** The policy under which a clamp shows in response fields and metrics. */
export const CLAMP_POLICY = 'clamp';

/** Whether a policy has a name that only clamps have. */
export function isClampPolicy(policy: string): boolean {
  return /^clamp(?:-\d+)?$/.test(policy);
}

/** More callers than an operator clamps one by one; all of a domain's clamps travel together, about 250 bytes each. */
export const CLAMPS_MAX = 1_000;

/** An attribute's name never begins so: no rule of a file has this path. */
const CLAMP_PATH = [{ key: '!clamp', match: 'any' }] as const;

/** What clamps say about one request. */
export interface Clamped {
  /** What decides; of several `limit`s the one that was made last. */
  readonly clamp: Clamp;
  /** The counters that `limit`s add. */
  readonly winners: readonly Winner[];
}

/** What a `limit` counts on: a policy beside those of the rules. */
export function clampWinner(
  { domain, pairs, limit }: Clamp & { readonly limit: Limit },
  { seed, policy = CLAMP_POLICY }: { seed: number; policy?: string },
): Winner {
  const rule: Rule = {
    path: CLAMP_PATH,
    policy,
    shadow: false,
    unlimited: false,
    limit,
    scope: 'global',
    consistency: 'auto',
    failureMode: 'open',
    blindShare: 0.05,
    per: pairs.map(([attribute]) => attribute),
  };
  return { rule, counterId: clampCounterId({ domain, pairs }), owner: ownerOf(domain, pairs, seed), pairs };
}

export function clampCounterId({ domain, pairs }: Pick<Clamp, 'domain' | 'pairs'>): string {
  return counterId(rulePrefix(domain, { path: CLAMP_PATH, policy: CLAMP_POLICY, shadow: false }), pairs);
}

export function isLimit(clamp: Clamp): clamp is Clamp & { readonly limit: Limit } {
  return clamp.action === 'limit' && clamp.limit !== undefined;
}

/** The clamps of one domain, as an isolate knows them: what was published, and what owners have said since. */
export class ClampTable {
  /** By the attributes that name the caller, then by the caller. */
  #byAttributes = new Map<string, Map<string, Clamp>>();
  readonly #winners = new WeakMap<Clamp, Winner>();
  #revision = 0;

  get isEmpty(): boolean {
    return this.#byAttributes.size === 0;
  }

  /** Whether some clamp names its caller by this attribute, so that requests have to be asked for it. */
  isAbout(attribute: string): boolean {
    for (const callers of this.#byAttributes.values()) {
      const [sample] = callers.values();
      if (sample?.pairs.some(([name]) => name === attribute)) return true;
    }
    return false;
  }

  /** The revision of the newest list that was published. */
  get revision(): number {
    return this.#revision;
  }

  /** A list of all that were in force at `revision`; what is known of later changes stays. False when it is not newer than the last. */
  adopt(published: readonly Clamp[], revision: number): boolean {
    if (revision < this.#revision) return false;
    const isNews = revision > this.#revision;
    this.#revision = revision;
    const later = [...this.#all()].filter((clamp) => clamp.revision > revision);
    this.#byAttributes = new Map();
    for (const clamp of [...published, ...later]) this.#put(clamp);
    return isNews;
  }

  /** An owner's word about one caller. False when nothing is new in it. */
  learn(clamp: Clamp): boolean {
    const known = this.#byAttributes.get(attributesOf(clamp.pairs))?.get(encodePairs(clamp.pairs));
    const knownRevision = known?.revision ?? this.#revision;
    if (clamp.revision <= knownRevision) return false;
    this.#put(clamp);
    return true;
  }

  /** What is in force for this request; the caller has made sure that the table is not empty. */
  find(view: RequestView, { seed, nowMs }: { seed: number; nowMs: number }): Clamped | undefined {
    const found: Clamp[] = [];
    for (const callers of this.#byAttributes.values()) {
      const [sample] = callers.values();
      const pairs = sample && pairsOf(view, sample.pairs);
      const clamp = pairs && callers.get(encodePairs(pairs));
      if (clamp !== undefined && clamp.action !== 'none' && nowMs < clamp.untilMs) found.push(clamp);
    }
    const limits = found.filter(isLimit);
    const clamp = found.find(({ action }) => action === 'deny') ?? limits.at(-1) ?? found[0];
    if (clamp === undefined) return undefined;
    const winners =
      clamp.action === 'limit' ? limits.map((each, at) => this.#winnerOf(each, { at, seed })) : [];
    return { clamp, winners };
  }

  /** Made once, so that what is counted of a rule has one rule to be counted by. Two policies of one request have two names. */
  #winnerOf(clamp: Clamp & { readonly limit: Limit }, { at, seed }: { at: number; seed: number }): Winner {
    const policy = at === 0 ? CLAMP_POLICY : `${CLAMP_POLICY}-${at + 1}`;
    const known = this.#winners.get(clamp);
    if (known?.rule.policy === policy) return known;
    const winner = clampWinner(clamp, { seed, policy });
    this.#winners.set(clamp, winner);
    return winner;
  }

  /** Drops what has ended. */
  sweep(nowMs: number): void {
    for (const clamp of [...this.#all()]) {
      if (nowMs < clamp.untilMs) continue;
      const attributes = attributesOf(clamp.pairs);
      const callers = this.#byAttributes.get(attributes);
      callers?.delete(encodePairs(clamp.pairs));
      if (callers?.size === 0) this.#byAttributes.delete(attributes);
    }
  }

  #put(clamp: Clamp): void {
    const attributes = attributesOf(clamp.pairs);
    const callers = this.#byAttributes.get(attributes) ?? new Map<string, Clamp>();
    this.#byAttributes.set(attributes, callers);
    const caller = encodePairs(clamp.pairs);
    // Owners' words are bounded by what operators clamp; a list that is not is cut.
    if (callers.size < CLAMPS_MAX || callers.has(caller)) callers.set(caller, clamp);
  }

  *#all(): Iterable<Clamp> {
    for (const callers of this.#byAttributes.values()) yield* callers.values();
  }
}

function attributesOf(pairs: Pairs): string {
  return pairs.map(([attribute]) => attribute).join(' ');
}

/** The request's values of these attributes; `undefined` when it lacks one. */
function pairsOf(view: RequestView, like: Pairs): Pairs | undefined {
  const pairs: [string, string][] = [];
  for (const [attribute] of like) {
    // A key that is clamped is clamped whether or not anybody could be asked whose it is.
    const value = attribute === 'api_key' ? view.key : view.counted(attribute);
    if (value === undefined) return undefined;
    pairs.push([attribute, value]);
  }
  return pairs;
}
