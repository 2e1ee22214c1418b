/** The key directory: what each key stands for, by the key's SHA-256. */
import type { StoredKey } from '../../policy/control.ts';
import type { KeyEntry } from '../../policy/directory.ts';

interface Row extends Record<string, SqlStorageValue> {
  readonly sha256: string;
  readonly entry: string;
}

export class KeyStore {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec('CREATE TABLE IF NOT EXISTS keys (sha256 TEXT PRIMARY KEY, entry TEXT NOT NULL) WITHOUT ROWID');
  }

  get isEmpty(): boolean {
    return this.#sql.exec('SELECT 1 FROM keys LIMIT 1').toArray().length === 0;
  }

  put({ keySha256, entry }: StoredKey): void {
    this.#sql.exec('INSERT OR REPLACE INTO keys VALUES (?, ?)', keySha256, JSON.stringify(entry));
  }

  /** The entry as it is stored; `null` where there is none. */
  text(keySha256: string): string | null {
    return (
      this.#sql.exec<Row>('SELECT sha256, entry FROM keys WHERE sha256 = ?', keySha256).toArray()[0]?.entry ??
      null
    );
  }

  /** True when it was there. */
  remove(keySha256: string): boolean {
    return this.#sql.exec('DELETE FROM keys WHERE sha256 = ? RETURNING 1', keySha256).toArray().length > 0;
  }

  /** In order of their hashes, those after `after`. */
  list({ after, limit }: { after: string; limit: number }): readonly StoredKey[] {
    return this.#sql
      .exec<Row>('SELECT sha256, entry FROM keys WHERE sha256 > ? ORDER BY sha256 LIMIT ?', after, limit)
      .toArray()
      .map(({ sha256, entry }) => ({ keySha256: sha256, entry: JSON.parse(entry) as KeyEntry }));
  }
}
