/**
 * Clamps that are in force, by domain and caller. Each change has a larger revision than all before it.
 */
import type { Clamp } from '../../policy/clamp.ts';
import type { NewClamp, StoredClamp } from '../../policy/control.ts';
import { encodePairs, type Pairs } from '../../policy/counter.ts';
import type { Meta } from './meta.ts';

interface Row extends Record<string, SqlStorageValue> {
  readonly clamp: string;
  readonly owner: string;
  /** As JSON. */
  readonly regionalOwners: string;
  readonly author: string;
  readonly atMs: number;
}

export class ClampStore {
  readonly #sql: SqlStorage;
  readonly #meta: Meta;

  constructor(sql: SqlStorage, meta: Meta) {
    this.#sql = sql;
    this.#meta = meta;
    sql.exec(`CREATE TABLE IF NOT EXISTS clamps (
      revision INTEGER PRIMARY KEY, domain TEXT NOT NULL, caller TEXT NOT NULL, until_ms INTEGER NOT NULL,
      clamp TEXT NOT NULL, owner TEXT NOT NULL, author TEXT NOT NULL, at_ms INTEGER NOT NULL,
      regional_owners TEXT NOT NULL DEFAULT '[]', UNIQUE (domain, caller))`);
    // A table that was made before there were regions.
    const columns = sql.exec<{ name: string }>('PRAGMA table_info(clamps)').toArray();
    if (!columns.some(({ name }) => name === 'regional_owners'))
      sql.exec("ALTER TABLE clamps ADD COLUMN regional_owners TEXT NOT NULL DEFAULT '[]'");
  }

  /** Takes the place of an earlier one about the same caller; one that was lifted leaves no row behind. */
  put(wanted: NewClamp): Clamp {
    const { domain, pairs, action, limit, untilMs, owner, regionalOwners = [], author, atMs } = wanted;
    const caller = encodePairs(pairs);
    // Never below the time, so that a control plane that has lost its storage does not count again what owners have heard already.
    const revision = Math.max(this.revision + 1, atMs);
    this.#meta.set('revision', revision);
    const clamp: Clamp = { domain, pairs, action, ...(limit && { limit }), untilMs, revision };
    this.#sql.exec('DELETE FROM clamps WHERE domain = ? AND caller = ?', domain, caller);
    if (action !== 'none')
      this.#sql.exec(
        'INSERT INTO clamps VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)',
        ...[revision, domain, caller, untilMs, JSON.stringify(clamp), owner, author, atMs],
        JSON.stringify(regionalOwners),
      );
    return clamp;
  }

  find(domain: string, pairs: Pairs, nowMs: number): StoredClamp | undefined {
    const caller = encodePairs(pairs);
    return this.list(domain, nowMs).find(({ clamp }) => encodePairs(clamp.pairs) === caller);
  }

  /** The oldest first. */
  list(domain: string, nowMs: number): readonly StoredClamp[] {
    return this.#sql
      .exec<Row>(
        `SELECT clamp, owner, author, at_ms AS atMs, regional_owners AS regionalOwners FROM clamps WHERE domain = ? AND until_ms > ? ORDER BY revision`,
        ...[domain, nowMs],
      )
      .toArray()
      .map(({ clamp, regionalOwners, ...row }) => ({
        ...row,
        clamp: JSON.parse(clamp) as Clamp,
        regionalOwners: JSON.parse(regionalOwners) as readonly string[],
      }));
  }

  /** The newest revision that was given. */
  get revision(): number {
    return this.#meta.get('revision');
  }

  sweep(nowMs: number): void {
    this.#sql.exec('DELETE FROM clamps WHERE until_ms <= ?', nowMs);
  }
}
