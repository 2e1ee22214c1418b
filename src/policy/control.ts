/**
 * What the admin API and the control plane's object say to each other. Plain data; times are milliseconds since the Unix epoch.
 */
import type { Clamp, ClampAction } from './clamp.ts';
import type { Pairs } from './counter.ts';
import type { KeyEntry } from './directory.ts';
import type { Problem } from './problem.ts';
import type { Ruleset } from './ruleset.ts';

/** A change, by whom, and when it was made. */
export interface AuthoredChange {
  readonly author: string;
  readonly atMs: number;
}

export interface AuditEntry extends AuthoredChange {
  readonly id: number;
  readonly action: string;
  /** As JSON. */
  readonly detail: string;
}

export interface StoredVersion {
  readonly domain: string;
  readonly version: number;
  readonly createdAtMs: number;
  readonly author: string;
  readonly message: string;
  /** The rule file as JSON, its keys as hashes. */
  readonly source: string;
  /** As it was compiled when it was published; JSON. */
  readonly ruleset: string;
  /** Problems, as JSON. */
  readonly warnings: string;
}

export type VersionSummary = Pick<StoredVersion, 'version' | 'createdAtMs' | 'author' | 'message'>;

export type ActivationCause = 'publish' | 'activate' | 'rollback';

export interface StoredActivation {
  readonly activation: number;
  readonly version: number;
  readonly activatedAtMs: number;
  readonly author: string;
  readonly cause: ActivationCause;
}

export interface VersionList {
  readonly active: StoredActivation | undefined;
  /** The newest first. */
  readonly versions: readonly VersionSummary[];
  readonly activations: readonly StoredActivation[];
}

/** Entries before this number, so many of them. */
export interface Page {
  readonly before: number;
  readonly limit: number;
}

export interface Publication {
  readonly domain: string;
  /** A rule file as JSON, with keys as hashes; and what it compiles to, with what there is to warn of. */
  readonly rules: unknown;
  readonly ruleset: Ruleset;
  readonly warnings: readonly Problem[];
  readonly message: string;
  readonly author: string;
  readonly activate: boolean;
}

export interface Published {
  readonly version: number;
  readonly activation?: number;
}

/** Who puts a version in force; `atLeast`: under a number no smaller than this. */
export interface ActivationWish {
  readonly author: string;
  readonly atLeast?: number | undefined;
}

/** Why there is nothing to activate. */
export type ActivationProblem = 'no_such_version' | 'nothing_before';

export interface NewClamp extends AuthoredChange {
  readonly domain: string;
  readonly pairs: Pairs;
  /** `none` lifts the one that there is. */
  readonly action: ClampAction | 'none';
  readonly limit?: Clamp['limit'];
  readonly untilMs: number;
  /** The owner of the caller's counters. */
  readonly owner: string;
  /** Those of its counters in regions. */
  readonly regionalOwners?: readonly string[];
}

export interface StoredClamp extends AuthoredChange {
  readonly clamp: Clamp;
  readonly owner: string;
  /** All that have been told of it, or of one before it about the same caller. */
  readonly regionalOwners: readonly string[];
}

/** `untold`: why an owner or KV does not know of it yet; they are told again. */
export type Clamped = { readonly clamp: Clamp; readonly untold: string | undefined } | 'too_many';

export interface StoredKey {
  /** SHA-256 in lower-case hex. */
  readonly keySha256: string;
  readonly entry: KeyEntry;
}

/** Without an entry the key is removed. */
export interface KeyChange extends Pick<StoredKey, 'keySha256'> {
  readonly entry?: KeyEntry;
}

/** What the control plane's object does for the admin API. */
export interface ControlApi {
  publish(publication: Publication): Promise<Published>;
  activate(domain: string, version: number, wish: ActivationWish): Promise<number | ActivationProblem>;
  /** Puts the version in force that was in force before the present one. */
  rollback(
    domain: string,
    author: string,
  ): Promise<{ activation: number; version: number } | ActivationProblem>;
  versions(domain: string, page: Page): Promise<VersionList>;
  version(domain: string, version: number): Promise<StoredVersion | undefined>;
  clamp(wanted: NewClamp): Promise<Clamped>;
  clamps(domain: string): Promise<readonly StoredClamp[]>;
  findClamp(domain: string, pairs: Pairs): Promise<StoredClamp | undefined>;
  /** Answers how many there were to remove. */
  putKeys(changes: readonly KeyChange[], author: string): Promise<{ removed: number }>;
  /** In order of their hashes, those after `after`. */
  keys(page: { readonly after: string; readonly limit: number }): Promise<readonly StoredKey[]>;
  key(hash: string): Promise<string | null>;
  audit(page: Page): Promise<readonly AuditEntry[]>;
  /** Writes down what was done elsewhere, such as to an owner. */
  note(author: string, action: string, detail: Readonly<Record<string, unknown>>): Promise<void>;
}
