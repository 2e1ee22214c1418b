/**
 * The hub as rows of storage: its JSON, cut into pieces that fit. All pieces are written together, so they are of one instant.
 */
import type { StoredHub } from './hub.ts';

/** Storage takes 2 MB a row, and two bytes a character when any of them needs it. */
export const PIECE_LENGTH_MAX = 900_000;

const PREFIX = 'hub:';

/**
 * 10,000 series at up to 1 kB and 4,096 isolates at up to 64 gauges of 300 bytes are 100 pieces; storage writes 128 at once. A usual
 * hub is one.
 */
const PIECE_DIGITS = 3;

export function rowsOf(stored: StoredHub): Record<string, string> {
  const text = JSON.stringify(stored);
  const rows: Record<string, string> = {};
  for (let at = 0; at < text.length; at += PIECE_LENGTH_MAX) {
    const piece = String(at / PIECE_LENGTH_MAX).padStart(PIECE_DIGITS, '0');
    rows[PREFIX + piece] = text.slice(at, at + PIECE_LENGTH_MAX);
  }
  return rows;
}

/** What the rows hold, to be judged by the hub; nothing when there are none or they do not fit together. */
export function readRows(rows: Iterable<readonly [string, unknown]>): unknown {
  const pieces = [...rows]
    .filter(([key]) => key.startsWith(PREFIX))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  try {
    return JSON.parse(pieces.map(([, piece]) => piece).join(''));
  } catch {
    return undefined;
  }
}
