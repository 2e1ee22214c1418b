/** A run of the bench as a table for people and as JSON for programs. */
import { availableParallelism, cpus } from 'node:os';
import { barsOf, describeBar, holds } from './bars.ts';
import { type Figure, ROUNDS, type Summary, summary } from './figure.ts';

export interface Row extends Summary {
  readonly name: string;
  readonly unit: string;
  readonly values: readonly number[];
  readonly bar?: string;
  readonly holds?: boolean;
}

export function rowsOf(figures: readonly Figure[]): Row[] {
  return figures.map((figure) => ({ ...figure, ...summary(figure), ...judged(figure) }));
}

function judged(figure: Figure): { bar?: string; holds?: boolean } {
  const bars = barsOf(figure.name);
  if (bars.length === 0) return {};
  const { median } = summary(figure);
  return { bar: bars.map(describeBar).join(', '), holds: bars.every((bar) => holds(bar, median)) };
}

export function renderTable(rows: readonly Row[]): string {
  const header = ['figure', 'unit', 'median', 'lowest', 'highest', 'bar', ''];
  const lines = rows.map((row) => [
    row.name,
    row.unit,
    ...[row.median, row.lowest, row.highest].map(readable),
    row.bar ?? '',
    row.holds === undefined ? '' : row.holds ? 'holds' : 'MISSED',
  ]);
  const widths = header.map((title, column) =>
    Math.max(title.length, ...lines.map((line) => line[column]!.length)),
  );
  const render = (line: readonly string[]) =>
    line
      .map((cell, column) =>
        isNumeric(column) ? cell.padStart(widths[column]!) : cell.padEnd(widths[column]!),
      )
      .join('  ')
      .trimEnd();
  return [header, widths.map((width) => '-'.repeat(width)), ...lines].map(render).join('\n');
}

function isNumeric(column: number): boolean {
  return column >= 2 && column <= 4;
}

/** Three significant digits, or whole thousands in full: what lies between the rounds drowns the rest. */
function readable(value: number): string {
  return Math.abs(value) >= 1_000 ? String(Math.round(value)) : String(Number(value.toPrecision(3)));
}

export function toJson(rows: readonly Row[]): string {
  const machine = {
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    threads: availableParallelism(),
  };
  return `${JSON.stringify({ rounds: ROUNDS, machine, figures: rows }, null, 2)}\n`;
}
