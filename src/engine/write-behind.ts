/**
 * What an owner writes, and when: at most a second late, and not at all while it would say nothing soon.
 *
 * A change is written at once when the last write is over a second old, else when that second has passed. It is left unwritten only
 * while every counter changed since the last write will be at rest within five seconds: an idle object stays in memory for about
 * ten, so nothing is gained by spending a little and waiting to be forgotten. What a crash loses is therefore at most one second of
 * charges and five seconds of refill.
 *
 * Counters, clamps, and the debts lately charged, are packed in a fixed number of blocks by a hash of their id, one stored row a block: so a
 * caller's own owner writes one row at a time, and a busy shared owner a few and not one a counter. Each row bears the owner's clock
 * and version as they were when it was written; the newest of them are the owner's.
 */
import type { CounterState } from '../core/algorithms.ts';
import type { LogicalClock } from '../core/clock.ts';
import type { Clamp } from '../policy/clamp.ts';
import { encodePairs } from '../policy/counter.ts';
import { isNewer, type Version } from '../policy/ruleset.ts';
import { type Counter, restInMs } from './counters.ts';
import type { StoredLease } from './lease-book.ts';
import type { Recent } from './ledger.ts';
import { isReadable } from './messages.ts';
import type { MiddleRecord } from './middle-record.ts';
import type { StoredUpstream } from './stored-upstream.ts';

export const STORAGE_FORMAT = 1;
export const WRITE_INTERVAL_MS = 1_000;
export const REST_UNWRITTEN_MS = 5_000;

/** The newest debts that a block remembers: 15 kB of a row. More are only charged twice if the owner is evicted as well. */
export const DEBTS_PER_BLOCK_MAX = 256;

const BLOCK_PREFIX = 'block:';

/** What the owner is made from after an eviction; all of it was written together. */
export interface StoredOwner {
  readonly clock: LogicalClock;
  readonly version: Version;
  readonly counters: readonly StoredCounter[];
  /** Debts and corrections made lately, in order of time: what they did was stored, so a repeated one must find its id. */
  readonly debts: readonly Recent[];
  /** Absent in what an earlier version wrote. */
  readonly clamps?: readonly Clamp[];
}

export interface StoredCounter {
  readonly id: string;
  readonly limit: Counter['limit'];
  readonly state: CounterState | undefined;
  readonly version: Version;
  /** Holders go on spending what was lent before an eviction. */
  readonly lent?: StoredLease | undefined;
  readonly upstream?: StoredUpstream | undefined;
  readonly middles?: readonly (readonly [string, MiddleRecord])[] | undefined;
}

interface StoredBlock extends StoredOwner {
  readonly format: number;
}

/** Rows to write; a row that is `undefined` is to be deleted. */
export type Rows = ReadonlyMap<string, StoredBlock | undefined>;

export interface Stored {
  readonly clock: LogicalClock;
  readonly version: Version;
  counters(): Iterable<Counter>;
  /** In order of time. */
  debts(): Iterable<Recent>;
  clamps(): Iterable<Clamp>;
}

export class WriteBehind {
  readonly #blocks: number;
  readonly #changedBlocks = new Set<number>();
  #mustWrite = false;
  #lastWriteMs = Number.NEGATIVE_INFINITY;

  constructor(blocks: number) {
    this.#blocks = blocks;
  }

  /** The stored form of a counter or debt is out of date; `restInMs` is how long what it says, new or stored, will matter. */
  changed({ id }: { readonly id: string }, restInMs: number): void {
    this.#changedBlocks.add(blockOf(id, this.#blocks));
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
    const { clock, version } = owner;
    const contents = new Map<number, { counters: StoredCounter[]; debts: Recent[]; clamps: Clamp[] }>();
    for (const block of this.#changedBlocks) contents.set(block, { counters: [], debts: [], clamps: [] });
    for (const counter of owner.counters()) {
      if (restInMs(counter, clock) <= 0) continue;
      const { id, limit, state } = counter;
      const lent = counter.lent?.stored((holder) => counter.middles?.has(holder) ?? false);
      const upstream = counter.upstream?.stored();
      const middles = counter.middles?.stored();
      const links = { ...(lent && { lent }), ...(upstream && { upstream }), ...(middles && { middles }) };
      const stored = { id, limit, state, version: counter.version, ...links };
      contents.get(blockOf(id, this.#blocks))?.counters.push(stored);
    }
    for (const debt of owner.debts()) contents.get(blockOf(debt.id, this.#blocks))?.debts.push(debt);
    for (const clamp of owner.clamps())
      contents.get(blockOf(encodePairs(clamp.pairs), this.#blocks))?.clamps.push(clamp);
    const rows = new Map<string, StoredBlock | undefined>();
    for (const [block, { counters, debts, clamps }] of contents) {
      const isEmpty = counters.length === 0 && debts.length === 0 && clamps.length === 0;
      const recent = debts.slice(-DEBTS_PER_BLOCK_MAX);
      const row = {
        format: STORAGE_FORMAT,
        clock,
        version,
        counters,
        debts: recent,
        ...(clamps.length > 0 && { clamps }),
      };
      rows.set(BLOCK_PREFIX + block, isEmpty ? undefined : row);
    }
    this.#changedBlocks.clear();
    this.#mustWrite = false;
    this.#lastWriteMs = nowMs;
    return rows;
  }
}

/** What was written, as far as this version reads it. A block that was not written since bears an older clock and version. */
export function restore(rows: Iterable<readonly [string, unknown]>): StoredOwner | undefined {
  const blocks = [...rows].filter(isBlock).map(([, block]) => block);
  const [first] = blocks;
  if (first === undefined) return undefined;
  return {
    clock: blocks.reduce((last, { clock }) => (clock.logicalMs > last.logicalMs ? clock : last), first.clock),
    version: blocks.reduce(
      (newest, { version }) => (isNewer(version, newest) ? version : newest),
      first.version,
    ),
    counters: blocks.flatMap(({ counters }) => counters),
    debts: blocks.flatMap(({ debts }) => debts).sort((one, other) => one.atMs - other.atMs),
    clamps: blocks.flatMap(({ clamps = [] }) => clamps),
  };
}

function isBlock(row: readonly [string, unknown]): row is readonly [string, StoredBlock] {
  const [key, value] = row;
  const format = (value as { format?: unknown } | null | undefined)?.format;
  return key.startsWith(BLOCK_PREFIX) && isReadable(format, STORAGE_FORMAT);
}

/** FNV-1a over the id's UTF-16 units: stable across versions, since the block's number is a storage key. */
function blockOf(id: string, blocks: number): number {
  if (blocks === 1) return 0;
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at += 1) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return (hash >>> 0) % blocks;
}
