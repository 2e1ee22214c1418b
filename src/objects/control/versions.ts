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
import type { Texts } from './texts.ts';

type Row<Fields> = { [Field in keyof Fields]: Fields[Field] } & Record<string, SqlStorageValue>;

const ACTIVATION = 'activation, version, activated_at_ms AS activatedAtMs, author, cause';
const SUMMARY = 'version, created_at_ms AS createdAtMs, author, message';

/** Of a history, how far back a rollback looks. */
const HISTORY_MAX = 1_000;

export class Versions {
  readonly #sql: SqlStorage;
  readonly #texts: Texts;

  constructor(sql: SqlStorage, texts: Texts) {
    this.#sql = sql;
    this.#texts = texts;
    sql.exec(`CREATE TABLE IF NOT EXISTS versions (
      domain TEXT NOT NULL, version INTEGER NOT NULL, created_at_ms INTEGER NOT NULL, author TEXT NOT NULL, message TEXT NOT NULL,
      PRIMARY KEY (domain, version))`);
    sql.exec(`CREATE TABLE IF NOT EXISTS activations (
      domain TEXT NOT NULL, activation INTEGER NOT NULL, version INTEGER NOT NULL, activated_at_ms INTEGER NOT NULL,
      author TEXT NOT NULL, cause TEXT NOT NULL, PRIMARY KEY (domain, activation))`);
  }

  add({
    domain,
    createdAtMs,
    author,
    message,
    source,
    ruleset,
    warnings,
  }: Omit<StoredVersion, 'version'>): number {
    const { last } = this.#sql
      .exec<{ last: number }>(
        'SELECT coalesce(max(version), 0) AS last FROM versions WHERE domain = ?',
        domain,
      )
      .one();
    const version = last + 1;
    this.#sql.exec(
      'INSERT INTO versions VALUES (?, ?, ?, ?, ?)',
      ...[domain, version, createdAtMs, author, message],
    );
    this.#texts.add(textName('source', domain, version), source);
    this.#texts.add(textName('ruleset', domain, version), ruleset);
    this.#texts.add(textName('warnings', domain, version), warnings);
    return version;
  }

  has(domain: string, version: number): boolean {
    return this.#summary(domain, version) !== undefined;
  }

  find(domain: string, version: number): StoredVersion | undefined {
    const summary = this.#summary(domain, version);
    if (summary === undefined) return undefined;
    const text = (kind: string) => this.#texts.get(textName(kind, domain, version));
    return {
      ...summary,
      domain,
      source: text('source'),
      ruleset: text('ruleset'),
      warnings: text('warnings'),
    };
  }

  #summary(domain: string, version: number): VersionSummary | undefined {
    return this.#sql
      .exec<Row<VersionSummary>>(
        `SELECT ${SUMMARY} FROM versions WHERE domain = ? AND version = ?`,
        ...[domain, version],
      )
      .toArray()[0];
  }

  /** The newest first; those before `before`, where it is given. */
  list(domain: string, { before, limit }: Page): readonly VersionSummary[] {
    return this.#sql
      .exec<Row<VersionSummary>>(
        `SELECT ${SUMMARY} FROM versions WHERE domain = ? AND version < ? ORDER BY version DESC LIMIT ?`,
        ...[domain, before, limit],
      )
      .toArray();
  }

  /** `atLeast`: the number that it has is no smaller, for a control plane that has lost count. */
  activate(domain: string, { version, cause, author, atMs, atLeast = 0 }: NewActivation): number {
    const activation = Math.max((this.active(domain)?.activation ?? 0) + 1, atLeast);
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

  /** The version that was in force before the present one was put in force; what a rollback has undone does not count any more. */
  before(domain: string): number | undefined {
    const inForce: number[] = [];
    for (const { version, cause } of this.activations(domain, HISTORY_MAX).toReversed()) {
      if (cause === 'rollback') while (inForce.length > 0 && inForce.at(-1) !== version) inForce.pop();
      if (inForce.at(-1) !== version) inForce.push(version);
    }
    return inForce.at(-2);
  }
}

export interface NewActivation extends AuthoredChange, Pick<StoredActivation, 'version' | 'cause'> {
  readonly atLeast?: number | undefined;
}

function textName(kind: string, domain: string, version: number): string {
  return `${kind}:${domain}:${version}`;
}
