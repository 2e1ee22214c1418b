/** Rows of text in columns, and what stands in them. */
import { plainText } from '../text.ts';

/** Cells of a column begin below each other; text of others is made harmless to the terminal. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows.map((row) => row.map(plainText))];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** `2026-11-30 12:48:21Z`. */
export function timeText(iso: string): string {
  return iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z');
}

/** `tier=free org=acme`. */
export function pairsText(pairs: Readonly<Record<string, string>>): string {
  return Object.entries(pairs)
    .map((pair) => plainText(pair.join('=')))
    .join(' ');
}
