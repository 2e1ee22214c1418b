/**
 * How much room a bucket has had lately: the least of it since a given instant.
 *
 * Units that overflowed in a holder's hands come back to their owner late. They would have found a place in its bucket then if there has
 * been room for them all the while since. Whoever keeps the history notes the room before each charge and whenever it has shrunk;
 * between two notes it only shrinks.
 */

/** Of a second in which a bucket is drained call by call, every few milliseconds are told apart. */
const ENTRIES_MAX = 256;

interface Entry {
  readonly least: number;
  /** The last time that there was no more than that. */
  readonly atMs: number;
}

export class RoomHistory {
  /** In order of time, and so of room: what was followed by less says nothing any more. */
  #entries: Entry[] = [];

  note(room: number, nowMs: number): void {
    while (this.#entries.length > 0 && this.#entries.at(-1)!.least >= room) this.#entries.pop();
    if (this.#entries.at(-1)?.atMs === nowMs) return;
    this.#entries.push({ least: room, atMs: nowMs });
    if (this.#entries.length > ENTRIES_MAX) this.#halve();
  }

  /** So many of these units, which overflowed at `sinceMs`, would have stayed in the bucket; they count as if they had. */
  takeIn(units: number, sinceMs: number): number {
    const fitting = Math.min(units, this.leastSince(sinceMs));
    if (fitting <= 0) return 0;
    const entries = this.#entries;
    this.#entries = [];
    for (const { least, atMs } of entries)
      this.note(atMs < sinceMs ? least : Math.max(0, least - fitting), atMs);
    return fitting;
  }

  /** Infinite when nothing was noted since. */
  leastSince(sinceMs: number): number {
    return this.#entries.find(({ atMs }) => atMs >= sinceMs)?.least ?? Number.POSITIVE_INFINITY;
  }

  /** Of each two entries one, which claims the least of both for as long as either. */
  #halve(): void {
    const entries = this.#entries;
    this.#entries = entries.flatMap((entry, at) => {
      if (at % 2 === 1) return [];
      return { least: entry.least, atMs: (entries[at + 1] ?? entry).atMs };
    });
  }
}
