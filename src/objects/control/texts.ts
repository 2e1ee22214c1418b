/**
 * Texts that may be larger than a row: in parts, each well below the 2 MB that a row may have, whatever its characters are.
 */

/** At most three bytes each. */
const PART_CHARACTERS = 500_000;

export class Texts {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS texts (
      name TEXT NOT NULL, part INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID`);
  }

  /** A text is written once. */
  add(name: string, text: string): void {
    for (let part = 0; part * PART_CHARACTERS < text.length; part += 1) {
      const start = part * PART_CHARACTERS;
      this.#sql.exec(
        'INSERT INTO texts VALUES (?, ?, ?)',
        name,
        part,
        text.slice(start, start + PART_CHARACTERS),
      );
    }
  }

  get(name: string): string {
    const rows = this.#sql.exec<{ text: string }>(
      'SELECT text FROM texts WHERE name = ? ORDER BY part',
      name,
    );
    return rows
      .toArray()
      .map(({ text }) => text)
      .join('');
  }
}
