/**
 * Versions of rule files, and which of them was in force when. A version never changes; putting one in force, a rollback included, is a
 * new activation with the next number.
 */
import type {
  AuthoredChange,
  Page,
  StoredActivation,
  StoredVersion,
  VersionSummary,
} from '../../policy/control.ts';

type Row<Fields> = { [Field in keyof Fields]: Fields[Field] } & Record<string, SqlStorageValue>;

const ACTIVATION = 'activation, version, activated_at_ms AS activatedAtMs, author, cause';

export class Versions {
  readonly #sql: SqlStorage;

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`CREATE TABLE IF NOT EXISTS versions (
      domain TEXT NOT NULL, version INTEGER NOT NULL, created_at_ms INTEGER NOT NULL, author TEXT NOT NULL, message TEXT NOT NULL,
      source TEXT NOT NULL, ruleset TEXT NOT NULL, warnings TEXT NOT NULL, PRIMARY KEY (domain, version))`);
    sql.exec(`CREATE TABLE IF NOT EXISTS activations (
      domain TEXT NOT NULL, activation INTEGER NOT NULL, version INTEGER NOT NULL, activated_at_ms INTEGER NOT NULL,
      author TEXT NOT NULL, cause TEXT NOT NULL, PRIMARY KEY (domain, activation))`);
  }

  add(version: Omit<StoredVersion, 'version'>): number {
    const { domain, createdAtMs, author, message, source, ruleset, warnings } = version;
    const { last } = this.#sql
      .exec<{ last: number }>(
        'SELECT coalesce(max(version), 0) AS last FROM versions WHERE domain = ?',
        domain,
      )
      .one();
    const number = last + 1;
    this.#sql.exec(
      'INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      ...[domain, number, createdAtMs, author, message, source, ruleset, warnings],
    );
    return number;
  }

  find(domain: string, version: number): StoredVersion | undefined {
    return this.#sql
      .exec<Row<StoredVersion>>(
        `SELECT domain, version, created_at_ms AS createdAtMs, author, message, source, ruleset, warnings
         FROM versions WHERE domain = ? AND version = ?`,
        domain,
        version,
      )
      .toArray()[0];
  }

  /** The newest first; those before `before`, where it is given. */
  list(domain: string, { before, limit }: Page): readonly VersionSummary[] {
    return this.#sql
      .exec<Row<VersionSummary>>(
        `SELECT version, created_at_ms AS createdAtMs, author, message FROM versions
         WHERE domain = ? AND version < ? ORDER BY version DESC LIMIT ?`,
        ...[domain, before, limit],
      )
      .toArray();
  }

  activate(
    domain: string,
    { version, cause, author, atMs }: Pick<StoredActivation, 'version' | 'cause'> & AuthoredChange,
  ): number {
    const activation = (this.active(domain)?.activation ?? 0) + 1;
    this.#sql.exec(
      'INSERT INTO activations VALUES (?, ?, ?, ?, ?, ?)',
      ...[domain, activation, version, atMs, author, cause],
    );
    return activation;
  }

  active(domain: string): StoredActivation | undefined {
    return this.activations(domain, 1)[0];
  }

  activation(domain: string, activation: number): StoredActivation | undefined {
    return this.#sql
      .exec<Row<StoredActivation>>(
        `SELECT ${ACTIVATION} FROM activations WHERE domain = ? AND activation = ?`,
        ...[domain, activation],
      )
      .toArray()[0];
  }

  /** The newest first. */
  activations(domain: string, limit: number): readonly StoredActivation[] {
    return this.#sql
      .exec<Row<StoredActivation>>(
        `SELECT ${ACTIVATION} FROM activations WHERE domain = ? ORDER BY activation DESC LIMIT ?`,
        ...[domain, limit],
      )
      .toArray();
  }

  /** The version that was in force before the present one. */
  before(domain: string): number | undefined {
    const present = this.active(domain);
    if (present === undefined) return undefined;
    return this.#sql
      .exec<{ version: number }>(
        'SELECT version FROM activations WHERE domain = ? AND version <> ? ORDER BY activation DESC LIMIT 1',
        ...[domain, present.version],
      )
      .toArray()[0]?.version;
  }
}
