/**
 * What has overflowed in a holder's hands since its last report, told apart by when it did.
 *
 * Nobody could spend it there, so it goes back to the owner, which takes a unit in if its bucket has had room for it ever since. Of a
 * bucket that was full half a second ago and has been drained meanwhile, most of what overflowed in that half second has a place, but
 * only if it is known which part of it came when. A piece claims the earliest instant of all that is in it: never more than is true.
 */

export interface Returned {
  readonly units: number;
  /** How long ago the first of them overflowed, when the owner hears of it. */
  readonly agoMs: number;
}

/** As many pieces as a report tells apart; of more, each two become one. */
export const PIECES_MAX = 8;

/** What overflows within so long is one piece: a few round trips to an owner are not worth more. */
const PIECE_MS = 25;

interface Piece {
  readonly units: number;
  readonly sinceMs: number;
}

export class Overflow {
  #pieces: Piece[] = [];

  /** Units overflowed at an even pace between these instants. */
  add(units: number, sinceMs: number, untilMs: number): void {
    if (units <= 0) return;
    const spanMs = untilMs - sinceMs;
    const parts = Math.min(PIECES_MAX, Math.max(1, Math.floor(spanMs / PIECE_MS)));
    for (let part = 0; part < parts; part += 1)
      this.#put({ units: units / parts, sinceMs: sinceMs + (spanMs * part) / parts });
  }

  /** What there is to report, and forgets it; a message takes `wayMs` to its owner. */
  take(nowMs: number, wayMs: number): readonly Returned[] {
    const returned = this.#pieces.map(({ units, sinceMs }) => ({ units, agoMs: nowMs - sinceMs + wayMs }));
    this.clear();
    return returned;
  }

  clear(): void {
    this.#pieces = [];
  }

  #put(piece: Piece): void {
    const last = this.#pieces.at(-1);
    if (last !== undefined && piece.sinceMs < last.sinceMs + PIECE_MS) {
      this.#pieces[this.#pieces.length - 1] = together(last, piece);
      return;
    }
    this.#pieces.push(piece);
    if (this.#pieces.length > PIECES_MAX) this.#pieces = inPairs(this.#pieces);
  }
}

function inPairs(pieces: readonly Piece[]): Piece[] {
  return pieces.flatMap((piece, at) => (at % 2 === 1 ? [] : [together(piece, pieces[at + 1])]));
}

function together(one: Piece, other: Piece | undefined): Piece {
  if (other === undefined) return one;
  return { units: one.units + other.units, sinceMs: Math.min(one.sinceMs, other.sinceMs) };
}
