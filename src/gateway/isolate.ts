/**
 * Everything that an isolate has beside its requests: the rules of its domains, the key directory, what it counts, and the beat that
 * keeps them going. It is made once, by the first request, from the Worker's bindings.
 *
 * Nothing here is waited for by a request but a key that is not cached. What is not bound is done without: without a control plane the
 * bundled rules stand, and without a hub or a dataset counts stay where they are.
 */
import { advance, startClock } from '../core/clock.ts';
import { BoundedMap } from '../engine/bounded-map.ts';
import type { Background } from '../engine/ports.ts';
import type { Clamp } from '../policy/clamp.ts';
import { readEntry } from '../policy/directory.ts';
import { REGION_UNKNOWN, type Region } from '../policy/region.ts';
import { RULESET_FORMAT, type Ruleset } from '../policy/ruleset.ts';
import { pointsOf } from '../telemetry/analytics.ts';
import type { MetricsBatch } from '../telemetry/batch.ts';
import { logEvent } from '../telemetry/log.ts';
import { Metrics } from '../telemetry/metrics.ts';
import { Beat } from './beat.ts';
import { Domain } from './domain.ts';
import { type LookUp, sha256 } from './identify.ts';
import { KeyDirectory } from './key-directory.ts';
import { type Limiter, platformTimer, stubOf } from './limiter.ts';
import type { LimiterBindings } from './limiter-env.ts';
import type { LimiterServices } from './rate-limit.ts';
import { Recorder } from './recorder.ts';
import { type ControlStub, controlStore, kvStore } from './rules-stores.ts';
import { bundledSnapshot, type Snapshot, seedOf } from './snapshot.ts';

export interface IsolateBindings extends LimiterBindings {
  /** The control plane's object. Without it the bundled rules stand for good. */
  readonly CONTROL?: DurableObjectNamespace;
  /** Where published rules and keys are read from before the control plane is asked. */
  readonly RULES?: KVNamespace;
  readonly KEYS?: KVNamespace;
  readonly METRICS?: DurableObjectNamespace;
  readonly ANALYTICS?: AnalyticsEngineDataset;
  /** Takes requests as they were decided, by POST, as JSON lines: what `limiter replay` reads. */
  readonly RECORDER?: Fetcher;
  /** How often rules are refreshed and counts handed on; whole seconds. */
  readonly REFRESH_SECONDS?: string;
  /** Spreads invented values over the shared owners; a secret, so that nobody can aim at a neighbour's owner. */
  readonly OWNER_SEED?: string;
}

/** Just within the thirty seconds for which a request's `waitUntil` keeps a beat alive. */
const REFRESH_SECONDS = 25;

/** KV keeps what it has read for at least this long, so a changed entry is seen no sooner. */
const KV_CACHE_SECONDS = 30;

/** Services of other domains than the gateway's own ask here; each has a table of buckets of its own. */
const OTHER_DOMAINS_MAX = 16;

/** Rules are refreshed again after an interval, so there is no use in waiting for longer than one. */
const FETCH_MS_MAX = 5_000;

/** A hub that takes longer gets the same batch again with the next beat. */
const REPORT_MS_MAX = 5_000;

/** A service that asks about a domain for the first time waits for its rules no longer than this. */
const FIRST_RULES_MS_MAX = 1_000;

/** There is one control plane and one hub. */
export const CONTROL_NAME = 'control';
export const METRICS_NAME = 'metrics';

interface Change {
  readonly domain: string;
  readonly activation?: number | undefined;
  readonly clamp?: Clamp;
}

interface HubStub {
  report(batch: MetricsBatch): Promise<{ acknowledged: number }>;
}

export class Isolate implements LimiterServices {
  readonly metrics: Metrics;
  readonly own: Domain;
  readonly #bindings: IsolateBindings;
  readonly #intervalMs: number;
  readonly #others = new BoundedMap<Domain>(OTHER_DOMAINS_MAX);
  readonly #beat: Beat;
  readonly #directory: KeyDirectory | undefined;
  readonly #recorder: Recorder | undefined;
  #clock = startClock(Date.now());
  #analysed = 0;
  #isHubFailing = false;

  /** `region` is that of the first request: an isolate stays where it is. */
  constructor(bindings: IsolateBindings, bundled: Ruleset, region: Region = REGION_UNKNOWN) {
    this.#bindings = bindings;
    this.metrics = new Metrics({ isolate: crypto.randomUUID(), region });
    const { RECORDER, CONTROL, KEYS } = bindings;
    this.#recorder =
      RECORDER &&
      new Recorder({
        send: async (body) => {
          await RECORDER.fetch('http://recorder/', { method: 'POST', body });
        },
        onDropped: (lines) => this.metrics.count('telemetry_dropped_total', { what: 'recorded' }, lines),
      });
    this.#intervalMs = 1_000 * secondsOf(bindings.REFRESH_SECONDS);
    this.own = this.#newDomain(bundledSnapshot(bundled, bindings.OWNER_SEED), { isOwn: true });
    const intervalMs = this.#intervalMs;
    this.#directory =
      CONTROL === undefined && KEYS === undefined ? undefined : this.#newDirectory(intervalMs);
    this.#beat = new Beat({
      intervalMs,
      nowMs: () => this.#nowMs(),
      sleep: (ms) => platformTimer(ms).done,
      refresh: () => this.#refresh(),
      flush: () => this.#flush(),
      isNews: () => this.own.source.isNews,
    });
  }

  /** Of the gateway's own domain. */
  get limiter(): Limiter {
    return this.own.limiter;
  }

  get snapshot(): Snapshot {
    return this.own.source.snapshot;
  }

  /** Called once a request's decision has been counted. */
  attend(background: Background): void {
    this.#beat.attend(background);
  }

  /** A change was made here: it is looked for by its number, since what is near may not have it yet. */
  changed({ domain, activation = 0, clamp }: Change, background: Background): void {
    const isOwn = domain === this.snapshot.ruleset.domain;
    const source = (isOwn ? this.own : this.#others.get(domain))?.source;
    source?.heard({ activation, builtAtMs: 0 }, clamp && [clamp]);
    background(this.#refresh());
  }

  /** Hands on what was counted so far. */
  async flush(): Promise<void> {
    await this.#flush();
  }

  /** Who shows a key; `undefined` where there is nobody to ask. */
  lookUp(background: Background): LookUp | undefined {
    const directory = this.#directory;
    if (directory === undefined || !this.own.source.hasKeys) return undefined;
    return (hash, address) => directory.find(hash, address, background);
  }

  /** A key's entry has changed: what this isolate knows of it is void. */
  forgetKey(hash: string): void {
    this.#directory?.forget(hash);
  }

  /** A domain that rules were published for, or the gateway's own. The first question about another one waits for its rules. */
  async domain(name: string): Promise<Domain | undefined> {
    if (name === this.snapshot.ruleset.domain) return this.own;
    const known = this.#others.touch(name);
    if (known !== undefined) return known;
    if (this.#bindings.CONTROL === undefined && this.#bindings.RULES === undefined) return undefined;
    const blank = bundledSnapshot(blankRuleset(name), this.#bindings.OWNER_SEED);
    const domain = this.#newDomain(blank, { isOwn: false });
    const refreshed = domain.source.refresh({ nowMs: this.#nowMs(), wallMs: Date.now() });
    await within(refreshed, FIRST_RULES_MS_MAX).catch(() => {});
    const meanwhile = this.#others.get(name);
    if (meanwhile !== undefined) return meanwhile;
    if (domain.source.snapshot.source === 'bundled') return undefined;
    this.#others.set(name, domain);
    return domain;
  }

  #newDomain(bundled: Snapshot, { isOwn }: { isOwn: boolean }): Domain {
    const { OWNER, RULES, CONTROL, OWNER_SEED = '' } = this.#bindings;
    const stores = [
      ...(RULES === undefined ? [] : [kvStore(RULES, KV_CACHE_SECONDS)]),
      ...(CONTROL === undefined
        ? []
        : [controlStore(() => stubOf<ControlStub>(CONTROL, { name: CONTROL_NAME }))]),
    ];
    return new Domain({
      owners: OWNER,
      bundled,
      stores,
      seed: OWNER_SEED,
      metrics: this.metrics,
      recorder: this.#recorder,
      isOwn,
      sha256,
      within,
      fetchMsMax: Math.min(FETCH_MS_MAX, this.#intervalMs),
    });
  }

  #newDirectory(intervalMs: number): KeyDirectory {
    const { KEYS, CONTROL } = this.#bindings;
    const nearby = KEYS && ((hash: string) => KEYS.get(hash, { cacheTtl: KV_CACHE_SECONDS }));
    const central =
      CONTROL && ((hash: string) => stubOf<ControlStub>(CONTROL, { name: CONTROL_NAME }).key(hash));
    const fetch = async (hash: string) => {
      if (nearby === undefined) return readEntry(await central?.(hash));
      // The control plane knows what KV cannot say.
      const text = await nearby(hash).catch((error) => central?.(hash) ?? Promise.reject(error));
      return readEntry(text);
    };
    return new KeyDirectory({
      nowMs: () => this.#nowMs(),
      wallMs: () => Date.now(),
      sleep: (ms) => platformTimer(ms).done,
      fetch,
      within,
      count: (result) => this.metrics.count('key_lookups_total', { result }),
      ttlMs: 2 * intervalMs,
      seed: seedOf(crypto.randomUUID()),
    });
  }

  async #refresh(): Promise<void> {
    const times = { nowMs: this.#nowMs(), wallMs: Date.now() };
    await Promise.all([this.own, ...this.#others.values()].map(({ source }) => source.refresh(times)));
  }

  /** Time that passes: a clock that is set back must not put anything off. */
  #nowMs(): number {
    this.#clock = advance(this.#clock, Date.now());
    return this.#clock.logicalMs;
  }

  async #flush(): Promise<void> {
    this.#gauges();
    const batch = this.metrics.take();
    await Promise.all([this.#recorder?.flush(), batch && this.#report(batch)]);
  }

  async #report(batch: MetricsBatch): Promise<void> {
    this.#analyse(batch);
    const { METRICS } = this.#bindings;
    try {
      const reported =
        METRICS &&
        (await within(stubOf<HubStub>(METRICS, { name: METRICS_NAME }).report(batch), REPORT_MS_MAX));
      this.metrics.acknowledged(reported?.acknowledged ?? batch.number);
      if (this.#isHubFailing) logEvent({ event: 'metrics_hub_recovered' });
      this.#isHubFailing = false;
    } catch (error) {
      if (!this.#isHubFailing) logEvent({ event: 'metrics_hub_failing', reason: String(error) });
      this.#isHubFailing = true;
    }
  }

  /** A batch that has to be repeated to the hub was written to the dataset the first time. */
  #analyse(batch: MetricsBatch): void {
    const { ANALYTICS } = this.#bindings;
    if (ANALYTICS === undefined || batch.number <= this.#analysed) return;
    this.#analysed = batch.number;
    const { points, dropped } = pointsOf(batch);
    for (const point of points) ANALYTICS.writeDataPoint(point);
    if (dropped > 0) this.metrics.count('telemetry_dropped_total', { what: 'points' }, dropped);
  }

  #gauges(): void {
    const domains = [this.own, ...this.#others.values()];
    for (const domain of domains) {
      const { ruleset, version, activatedAtMs } = domain.source.snapshot;
      const labels = { domain: ruleset.domain };
      const displaced = domain.takeDisplaced();
      if (displaced > 0) this.metrics.count('buckets_displaced_total', labels, displaced);
      this.metrics.gauge('activation', labels, version.activation);
      this.metrics.gauge('activated_at_ms', labels, activatedAtMs);
    }
    const silent = domains.reduce((sum, { limiter }) => sum + limiter.silentOwners, 0);
    this.metrics.gauge('open_breakers', {}, silent);
    this.metrics.gauge('all_owners_unreachable', {}, Number(domains.some((domain) => domain.isCutOff)));
  }
}

export async function within<Value>(promise: Promise<Value>, limitMs: number): Promise<Value> {
  const timer = platformTimer(limitMs);
  const late = timer.done.then(() => Promise.reject(new Error(`no answer within ${limitMs} ms`)));
  try {
    return await Promise.race([promise, late]);
  } finally {
    timer.cancel();
  }
}

function secondsOf(text: string | undefined): number {
  const seconds = Number(text);
  return Number.isInteger(seconds) && seconds >= 1 && seconds <= REFRESH_SECONDS ? seconds : REFRESH_SECONDS;
}

/** What is held of a domain until its rules have come. */
function blankRuleset(domain: string): Ruleset {
  return {
    format: RULESET_FORMAT,
    domain,
    builtAtMs: 0,
    headers: 'ietf',
    deadlineMs: 150,
    identity: { apiKey: [], keys: {}, unknownKeys: 'address', defaults: {}, trustedHops: 0, ipv6Prefix: 64 },
    attributes: {},
    corsOrigins: [],
    routes: [],
    rules: [],
    costs: [],
  };
}
