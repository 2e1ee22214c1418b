/** The key directory through the admin API. Raw keys are hashed at this door; nothing behind it has ever seen one. */
import type { KeyChange, StoredKey } from '../policy/control.ts';
import type { KeyEntry } from '../policy/directory.ts';
import { sha256 } from '../policy/sha256.ts';
import type { KeyBody, KeyName } from './schemas.ts';

/** One body, or a list of them. */
export function listed<Item extends object>(
  body: Item | { readonly keys: readonly Item[] },
): readonly Item[] {
  return 'keys' in body ? body.keys : [body];
}

export function hashOf({ key, keySha256 }: KeyName): string {
  return keySha256 ?? sha256(`${key}`);
}

export function changeOf(body: KeyBody): KeyChange {
  const { tier, org, user, labels, disabled, expiresAt } = body;
  const entry: KeyEntry = {
    ...(tier !== undefined && { tier }),
    ...(org !== undefined && { org }),
    ...(user !== undefined && { user }),
    ...(labels !== undefined && { labels }),
    ...(disabled !== undefined && { disabled }),
    ...(expiresAt !== undefined && { expiresAtMs: Date.parse(expiresAt) }),
  };
  return { keySha256: hashOf(body), entry };
}

export function shown({ keySha256, entry }: StoredKey) {
  const { expiresAtMs, ...rest } = entry;
  return {
    keySha256,
    ...rest,
    ...(expiresAtMs !== undefined && { expiresAt: new Date(expiresAtMs).toISOString() }),
  };
}
