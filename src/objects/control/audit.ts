/**
 * Who changed what, and when. Entries hold names and numbers and no secret: keys stand in them as hashes.
 */
import type { AuditEntry, AuthoredChange, Page } from '../../policy/control.ts';

/** Years of an operator's work. */
const ENTRIES_MAX = 100_000;

export class Audit {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS audit (
      id INTEGER PRIMARY KEY AUTOINCREMENT, at_ms INTEGER NOT NULL, author TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL)`);
  }

  add({ author, atMs }: AuthoredChange, action: string, detail: Readonly<Record<string, unknown>>): void {
    this.#sql.exec(
      'INSERT INTO audit (at_ms, author, action, detail) VALUES (?, ?, ?, ?)',
      ...[atMs, author, action, JSON.stringify(detail)],
    );
    this.#sql.exec('DELETE FROM audit WHERE id <= (SELECT max(id) FROM audit) - ?', ENTRIES_MAX);
  }

  /** The newest first. */
  list({ before, limit }: Page): readonly AuditEntry[] {
    return this.#sql
      .exec<AuditEntry & Record<string, SqlStorageValue>>(
        'SELECT id, at_ms AS atMs, author, action, detail FROM audit WHERE id < ? ORDER BY id DESC LIMIT ?',
        ...[before, limit],
      )
      .toArray();
  }
}
