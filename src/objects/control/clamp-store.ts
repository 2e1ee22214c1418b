/**
 * Clamps that are in force, by domain and caller. Each change has the next revision of all changes of this control plane.
 */
import type { Clamp } from '../../policy/clamp.ts';
import type { NewClamp, StoredClamp } from '../../policy/control.ts';
import { encodePairs, type Pairs } from '../../policy/counter.ts';

interface Row extends Record<string, SqlStorageValue> {
  readonly clamp: string;
  readonly owner: string;
  readonly author: string;
  readonly atMs: number;
}

export class ClampStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS clamps (
      revision INTEGER PRIMARY KEY AUTOINCREMENT, domain TEXT NOT NULL, caller TEXT NOT NULL, until_ms INTEGER NOT NULL,
      clamp TEXT NOT NULL, owner TEXT NOT NULL, author TEXT NOT NULL, at_ms INTEGER NOT NULL, UNIQUE (domain, caller))`);
  }

  /** Takes the place of an earlier one about the same caller; one that was lifted leaves no row behind. */
  put({ domain, pairs, action, limit, untilMs, owner, author, atMs }: NewClamp): Clamp {
    const caller = encodePairs(pairs);
    this.#sql.exec('DELETE FROM clamps WHERE domain = ? AND caller = ?', domain, caller);
    const { revision } = this.#sql
      .exec<{ revision: number }>(
        `INSERT INTO clamps (domain, caller, until_ms, clamp, owner, author, at_ms) VALUES (?, ?, ?, '', ?, ?, ?)
         RETURNING revision`,
        ...[domain, caller, untilMs, owner, author, atMs],
      )
      .one();
    const clamp: Clamp = { domain, pairs, action, ...(limit && { limit }), untilMs, revision };
    if (action === 'none') this.#sql.exec('DELETE FROM clamps WHERE revision = ?', revision);
    else this.#sql.exec('UPDATE clamps SET clamp = ? WHERE revision = ?', JSON.stringify(clamp), revision);
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
        `SELECT clamp, owner, author, at_ms AS atMs FROM clamps WHERE domain = ? AND until_ms > ? ORDER BY revision`,
        ...[domain, nowMs],
      )
      .toArray()
      .map(({ clamp, ...row }) => ({ ...row, clamp: JSON.parse(clamp) as Clamp }));
  }

  /** The newest revision that was given; SQLite remembers it when the row is gone. */
  get revision(): number {
    const rows = this.#sql
      .exec<{ seq: number }>("SELECT seq FROM sqlite_sequence WHERE name = 'clamps'")
      .toArray();
    return rows[0]?.seq ?? 0;
  }

  sweep(nowMs: number): void {
    this.#sql.exec('DELETE FROM clamps WHERE until_ms <= ?', nowMs);
  }
}
