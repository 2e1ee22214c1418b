/**
 * A rule file without the API keys that were written into it: each stands there as its SHA-256, which compiles to the same rules.
 *
 * What is stored and shown is this form, so a raw key never leaves the place where the file was read.
 */
import type { Sha256 } from './compile-identity.ts';
import { isMap } from './schema.ts';

/** `raw` is a rule file that compiles. */
export function withoutRawKeys(raw: unknown, sha256: Sha256): unknown {
  if (!isMap(raw)) return raw;
  const { identity, descriptors } = raw;
  const listed = isMap(identity) && Array.isArray(identity.keys) ? identity.keys : undefined;
  const known = new Set(
    (listed ?? []).flatMap((entry) => {
      if (!isMap(entry)) return [];
      return [entry.key === undefined ? `${entry.key_sha256}`.toLowerCase() : sha256(String(entry.key))];
    }),
  );
  return {
    ...raw,
    ...(isMap(identity) &&
      listed !== undefined && {
        identity: { ...identity, keys: listed.map((entry) => directoryEntry(entry, sha256)) },
      }),
    ...(Array.isArray(descriptors) && {
      descriptors: descriptors.map((node) => descriptor(node, known, sha256)),
    }),
  };
}

function directoryEntry(entry: unknown, sha256: Sha256): unknown {
  if (!isMap(entry) || entry.key === undefined) return entry;
  const { key, ...rest } = entry;
  return { key_sha256: sha256(String(key)), ...rest };
}

function descriptor(node: unknown, known: ReadonlySet<string>, sha256: Sha256): unknown {
  if (!isMap(node)) return node;
  const { key, value, descriptors } = node;
  return {
    ...node,
    ...(key === 'api_key' && value !== undefined && { value: hashed(String(value), known, sha256) }),
    ...(Array.isArray(descriptors) && {
      descriptors: descriptors.map((child) => descriptor(child, known, sha256)),
    }),
  };
}

/** As the compiler reads it: `sha256:` and 64 digits, or digits that the file's directory lists, are a hash already. */
function hashed(value: string, known: ReadonlySet<string>, sha256: Sha256): string {
  const digits = /^(sha256:)?([0-9a-f]{64})$/i.exec(value);
  const isHash = digits?.[2] !== undefined && (digits[1] !== undefined || known.has(digits[2].toLowerCase()));
  return `sha256:${isHash ? digits[2]!.toLowerCase() : sha256(value)}`;
}
