/**
 * What an owner writes, and when: at most a second late, and not at all while it would say nothing soon.
 *
 * A change is written at once when the last write is over a second old, else when that second has passed. It is left unwritten only
 * while every counter changed since the last write will be at rest within five seconds: an idle object stays in memory for about
 * ten, so nothing is gained by spending a little and waiting to be forgotten. What a crash loses is therefore at most one second of
 * charges and five seconds of refill.
 *
 * Counters are packed in a fixed number of blocks by a hash of their id, one stored row a block, so that a busy shared owner pays for
 * a few rows a second and not for one a counter.
 */
import type { LogicalClock } from '../core/clock.ts';
import type { Version } from '../policy/ruleset.ts';
import { type Counter, restInMs } from './counters.ts';
import { isReadable } from './messages.ts';
import type { StoredCounter, StoredOwner } from './owner.ts';

export const STORAGE_FORMAT = 1;
export const WRITE_INTERVAL_MS = 1_000;
export const REST_UNWRITTEN_MS = 5_000;

const HEADER_KEY = 'owner';
const BLOCK_PREFIX = 'block:';

interface StoredHeader {
  readonly format: number;
  readonly clock: LogicalClock;
  readonly version: Version;
}

interface StoredBlock {
  readonly format: number;
  readonly counters: readonly StoredCounter[];
}

/** Rows to write; a row that is `undefined` is to be deleted. */
export type Rows = ReadonlyMap<string, StoredHeader | StoredBlock | undefined>;

export interface Stored {
  readonly clock: LogicalClock;
  readonly version: Version;
  counters(): Iterable<Counter>;
}

export class WriteBehind {
  readonly #blocks: number;
  readonly #changedBlocks = new Set<number>();
  #mustWrite = false;
  #lastWriteMs = Number.NEGATIVE_INFINITY;

  constructor(blocks: number) {
    this.#blocks = blocks;
  }

  /** A counter's stored form is out of date; `restInMs` is how long what it says, new or stored, will matter. */
  changed(counter: Counter, restInMs: number): void {
    this.#changedBlocks.add(blockOf(counter.id, this.#blocks));
    if (restInMs > REST_UNWRITTEN_MS) this.#mustWrite = true;
  }

  /** How long until the next write is due: 0 for now, `undefined` while nothing has to be written. */
  dueInMs(nowMs: number): number | undefined {
    if (!this.#mustWrite) return undefined;
    const sinceMs = nowMs - this.#lastWriteMs;
    // A raw clock that stepped back must not put the write off.
    return sinceMs < 0 || sinceMs >= WRITE_INTERVAL_MS ? 0 : WRITE_INTERVAL_MS - sinceMs;
  }

  /** The rows that changed since the last write. They count as written from now on. */
  take(owner: Stored, nowMs: number): Rows {
    const byBlock = new Map<number, StoredCounter[]>();
    for (const block of this.#changedBlocks) byBlock.set(block, []);
    for (const counter of owner.counters()) {
      if (restInMs(counter, owner.clock) <= 0) continue;
      const { id, limit, state, version } = counter;
      byBlock.get(blockOf(id, this.#blocks))?.push({ id, limit, state, version });
    }
    const rows = new Map<string, StoredHeader | StoredBlock | undefined>();
    for (const [block, counters] of byBlock) {
      rows.set(BLOCK_PREFIX + block, counters.length > 0 ? { format: STORAGE_FORMAT, counters } : undefined);
    }
    rows.set(HEADER_KEY, { format: STORAGE_FORMAT, clock: owner.clock, version: owner.version });
    this.#changedBlocks.clear();
    this.#mustWrite = false;
    this.#lastWriteMs = nowMs;
    return rows;
  }
}

/** What was written, if it is complete and of a format that this version reads. */
export function restore(rows: Iterable<readonly [string, unknown]>): StoredOwner | undefined {
  let header: StoredHeader | undefined;
  const counters: StoredCounter[] = [];
  for (const [key, value] of rows) {
    if (!isReadable((value as { format?: unknown } | null)?.format, STORAGE_FORMAT)) continue;
    if (key === HEADER_KEY) header = value as StoredHeader;
    else if (key.startsWith(BLOCK_PREFIX)) counters.push(...(value as StoredBlock).counters);
  }
  return header === undefined ? undefined : { clock: header.clock, version: header.version, counters };
}

/** FNV-1a over the id's UTF-16 units: stable across versions, since the block's number is a storage key. */
function blockOf(id: string, blocks: number): number {
  if (blocks === 1) return 0;
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % blocks;
}
