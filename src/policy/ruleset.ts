/**
 * The compiled form of a rule file: plain JSON, made by `policy/compile`, read by `policy/match`.
 *
 * It holds no raw API key (only SHA-256), needs no parser in the Worker, and says nothing that is not needed to decide.
 */
import type { Limit } from '../core/decision.ts';
import type { Region } from './region.ts';

export const RULESET_FORMAT = 1;

export type HeaderMode = 'ietf' | 'legacy' | 'both' | 'none';
export type FailureMode = 'open' | 'closed';

export interface Ruleset {
  readonly format: typeof RULESET_FORMAT;
  readonly domain: string;
  /** When this ruleset was compiled, in milliseconds since the Unix epoch: orders bundled rulesets, which share activation 0. */
  readonly builtAtMs: number;
  readonly headers: HeaderMode;
  /** How long a request waits for an owner before the rule's failure mode decides. */
  readonly deadlineMs: number;
  readonly identity: Identity;
  /** Declared attributes, by name: the request header that carries each (lower case). Clients can write them. */
  readonly attributes: Readonly<Record<string, AttributeSource>>;
  /** Origins that may read a denial (`cors.allow_origins`); `*` means any. */
  readonly corsOrigins: readonly string[];
  /** Every route pattern that the file names, the most specific first. */
  readonly routes: readonly string[];
  /** Where `scope: regional` rules are kept, in the order of the file. Absent: in all regions. */
  readonly regions?: readonly Region[];
  readonly rules: readonly Rule[];
  readonly costs: readonly CostRule[];
}

export interface AttributeSource {
  readonly header: string;
  /** Fold case, width and spaces, so that respelling a value does not make another caller of it. */
  readonly fold: boolean;
}

export interface Identity {
  readonly apiKey: readonly KeyLocation[];
  /** SHA-256 (lower-case hex) of each known key, and the attributes it stands for (`tier`, `org`, `user` ...). */
  readonly keys: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly unknownKeys: 'address' | 'subject';
  /** Attributes of a caller that is not resolved. */
  readonly defaults: Readonly<Record<string, string>>;
  readonly trustedHops: number;
  readonly ipv6Prefix: number;
}

export type KeyLocation =
  | { readonly in: 'authorization' }
  | { readonly in: 'header'; readonly name: string }
  | { readonly in: 'query'; readonly name: string };

/** A leaf of the descriptor tree. The order of `Ruleset.rules` is the order of the file. */
export interface Rule {
  /** From the root to the leaf. */
  readonly path: readonly RuleNode[];
  readonly policy: string;
  readonly shadow: boolean;
  /** Without numbers: admits everything, makes no owner call, shows no item. */
  readonly unlimited: boolean;
  /** Absent exactly when `unlimited`. */
  readonly limit?: Limit;
  readonly scope: 'global' | 'regional' | 'local';
  /** Present exactly when the scope is `regional`. */
  readonly regional?: Regional;
  readonly consistency: 'strict' | 'leased' | 'auto';
  readonly failureMode: FailureMode;
  /** The share of the limit that an isolate takes in fallback when no owner has ever told it its own. */
  readonly blindShare: number;
  /** The attributes whose values name the counter, sorted; `['subject']` is the default; empty is one counter for all. */
  readonly per: readonly string[];
}

export interface Regional {
  /** The share of the limit that a region admits before it has borrowed from the whole; above 0, at most 1. */
  readonly startCredit: number;
  /** Where the limit is split for good: the share of each region, together at most 1. Nothing is borrowed then. */
  readonly weights?: Readonly<Partial<Record<Region, number>>>;
}

/** `value` is as in the file, except for `api_key`, where it is the key's SHA-256. */
export type RuleNode =
  | { readonly key: string; readonly match: 'any' }
  | { readonly key: string; readonly match: 'exact' | 'pattern' | 'route' | 'cidr'; readonly value: string };

export interface CostRule {
  readonly route?: string;
  readonly method?: string;
  /** Whole units, charged with the decision. */
  readonly cost: number;
  /** The cost is an estimate, to be corrected when the response tells it. */
  readonly estimate?: Estimate;
}

export interface Estimate {
  /** The response header that tells the cost; where there is none, the Worker's own code does. */
  readonly header?: string;
  /** What a request costs that does not tell, or tells nonsense. */
  readonly defaultCost: number;
}

/**
 * Which of two rulesets is newer: by activation, and among bundled ones (activation 0) by build time.
 * "Newer" never means anything else.
 */
export interface Version {
  readonly activation: number;
  readonly builtAtMs: number;
}

export function isNewer(a: Version, b: Version): boolean {
  return a.activation !== b.activation ? a.activation > b.activation : a.builtAtMs > b.builtAtMs;
}
