/**
 * The key directory's entries: what a key stands for. Keys are known by their SHA-256 alone.
 */

export interface KeyEntry {
  readonly tier?: string;
  readonly org?: string;
  readonly user?: string;
  /** More facts about the caller; rules see `labels.plan` as the attribute `label_plan`. */
  readonly labels?: Readonly<Record<string, string>>;
  /** As good as unknown: its caller is counted like one without a key. */
  readonly disabled?: boolean;
  /** From then on the key is as good as unknown; milliseconds since the Unix epoch. */
  readonly expiresAtMs?: number;
}

/** What begins so is a label of the directory: no client can write it, and no rule file declares it. */
export const LABEL_PREFIX = 'label_';

/** The name of an attribute that labels can have. */
export function isLabelAttribute(attribute: string): boolean {
  return attribute.startsWith(LABEL_PREFIX) && /^label_[a-z0-9_]{1,64}$/.test(attribute);
}

/** The attributes of whoever shows this key; `undefined` when it stands for nobody now. */
export function attributesOf(entry: KeyEntry, nowMs: number): Readonly<Record<string, string>> | undefined {
  const { tier, org, user, labels = {}, disabled = false, expiresAtMs } = entry;
  if (disabled || (expiresAtMs !== undefined && nowMs >= expiresAtMs)) return undefined;
  const attributes: Record<string, string> = {};
  if (tier !== undefined) attributes.tier = tier;
  if (org !== undefined) attributes.org = org;
  if (user !== undefined) attributes.user = user;
  for (const [name, value] of Object.entries(labels)) attributes[LABEL_PREFIX + name] = value;
  return attributes;
}

/** A stored entry, as far as it can be read. */
export function readEntry(text: string | null | undefined): KeyEntry | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as KeyEntry) : undefined;
  } catch {
    return undefined;
  }
}
