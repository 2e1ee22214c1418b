/**
 * A binary heap of events, the earliest first and of equal ones the one that was added first.
 *
 * Each event knows its place, so one that is cancelled is taken out at once: most timers of a limiter are deadlines that never
 * come, and would otherwise be most of the heap.
 */
export interface Scheduled {
  readonly atMs: number;
  /** Ever growing: the order of events at one instant. */
  readonly number: number;
  /** Where it stands in the heap; -1 once it has left. */
  place: number;
}

export class Heap<Event extends Scheduled> {
  readonly #events: Event[] = [];

  get size(): number {
    return this.#events.length;
  }

  get first(): Event | undefined {
    return this.#events[0];
  }

  add(event: Event): void {
    event.place = this.#events.length;
    this.#events.push(event);
    this.#rise(event);
  }

  takeFirst(): Event | undefined {
    const first = this.#events[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  /** Does nothing to an event that has left already. */
  remove(event: Event): void {
    const { place } = event;
    if (place === -1) return;
    event.place = -1;
    const last = this.#events.pop()!;
    if (last === event) return;
    this.#put(last, place);
    this.#rise(last);
    this.#sink(last);
  }

  #rise(event: Event): void {
    while (event.place > 0) {
      const parent = this.#events[(event.place - 1) >>> 1]!;
      if (isBefore(parent, event)) return;
      this.#swap(parent, event);
    }
  }

  #sink(event: Event): void {
    while (true) {
      const left = this.#events[2 * event.place + 1];
      const right = this.#events[2 * event.place + 2];
      if (left === undefined) return;
      const child = right !== undefined && isBefore(right, left) ? right : left;
      if (isBefore(event, child)) return;
      this.#swap(event, child);
    }
  }

  #swap(upper: Event, lower: Event): void {
    const place = upper.place;
    this.#put(upper, lower.place);
    this.#put(lower, place);
  }

  #put(event: Event, place: number): void {
    event.place = place;
    this.#events[place] = event;
  }
}

function isBefore(a: Scheduled, b: Scheduled): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.number < b.number);
}
