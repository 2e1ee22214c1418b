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

/** A stored entry; one that is not as it should be is none. */
export function readEntry(text: string | null | undefined): KeyEntry | undefined {
  if (text === null || text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isEntry(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isEntry(value: unknown): value is KeyEntry {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { tier, org, user, labels, disabled, expiresAtMs } = value as Record<string, unknown>;
  return (
    [tier, org, user].every((text) => text === undefined || typeof text === 'string') &&
    (labels === undefined || isTexts(labels)) &&
    (disabled === undefined || typeof disabled === 'boolean') &&
    (expiresAtMs === undefined || typeof expiresAtMs === 'number')
  );
}

function isTexts(value: unknown): boolean {
  return (
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).every((text) => typeof text === 'string')
  );
}
