/**
 * What the control plane still has to tell others: KV, and owners. It is written in the transaction of the change that it is about, so
 * a change is never half made; and it is told until it arrives.
 *
 * Of KV's entries only the key stands here: what goes out is the entry as it is when it goes, so the newest always wins. A later word
 * about the same thing takes the place of an earlier one.
 */

const TARGETS = ['RULES', 'KEYS', 'OWNER'] as const;

export type Target = (typeof TARGETS)[number];

export interface Word {
  readonly target: Target;
  /** A KV key; or, as JSON, an owner's name and the caller that it is about. */
  readonly key: string;
  /** What an owner is told; `null` for KV. */
  readonly value: string | null;
}

interface Row extends Record<string, SqlStorageValue> {
  readonly seq: number;
  readonly target: Target;
  readonly key: string;
  readonly value: string | null;
}

/** Words that leave together: KV takes many keys at once, and a request of an object may make thousands of calls. */
const TOGETHER_MAX = 50;

export class Outbox {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS outbox (
      seq INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, key TEXT NOT NULL, value TEXT, UNIQUE (target, key))`);
  }

  get size(): number {
    return this.#sql.exec<{ size: number }>('SELECT count(*) AS size FROM outbox').one().size;
  }

  add({ target, key, value }: Word): void {
    this.#sql.exec('DELETE FROM outbox WHERE target = ? AND key = ?', target, key);
    this.#sql.exec('INSERT INTO outbox (target, key, value) VALUES (?, ?, ?)', target, key, value);
  }

  /** Every key of the directory, in one statement: of a namespace that was bound after there were keys. */
  addAllKeys(): void {
    this.#sql.exec("INSERT OR IGNORE INTO outbox (target, key) SELECT 'KEYS', sha256 FROM keys");
  }

  /**
   * Sends what there is, the oldest first, to each target by itself: one that does not answer keeps nothing from the others. Rules leave
   * one by one, so a head never before the activation that it names. What comes while some target is being told goes along. Answers why
   * something stayed, if it did.
   */
  async drain(send: (word: Word) => Promise<void>): Promise<string | undefined> {
    for (;;) {
      const failures = await Promise.all(TARGETS.map((target) => this.#drainTo(target, send)));
      const failure = failures.find((each) => each !== undefined);
      if (failure !== undefined || this.size === 0) return failure;
    }
  }

  async #drainTo(target: Target, send: (word: Word) => Promise<void>): Promise<string | undefined> {
    const together = target === 'RULES' ? 1 : TOGETHER_MAX;
    for (;;) {
      const rows = this.#sql
        .exec<Row>(
          'SELECT seq, target, key, value FROM outbox WHERE target = ? ORDER BY seq LIMIT ?',
          ...[target, together],
        )
        .toArray();
      if (rows.length === 0) return undefined;
      const results = await Promise.allSettled(rows.map((row) => send(row)));
      for (const [at, result] of results.entries()) {
        // Only this very word: a later one about the same thing has a number of its own.
        if (result.status === 'fulfilled') this.#sql.exec('DELETE FROM outbox WHERE seq = ?', rows[at]!.seq);
      }
      const failed = results.find((result) => result.status === 'rejected');
      if (failed !== undefined) return String(failed.reason);
    }
  }
}
