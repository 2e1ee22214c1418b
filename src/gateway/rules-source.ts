/**
 * The rules of one domain as this isolate has them, and how it learns of newer ones.
 *
 * Promise: no request waits for rules. Requests are served from the snapshot in hand; a refresh happens beside them, and what it brings
 * is taken whole or not at all. A source that is down, slow, empty or corrupt, or that offers what is older or another domain's, changes
 * nothing but a counter and, once, a line in the log.
 */
import {
  type Activated,
  type HeldRules,
  type Read,
  type Refusal,
  readActivation,
  readHead,
} from '../policy/activation.ts';
import type { Clamp } from '../policy/clamp.ts';
import type { Version } from '../policy/ruleset.ts';
import { publishedSnapshot, type Snapshot } from './snapshot.ts';

/** Where heads and activations are read from, as they were written; `null` for what is not there. */
export interface RulesStore {
  head(domain: string): Promise<string | null>;
  activation(domain: string, activation: number): Promise<string | null>;
}

export interface RulesPorts {
  /** The first that has what is asked for answers. */
  readonly stores: readonly RulesStore[];
  readonly seed: string;
  readonly sha256: (text: string) => Promise<string>;
  /** Rejects when the promise has not settled in time. */
  /** A source that takes longer is as good as down. Nobody waits for it but the refresh itself. */
  readonly fetchMsMax: number;
  readonly within: <Value>(promise: Promise<Value>, limitMs: number) => Promise<Value>;
  /** One of the stores did not answer; another may have. */
  readonly onStoreFailed: () => void;
  /** What was offered was refused, or nothing could be fetched. */
  readonly onRefused: (reason: Refusal | 'unreachable') => void;
  /** What was denied before may be allowed now. */
  readonly onClampsChanged: () => void;
  /** Something changed that is worth a line. */
  readonly onChanged: (event: RulesEvent) => void;
}

export type RulesEvent =
  | { readonly event: 'rules_activated'; readonly domain: string; readonly activation: number }
  | { readonly event: 'rules_source_failing'; readonly domain: string; readonly reason: string }
  | { readonly event: 'rules_source_recovered'; readonly domain: string };

/** Two stores, each asked for a head and an activation; a refresh that takes longer went with the request that it was of. */
const FETCHES_MAX = 4;

export class RulesSource {
  readonly #ports: RulesPorts;
  #snapshot: Snapshot;
  #hasKeys: boolean;
  /** Why the last refresh brought nothing; `undefined` when it went well. */
  #problem: string | undefined;
  /** The newest activation that an owner has named. */
  #named = 0;
  #isNews = false;
  #refreshingUntilMs = Number.NEGATIVE_INFINITY;

  constructor(bundled: Snapshot, ports: RulesPorts) {
    this.#snapshot = bundled;
    // Until a head says otherwise there may be keys.
    this.#hasKeys = ports.stores.length > 0;
    this.#ports = ports;
  }

  get snapshot(): Snapshot {
    return this.#snapshot;
  }

  /** Whether the key directory may hold a key, as far as is known. */
  get hasKeys(): boolean {
    return this.#hasKeys;
  }

  /** An owner has told of something that the next refresh will bring, so it should be soon. */
  get isNews(): boolean {
    return this.#isNews;
  }

  /** What an owner's reply says: of newer rules the number, of clamps all there is to know. */
  heard({ activation }: Version, clamps: readonly Clamp[] = []): void {
    if (activation > Math.max(this.#snapshot.version.activation, this.#named)) {
      this.#named = activation;
      this.#isNews = true;
    }
    const own = clamps.filter(({ domain }) => domain === this.#held.domain);
    const isNews = own.map((clamp) => this.#snapshot.clamps.learn(clamp)).includes(true);
    if (isNews) this.#ports.onClampsChanged();
  }

  /** Never rejects. One at a time: whoever comes while another is under way has it done again afterwards. `nowMs` is time that passes. */
  async refresh({ nowMs, wallMs }: { nowMs: number; wallMs: number }): Promise<void> {
    if (this.#ports.stores.length === 0) return;
    this.#isNews = nowMs < this.#refreshingUntilMs;
    if (this.#isNews) return;
    this.#refreshingUntilMs = nowMs + FETCHES_MAX * this.#ports.fetchMsMax;
    this.#snapshot.clamps.sweep(wallMs);
    try {
      const problem = await this.#refresh();
      this.#note(problem);
    } catch (error) {
      this.#note('unreachable', error);
    } finally {
      this.#refreshingUntilMs = Number.NEGATIVE_INFINITY;
    }
  }

  get #held(): HeldRules {
    return { domain: this.#snapshot.ruleset.domain, version: this.#snapshot.version };
  }

  async #refresh(): Promise<Refusal | undefined> {
    const held = this.#held;
    const { domain } = held;
    const named = this.#named;
    const read = await this.#first(
      (store) => store.head(domain),
      (text) => Promise.resolve(readHead(text, this.#held)),
      (head) => head.activation >= named,
    );
    // Nothing was ever published: the bundled rules are what there is.
    if ('refused' in read && read.refused === 'missing' && held.version.activation === 0 && named === 0)
      return undefined;
    if ('refused' in read) return read.refused;
    const head = read.value;
    this.#hasKeys = head.hasKeys;
    if (this.#snapshot.clamps.adopt(head.clamps, head.revision)) this.#ports.onClampsChanged();
    const newest = Math.max(head.activation, named);
    if (newest <= held.version.activation) return undefined;
    const document = await this.#first(
      (store) => store.activation(domain, newest),
      (text) => readActivation(text, this.#held, this.#ports.sha256),
      () => true,
    );
    if ('refused' in document) {
      // Named by an owner and nowhere to be found: it is looked for again when it is named again.
      this.#named = 0;
      return document.refused;
    }
    this.#adopt(document.value);
    return undefined;
  }

  /** Asks one store after the other, until one answers with something that can be taken and is as new as it should be. */
  async #first<Value>(
    fetch: (store: RulesStore) => Promise<string | null>,
    read: (text: string | null) => Promise<Read<Value>>,
    isEnough: (value: Value) => boolean,
  ): Promise<Read<Value>> {
    let best: Read<Value> | undefined;
    let failure: unknown;
    for (const store of this.#ports.stores) {
      try {
        const found = await read(await this.#ports.within(fetch(store), this.#ports.fetchMsMax));
        if (best === undefined || 'value' in found) best = found;
        if ('value' in found && isEnough(found.value)) return found;
      } catch (error) {
        failure = error;
        this.#ports.onStoreFailed();
      }
    }
    if (best === undefined) throw failure;
    return best;
  }

  #adopt(activated: Activated): void {
    const { seed, onChanged } = this.#ports;
    this.#snapshot = publishedSnapshot(activated, { seed, clamps: this.#snapshot.clamps });
    const { activation } = activated.version;
    onChanged({ event: 'rules_activated', domain: activated.ruleset.domain, activation });
  }

  #note(problem: Refusal | 'unreachable' | undefined, error?: unknown): void {
    const { domain } = this.#held;
    if (problem !== undefined) this.#ports.onRefused(problem);
    if (problem === this.#problem) return;
    this.#problem = problem;
    const reason = error === undefined ? problem : `${problem}: ${String(error)}`;
    this.#ports.onChanged(
      reason === undefined
        ? { event: 'rules_source_recovered', domain }
        : { event: 'rules_source_failing', domain, reason },
    );
  }
}
