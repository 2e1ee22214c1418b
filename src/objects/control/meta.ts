/** The control plane's few numbers that belong to no row: by name, whole, 0 where nothing was written. */
export class Meta {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID');
  }

  get(name: string): number {
    const rows = this.#sql.exec<{ value: number }>('SELECT value FROM meta WHERE name = ?', name).toArray();
    return rows[0]?.value ?? 0;
  }

  set(name: string, value: number): void {
    this.#sql.exec('INSERT OR REPLACE INTO meta VALUES (?, ?)', name, value);
  }
}
