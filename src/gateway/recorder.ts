/**
 * Keeps requests as they were decided, for `limiter replay`: one JSON line each with the time, the attributes (keys as hashes) and the
 * cost. Lines leave in batches beside the requests; what there is no room for is dropped and counted.
 */
import type { Facts } from '../policy/match.ts';

/** A second of a busy isolate, at about 200 bytes each. */
const LINES_MAX = 20_000;

export interface RecorderOptions {
  readonly send: (lines: string) => Promise<void>;
  readonly onDropped: (lines: number) => void;
}

export class Recorder {
  readonly #options: RecorderOptions;
  #lines: string[] = [];
  #dropped = 0;

  constructor(options: RecorderOptions) {
    this.#options = options;
  }

  record({ attributes, path, method }: Facts, cost: number, nowMs: number): void {
    if (this.#lines.length >= LINES_MAX) {
      this.#dropped += 1;
      return;
    }
    const all = { ...attributes, ...(path && { route: path }), ...(method && { method }) };
    this.#lines.push(JSON.stringify({ time: nowMs, attributes: all, cost }));
  }

  /** Never rejects: what cannot be handed on is dropped. */
  async flush(): Promise<void> {
    const lines = this.#lines;
    const dropped = this.#dropped;
    this.#lines = [];
    this.#dropped = 0;
    if (dropped > 0) this.#options.onDropped(dropped);
    if (lines.length === 0) return;
    await this.#options.send(`${lines.join('\n')}\n`).catch(() => this.#options.onDropped(lines.length));
  }
}
