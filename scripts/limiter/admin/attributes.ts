/**
 * Attributes from the command line. A raw API key is hashed here: no other machine sees it.
 *
 * They are read by the commands' own code, since commander quotes what it refuses.
 */
import type { Command } from 'commander';
import { UsageError } from '../../command.ts';
import { sha256 } from '../load.ts';

export type Attributes = Readonly<Record<string, string>>;

export function withAttributes(target: Command): Command {
  return target.requiredOption(
    '--attr <key=value>',
    'an attribute, such as api_key=KEY, api_key_sha256=HEX or remote_address=192.0.2.1; may be repeated (a key leaves as its SHA-256)',
    collect,
  );
}

export function collect(text: string, known: readonly string[] = []): readonly string[] {
  return [...known, text];
}

export function attributesOf(pairs: readonly string[]): Attributes {
  const { api_key: key, ...attributes } = pairsOf(pairs, '--attr');
  if (key === undefined) return attributes;
  if (key === '') throw new UsageError('--attr api_key has no value.');
  return { api_key_sha256: sha256(key), ...attributes };
}

/** The values of an option that was given as `key=value`, each key once. */
export function pairsOf(pairs: readonly string[], flag: string): Attributes {
  const found = new Map<string, string>();
  for (const [at, pair] of pairs.entries()) {
    const equals = pair.indexOf('=');
    if (equals < 1)
      throw new UsageError(`${flag} wants key=value${pairs.length === 1 ? '' : ` (number ${at + 1})`}.`);
    const key = pair.slice(0, equals);
    if (found.has(key)) throw new UsageError(`${flag} names ${key} twice.`);
    found.set(key, pair.slice(equals + 1));
  }
  return Object.fromEntries(found);
}

/** A count of something, from `least`. */
export function parseWhole(text: string, flag: string, least: number): number {
  const count = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(count) || count < least)
    throw new UsageError(`${flag} wants a whole number from ${least}.`);
  return count;
}
