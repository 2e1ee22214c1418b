/**
 * How rules travel from the control plane to isolates: a small head that says what is in force, and for each activation a document of
 * its own that never changes.
 *
 * Whatever arrives is checked before it counts: a head or document that cannot be read, is of another format or domain, is older than
 * what is held, or whose ruleset does not have the digest it was written with, is refused with the reason, and what was held stays.
 */
import type { Clamp } from './clamp.ts';
import { isNewer, RULESET_FORMAT, type Ruleset, type Version } from './ruleset.ts';

export const ACTIVATION_FORMAT = 1;

/** What is in force in a domain; written anew with each change. */
export interface Head {
  readonly format: typeof ACTIVATION_FORMAT;
  readonly domain: string;
  /** 0: nothing was ever published, and the bundled rules stand. */
  readonly activation: number;
  /** The newest change that `clamps` knows of. */
  readonly revision: number;
  readonly clamps: readonly Clamp[];
  /** Whether the key directory holds any key at all: where it does not, nobody asks it. */
  readonly hasKeys: boolean;
}

/** One activation. */
export interface ActivationDocument {
  readonly format: typeof ACTIVATION_FORMAT;
  readonly domain: string;
  readonly activation: number;
  readonly version: number;
  readonly activatedAtMs: number;
  /** SHA-256 of `ruleset`, in lower-case hex. */
  readonly digest: string;
  /** A compiled ruleset as JSON. */
  readonly ruleset: string;
}

export interface Activated {
  readonly ruleset: Ruleset;
  readonly version: Version;
  readonly activatedAtMs: number;
}

/** Why what a source offered was not taken. */
export type Refusal = 'missing' | 'unreadable' | 'format' | 'domain' | 'older' | 'digest';

export type Read<Value> = { readonly value: Value } | { readonly refused: Refusal };

export function headKey(domain: string): string {
  return `active:${domain}`;
}

export function activationKey(domain: string, activation: number): string {
  return `activation:${domain}:${activation}`;
}

export interface HeldRules {
  readonly domain: string;
  readonly version: Version;
}

export function readHead(text: string | null | undefined, held: HeldRules): Read<Head> {
  const read = readJson(text, held);
  if ('refused' in read) return read;
  const head = read.value as unknown as Head;
  if (!isCount(head.activation) || !isCount(head.revision) || !Array.isArray(head.clamps))
    return { refused: 'unreadable' };
  if (!head.clamps.every((clamp) => isClamp(clamp, held.domain))) return { refused: 'unreadable' };
  return head.activation < held.version.activation ? { refused: 'older' } : { value: head };
}

/** `sha256` answers lower-case hex. */
export async function readActivation(
  text: string | null | undefined,
  held: HeldRules,
  sha256: (text: string) => Promise<string>,
): Promise<Read<Activated>> {
  const read = readJson(text, held);
  if ('refused' in read) return read;
  const document = read.value as unknown as ActivationDocument;
  if (!isCount(document.activation) || typeof document.ruleset !== 'string') return { refused: 'unreadable' };
  if ((await sha256(document.ruleset)) !== document.digest) return { refused: 'digest' };
  const ruleset = JSON.parse(document.ruleset) as Ruleset;
  if (ruleset.format !== RULESET_FORMAT) return { refused: 'format' };
  if (ruleset.domain !== held.domain) return { refused: 'domain' };
  const version = { activation: document.activation, builtAtMs: ruleset.builtAtMs };
  if (!isNewer(version, held.version)) return { refused: 'older' };
  return { value: { ruleset, version, activatedAtMs: document.activatedAtMs } };
}

function readJson(
  text: string | null | undefined,
  { domain }: HeldRules,
): Read<Readonly<Record<string, unknown>>> {
  if (text === null || text === undefined || text === '') return { refused: 'missing' };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { refused: 'unreadable' };
  }
  if (typeof value !== 'object' || value === null) return { refused: 'unreadable' };
  const document = value as Readonly<Record<string, unknown>>;
  if (document.format !== ACTIVATION_FORMAT) return { refused: 'format' };
  return document.domain === domain ? { value: document } : { refused: 'domain' };
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isClamp(value: unknown, domain: string): boolean {
  const clamp = value as Partial<Clamp> | null | undefined;
  return (
    clamp?.domain === domain &&
    Array.isArray(clamp.pairs) &&
    clamp.pairs.every((pair) => Array.isArray(pair) && pair.length === 2) &&
    typeof clamp.untilMs === 'number' &&
    isCount(clamp.revision) &&
    ['deny', 'limit', 'unlimited', 'none'].includes(`${clamp.action}`) &&
    (clamp.action !== 'limit' || typeof clamp.limit?.quota === 'number')
  );
}
