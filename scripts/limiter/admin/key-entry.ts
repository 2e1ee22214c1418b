/**
 * An entry of the key directory on its way to the server: checked by the schema that the server checks it with, its key hashed.
 *
 * What is wrong is told without quoting anything that could be a key.
 */
import type * as z from 'zod/mini';
import { keyBody } from '../../../src/admin/schemas.ts';
import { formatPath, type Path, suggestion } from '../../../src/policy/problem.ts';
import { sha256 } from '../load.ts';
import { pairsText } from './table.ts';

/** As it is sent: no raw key. */
export type WireKey = Omit<z.output<typeof keyBody>, 'key' | 'keySha256'> & { readonly keySha256: string };

export type ReadKey = { readonly key: WireKey } | { readonly problems: readonly KeyProblem[] };

export interface KeyProblem {
  /** `labels.plan`; nothing when it is about the whole entry. */
  readonly field: string;
  readonly message: string;
}

const FIELDS = ['key', 'keySha256', 'tier', 'org', 'user', 'labels', 'disabled', 'expiresAt'];

export function readKey(raw: unknown): ReadKey {
  const result = keyBody.safeParse(withBareHash(raw));
  if (!result.success) return { problems: result.error.issues.map(problemOf) };
  const { key, keySha256, ...rest } = result.data;
  return { key: { keySha256: keySha256 ?? sha256(`${key}`), ...rest } };
}

/** `tier=free org=acme label_plan=gold, disabled`. */
export function entryText({ tier, org, user, labels = {}, disabled, expiresAt }: Partial<WireKey>): string {
  const named = Object.entries({ tier, org, user }).filter(
    (pair): pair is [string, string] => pair[1] !== undefined,
  );
  const labelled = Object.entries(labels).map(([name, value]): [string, string] => [`label_${name}`, value]);
  const facts = pairsText(Object.fromEntries([...named, ...labelled]));
  const states = [disabled ? 'disabled' : '', expiresAt === undefined ? '' : `expires ${expiresAt}`];
  return [facts || '(no attributes)', ...states].filter((part) => part !== '').join(', ');
}

/** Hashes are shown as `sha256:HEX` in places, and are taken so too. */
function withBareHash(raw: unknown): unknown {
  const { keySha256 } = (raw ?? {}) as { keySha256?: unknown };
  return typeof keySha256 === 'string' && /^sha256:/i.test(keySha256)
    ? { ...(raw as object), keySha256: keySha256.slice('sha256:'.length) }
    : raw;
}

function problemOf(issue: z.core.$ZodIssue): KeyProblem {
  if (issue.code === 'unrecognized_keys') return { field: '', message: unknownField(issue.keys[0] ?? '') };
  const field = issue.path.length === 0 ? '' : formatPath(issue.path as Path);
  if (issue.code === 'invalid_key') return { field, message: `wants ${issue.issues[0]?.message}` };
  if (issue.code === 'invalid_format' && issue.format === 'datetime')
    return { field, message: 'wants a time such as 2027-01-31T00:00:00Z' };
  if (issue.code === 'invalid_format') return { field, message: `wants ${issue.message}` };
  return { field, message: issue.message };
}

/** In a file without a header, or with its columns mixed up, the name that is not known is a key. */
function unknownField(name: string): string {
  return `has a field that no key has${suggestion(name, FIELDS)}; there are ${FIELDS.join(', ')}`;
}
