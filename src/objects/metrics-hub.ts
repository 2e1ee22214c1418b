/**
 * The Durable Object that adds up what isolates count: a thin shell around the hub, which it restores and writes.
 *
 * Everything is written at most once a second, without holding replies back: a crash loses the counts of at most a second, together with
 * the memory of which batches they came in. What was once shown, though, is never taken back, since a counter that steps back looks to
 * Prometheus like one that began anew, and all of it would be added again: a scrape waits until what it shows is on disk.
 */
import { DurableObject } from 'cloudflare:workers';
import type { MetricsBatch } from '../telemetry/batch.ts';
import { Hub } from '../telemetry/hub.ts';
import { readRows, rowsOf } from '../telemetry/hub-rows.ts';
import { logEvent } from '../telemetry/log.ts';

export const WRITE_INTERVAL_MS = 1_000;

const UNCONFIRMED = { allowUnconfirmed: true } as const;

export class MetricsHub extends DurableObject {
  readonly #hub: Hub;
  #keys: string[] = [];
  #writeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(state: DurableObjectState, env: Cloudflare.Env) {
    super(state, env);
    const rows = [...state.storage.kv.list()];
    const stored = readRows(rows);
    if (rows.length > 0 && stored === undefined) logEvent({ event: 'metrics_unreadable' });
    this.#keys = rows.map(([key]) => key);
    this.#hub = new Hub(stored);
  }

  /** An isolate's batch. It is counted at most once, so it may be repeated until it is acknowledged. */
  async report(batch: MetricsBatch): Promise<{ acknowledged: number }> {
    const answer = this.#hub.receive(batch, Date.now());
    this.#writeTimer ??= setTimeout(() => this.#write(), WRITE_INTERVAL_MS);
    return answer;
  }

  /** All metrics in the text format of Prometheus. */
  async text(): Promise<string> {
    const text = this.#hub.text(Date.now());
    if (this.#writeTimer !== undefined) this.#write();
    await this.ctx.storage.sync();
    return text;
  }

  /** All rows in one transaction, since nothing is awaited in between. After a failure the next write has everything again. */
  #write(): void {
    if (this.#writeTimer !== undefined) clearTimeout(this.#writeTimer);
    this.#writeTimer = undefined;
    const { storage } = this.ctx;
    const rows = rowsOf(this.#hub.stored());
    const surplus = this.#keys.filter((key) => !(key in rows));
    this.#keys = Object.keys(rows);
    const writes: Promise<unknown>[] = [storage.put(rows, UNCONFIRMED)];
    if (surplus.length > 0) writes.push(storage.delete(surplus, UNCONFIRMED));
    Promise.all(writes).catch((error: unknown) => {
      logEvent({ event: 'metrics_write_failed', reason: String(error) });
    });
  }
}
