/**
 * The Durable Object behind the admin API: versions of rules and which is in force, clamps, the key directory, and who changed what.
 *
 * Promise: a change is whole or not at all. What is stored, and what others have still to be told of it, is one transaction; the telling
 * (KV, owners) follows at once, and again until it has arrived. Isolates ask here for what KV does not have. A version is compiled by the
 * same code as `limiter validate`, and one with errors is never stored.
 */

import { DurableObject } from 'cloudflare:workers';
import { BoundedMap } from '../engine/bounded-map.ts';
import {
  ACTIVATION_FORMAT,
  type ActivationDocument,
  activationKey,
  type Head,
  headKey,
} from '../policy/activation.ts';
import { CLAMPS_MAX } from '../policy/clamp.ts';
import { compile } from '../policy/compile.ts';
import type {
  ActivationProblem,
  ActivationWish,
  AuditEntry,
  Clamped,
  ControlApi,
  KeyChange,
  NewClamp,
  Page,
  Publication,
  Published,
  StoredClamp,
  StoredKey,
  StoredVersion,
  VersionList,
} from '../policy/control.ts';
import type { Pairs } from '../policy/counter.ts';
import { RULESET_FORMAT, type Ruleset } from '../policy/ruleset.ts';
import { sha256 } from '../policy/sha256.ts';
import { logEvent } from '../telemetry/log.ts';
import { Audit } from './control/audit.ts';
import { ClampStore } from './control/clamp-store.ts';
import { KeyStore } from './control/key-store.ts';
import { Meta } from './control/meta.ts';
import { Outbox } from './control/outbox.ts';
import { Telling, type Told } from './control/telling.ts';
import { Texts } from './control/texts.ts';
import { type NewActivation, Versions } from './control/versions.ts';

const LISTED_ACTIVATIONS = 100;

/** Of an import, so many keys stand in the audit log. */
const AUDITED_KEYS_MAX = 20;

/** Heads are asked for every second or so; whoever asks for more domains than this has theirs put together each time. */
const HEADS_MAX = 1_000;

export class ControlPlane extends DurableObject implements ControlApi {
  readonly #bindings: Told;
  readonly #meta: Meta;
  readonly #versions: Versions;
  readonly #clamps: ClampStore;
  readonly #keys: KeyStore;
  readonly #audit: Audit;
  readonly #outbox: Outbox;
  readonly #heads = new BoundedMap<string>(HEADS_MAX);
  readonly #telling: Telling;

  constructor(state: DurableObjectState, env: Cloudflare.Env) {
    super(state, env);
    this.#bindings = env as unknown as Told;
    const { sql } = state.storage;
    this.#meta = new Meta(sql);
    this.#versions = new Versions(sql, new Texts(sql));
    this.#clamps = new ClampStore(sql, this.#meta);
    this.#keys = new KeyStore(sql);
    this.#audit = new Audit(sql);
    this.#outbox = new Outbox(sql);
    this.#telling = new Telling({
      storage: state.storage,
      outbox: this.#outbox,
      told: this.#bindings,
      entryOf: (target, key) => (target === 'KEYS' ? this.#keys.text(key) : this.#ruleEntry(key)),
    });
    sql.exec('CREATE TABLE IF NOT EXISTS domains (domain TEXT PRIMARY KEY) WITHOUT ROWID');
    state.storage.transactionSync(() => this.#noteBindings());
    // What an earlier life of this object has not told.
    this.#telling.expect();
  }

  /** What is in force in a domain; also of one that nothing was ever published for. */
  async head(domain: string): Promise<string> {
    const known = this.#heads.get(domain);
    if (known !== undefined) return known;
    const head = JSON.stringify(this.#headOf(domain, Date.now()));
    this.#heads.set(domain, head);
    return head;
  }

  async activation(domain: string, activation: number): Promise<string | null> {
    return this.#documentOf(domain, activation);
  }

  /** A key's entry; `null` where there is none. */
  async key(hash: string): Promise<string | null> {
    return this.#keys.text(hash);
  }

  async publish({
    domain,
    rules,
    ruleset,
    warnings,
    message,
    author,
    activate,
  }: Publication): Promise<Published> {
    const nowMs = Date.now();
    const published = this.#change(domain, () => {
      const version = this.#versions.add({
        domain,
        createdAtMs: nowMs,
        author,
        message,
        source: JSON.stringify(rules),
        ruleset: JSON.stringify(ruleset),
        warnings: JSON.stringify(warnings),
      });
      this.#audit.add({ author, atMs: nowMs }, 'publish', { domain, version, message });
      if (!activate) return { version };
      return { version, activation: this.#activate(domain, { version, author, cause: 'publish' }) };
    });
    await this.#telling.tell();
    return published;
  }

  async activate(domain: string, version: number, wish: ActivationWish): Promise<number | ActivationProblem> {
    if (!this.#versions.has(domain, version)) return 'no_such_version';
    const activation = this.#change(domain, () =>
      this.#activate(domain, { version, cause: 'activate', ...wish }),
    );
    await this.#telling.tell();
    return activation;
  }

  /** Puts the version in force that was in force before the present one. */
  async rollback(
    domain: string,
    author: string,
  ): Promise<{ activation: number; version: number } | ActivationProblem> {
    const version = this.#versions.before(domain);
    if (version === undefined) return 'nothing_before';
    const activation = this.#change(domain, () =>
      this.#activate(domain, { version, author, cause: 'rollback' }),
    );
    await this.#telling.tell();
    return { activation, version };
  }

  async versions(domain: string, page: Page): Promise<VersionList> {
    return {
      active: this.#versions.active(domain),
      versions: this.#versions.list(domain, page),
      activations: this.#versions.activations(domain, LISTED_ACTIVATIONS),
    };
  }

  async version(domain: string, version: number): Promise<StoredVersion | undefined> {
    return this.#versions.find(domain, version);
  }

  /** Sets a clamp, or lifts one (`none`). Answers what has not been told yet, or that there are too many. */
  async clamp(wanted: NewClamp): Promise<Clamped> {
    const { domain, pairs, author, atMs, action, owner } = wanted;
    this.#clamps.sweep(atMs);
    const others = this.#clamps.list(domain, atMs).length;
    if (action !== 'none' && others >= CLAMPS_MAX) return 'too_many';
    // Whoever was told of an earlier one has to hear of this too, whatever the rules say of regions by now.
    const earlier = this.#clamps.find(domain, pairs, atMs)?.regionalOwners ?? [];
    const regionalOwners = [...new Set([...(wanted.regionalOwners ?? []), ...earlier])];
    const clamp = this.#change(domain, () => {
      const made = this.#clamps.put({ ...wanted, regionalOwners });
      this.#audit.add({ author, atMs }, action === 'none' ? 'unclamp' : 'clamp', { ...made });
      for (const each of [owner, ...regionalOwners]) this.#outbox.add(Telling.word(each, made));
      return made;
    });
    logEvent({
      event: action === 'none' ? 'clamp_lifted' : 'clamp_set',
      owner,
      action,
      untilMs: clamp.untilMs,
    });
    return { clamp, untold: await this.#telling.tell() };
  }

  async clamps(domain: string): Promise<readonly StoredClamp[]> {
    return this.#clamps.list(domain, Date.now());
  }

  async findClamp(domain: string, pairs: Pairs): Promise<StoredClamp | undefined> {
    return this.#clamps.find(domain, pairs, Date.now());
  }

  /** `entry` absent: the key is removed. Answers how many there were to remove. */
  async putKeys(changes: readonly KeyChange[], author: string): Promise<{ removed: number }> {
    const wasEmpty = this.#keys.isEmpty;
    let removed = 0;
    this.ctx.storage.transactionSync(() => {
      for (const { keySha256, entry } of changes) {
        if (entry !== undefined) this.#keys.put({ keySha256, entry });
        else if (this.#keys.remove(keySha256)) removed += 1;
        if (this.#bindings.KEYS !== undefined)
          this.#outbox.add({ target: 'KEYS', key: keySha256, value: null });
      }
      const hashes = changes.map(({ keySha256 }) => keySha256);
      const detail = { keys: hashes.length, first: hashes.slice(0, AUDITED_KEYS_MAX) };
      const action = changes[0]?.entry === undefined ? 'revoke_keys' : 'put_keys';
      this.#audit.add({ author, atMs: Date.now() }, action, detail);
      if (wasEmpty !== this.#keys.isEmpty) this.#renewHeads();
      this.#telling.expect();
    });
    await this.#telling.tell();
    return { removed };
  }

  async keys(page: { after: string; limit: number }): Promise<readonly StoredKey[]> {
    return this.#keys.list(page);
  }

  async audit(page: Page): Promise<readonly AuditEntry[]> {
    return this.#audit.list(page);
  }

  async note(author: string, action: string, detail: Readonly<Record<string, unknown>>): Promise<void> {
    this.#audit.add({ author, atMs: Date.now() }, action, detail);
  }

  override async alarm(): Promise<void> {
    this.#clamps.sweep(Date.now());
    await this.#telling.drain();
  }

  #activate(domain: string, change: Omit<NewActivation, 'atMs'>): number {
    const atMs = Date.now();
    const activation = this.#versions.activate(domain, { ...change, atMs });
    const { version, author, cause } = change;
    this.#audit.add({ author, atMs }, 'activate', { domain, version, cause, activation });
    logEvent({ event: 'rules_put_in_force', domain, version, author, cause, activation });
    return activation;
  }

  /** KV that is bound later than there was something to tell is told all of it. */
  #noteBindings(): void {
    for (const target of ['RULES', 'KEYS'] as const) {
      const isBound = Number(this.#bindings[target] !== undefined);
      if (this.#meta.get(`bound ${target}`) === isBound) continue;
      this.#meta.set(`bound ${target}`, isBound);
      if (isBound === 0) continue;
      if (target === 'KEYS') this.#outbox.addAllKeys();
      else this.#renewHeads();
    }
  }

  /** What KV should hold under this key. */
  #ruleEntry(key: string): string | null {
    const [, domain, activation] = /^activation:(.*):(\d+)$/s.exec(key) ?? [];
    if (domain !== undefined) return this.#documentOf(domain, Number(activation));
    return JSON.stringify(this.#headOf(key.slice(headKey('').length), Date.now()));
  }

  /** A change of one domain, with all that has to be told of it, in one transaction. */
  #change<Value>(domain: string, make: () => Value): Value {
    return this.ctx.storage.transactionSync(() => {
      this.ctx.storage.sql.exec('INSERT OR IGNORE INTO domains VALUES (?)', domain);
      const value = make();
      this.#renewHead(domain);
      this.#telling.expect();
      return value;
    });
  }

  #renewHeads(): void {
    const domains = this.ctx.storage.sql.exec<{ domain: string }>('SELECT domain FROM domains').toArray();
    this.#heads.clear();
    for (const { domain } of domains) this.#renewHead(domain);
  }

  /** The activation in force goes first, and again whenever its head does: it is one write more than would do. */
  #renewHead(domain: string): void {
    this.#heads.delete(domain);
    if (this.#bindings.RULES === undefined) return;
    const active = this.#versions.active(domain);
    if (active !== undefined)
      this.#outbox.add({ target: 'RULES', key: activationKey(domain, active.activation), value: null });
    this.#outbox.add({ target: 'RULES', key: headKey(domain), value: null });
  }

  #headOf(domain: string, nowMs: number): Head {
    return {
      format: ACTIVATION_FORMAT,
      domain,
      activation: this.#versions.active(domain)?.activation ?? 0,
      revision: this.#clamps.revision,
      clamps: this.#clamps.list(domain, nowMs).map(({ clamp }) => clamp),
      hasKeys: !this.#keys.isEmpty,
    };
  }

  #documentOf(domain: string, activation: number): string | null {
    const activated = this.#versions.activation(domain, activation);
    const version = activated && this.#versions.find(domain, activated.version);
    if (activated === undefined || version === undefined) return null;
    const ruleset = inPresentFormat(version);
    const document: ActivationDocument = {
      format: ACTIVATION_FORMAT,
      domain,
      activation,
      version: activated.version,
      activatedAtMs: activated.activatedAtMs,
      digest: sha256(ruleset),
      ruleset,
    };
    return JSON.stringify(document);
  }
}

/** A version that was compiled by other code is compiled again: it was valid then. */
function inPresentFormat({ source, ruleset }: StoredVersion): string {
  const { format, builtAtMs } = JSON.parse(ruleset) as Ruleset;
  if (format === RULESET_FORMAT) return ruleset;
  const compiled = compile(JSON.parse(source), { sha256, builtAtMs });
  return compiled.ok ? JSON.stringify(compiled.ruleset) : ruleset;
}
