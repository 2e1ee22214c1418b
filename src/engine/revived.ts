/** A counter as it was stored, with its machines about it. */
import type { Counter } from './counters.ts';
import { Demand } from './demand.ts';
import { LeaseBook } from './lease-book.ts';
import type { Middle } from './middle.ts';
import { MiddleBook } from './middle-book.ts';
import type { StoredCounter } from './write-behind.ts';

/** Who asked for it is forgotten; what was lent of it, and to it, is not. */
export function revived(stored: StoredCounter, middle: Middle | undefined, nowMs: number): Counter {
  const { lent, upstream, middles, ...counter } = stored;
  return {
    ...counter,
    demand: new Demand(),
    lent: lent && new LeaseBook(nowMs, lent),
    upstream: upstream && middle?.restored(upstream, nowMs),
    middles: middles && new MiddleBook(middles),
  };
}
