/**
 * How far a long replay is, on stderr: once a second, on one line of a terminal, or as lines once the replay has taken two seconds.
 */
import { countText } from '../text.ts';

const EVERY_MS = 1_000;
const QUIET_MS = 2_000;

export class Progress {
  readonly #bytes: number | undefined;
  readonly #startedMs = performance.now();
  #toldMs = performance.now();
  #hasLine = false;

  /** `bytes`: how long the log is, where that is known. */
  constructor(bytes: number | undefined) {
    this.#bytes = bytes;
  }

  tell({ requests, bytes }: { readonly requests: number; readonly bytes: number }): void {
    const nowMs = performance.now();
    const { isTTY } = process.stderr;
    if (nowMs - this.#toldMs < EVERY_MS || (!isTTY && nowMs - this.#startedMs < QUIET_MS)) return;
    this.#toldMs = nowMs;
    const part = this.#bytes ? `, ${Math.floor((100 * bytes) / this.#bytes)}%` : '';
    const line = `${countText(requests)} requests replayed${part}`;
    process.stderr.write(isTTY ? `\r${line}\u001b[K` : `${line}\n`);
    this.#hasLine = isTTY;
  }

  /** Leaves a terminal's line to what comes next. */
  end(): void {
    if (this.#hasLine) process.stderr.write('\r\u001b[K');
    this.#hasLine = false;
  }
}
