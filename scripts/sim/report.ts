/** Runs of scenarios as a table for people and as JSON for programs. */
import { median } from '../bench/statistics.ts';
import { type Bar, barsOf, describeBar, holds } from './bars.ts';
import type { Figures } from './measures.ts';
import type { Scenario } from './scenario.ts';
import type { FleetRow } from './scenarios/fleet.ts';

export interface Run {
  readonly seed: number;
  readonly figures: Figures;
  readonly violation: string | undefined;
  readonly remarks: readonly string[];
}

export interface Row {
  readonly name: string;
  readonly runs: readonly Run[];
  readonly isKnownToBreak?: boolean | undefined;
}

/** Whether something has broken that nobody knew of. */
export function isBroken({ runs, isKnownToBreak }: Row): boolean {
  return isKnownToBreak !== true && runs.some(({ violation }) => violation !== undefined);
}

interface Column {
  readonly title: string;
  readonly figure: keyof Figures;
  readonly digits: number;
  /** Which way is worse. */
  readonly worst: 'highest' | 'lowest';
}

const COLUMNS: readonly Column[] = [
  { title: 'units', figure: 'offered', digits: 0, worst: 'lowest' },
  { title: 'of ideal', figure: 'ofIdeal', digits: 4, worst: 'lowest' },
  { title: 'over', figure: 'overAdmission', digits: 1, worst: 'highest' },
  { title: 'in-quota refused', figure: 'inQuotaRefusals', digits: 0, worst: 'highest' },
  { title: 'calls/1000', figure: 'callsPerThousand', digits: 1, worst: 'highest' },
  { title: 'calls 1st s', figure: 'callsFirstSecond', digits: 0, worst: 'highest' },
  { title: 'calls/s max', figure: 'callsPerSecondMax', digits: 0, worst: 'highest' },
  { title: 'hottest/s', figure: 'hottestOwner', digits: 0, worst: 'highest' },
  { title: 'root/s', figure: 'rootCallsPerSecond', digits: 1, worst: 'highest' },
  { title: 'wait p50 ms', figure: 'waitP50', digits: 1, worst: 'highest' },
  { title: 'p99 ms', figure: 'waitP99', digits: 1, worst: 'highest' },
  { title: 'least served', figure: 'leastServed', digits: 2, worst: 'lowest' },
];

/** A missed bar, in words. */
export function missedBars({ name, runs }: Row): readonly string[] {
  const isMissed = (bar: Bar) => !holds(bar, medianOf(runs, bar.figure));
  return barsOf(name)
    .filter(isMissed)
    .map(
      (bar) => `${name}: ${describeBar(bar)}, and it is ${medianOf(runs, bar.figure).toFixed(4)}; ${bar.why}`,
    );
}

/** Medians over the seeds; with several seeds, the worst of each beneath. */
export function renderTable(rows: readonly Row[]): string {
  const lines = rows.flatMap((row) => linesOf(row));
  const header = ['scenario', ...COLUMNS.map(({ title }) => title), ''];
  const widths = header.map((title, at) => Math.max(title.length, ...lines.map((line) => line[at]!.length)));
  const render = (line: readonly string[]) =>
    line
      .map((cell, at) =>
        at === 0 || at === line.length - 1 ? cell.padEnd(widths[at]!) : cell.padStart(widths[at]!),
      )
      .join('  ')
      .trimEnd();
  return [header, widths.map((width) => '-'.repeat(width)), ...lines].map(render).join('\n');
}

/** What there is to say beside the figures: of the first seed what was remarked, of all seeds what the rows come to. */
export function renderFinding({ name, finding }: Scenario, rows: readonly Row[]): readonly string[] {
  const remarks = rows.flatMap((row) =>
    (row.runs[0]?.remarks ?? []).map((remark) => `${row.name}: ${remark}`),
  );
  const found = (finding?.(rows) ?? []).map((line) => `${name}: ${line}`);
  return remarks.length + found.length === 0 ? [] : ['', ...remarks, ...found];
}

function linesOf(row: Row): string[][] {
  const { name, runs, isKnownToBreak } = row;
  const failed = runs.filter(({ violation }) => violation !== undefined).length;
  const failure = `${isKnownToBreak ? 'fails, as is known' : 'FAILED'} (${failed} of ${runs.length})`;
  const verdict = failed > 0 ? failure : missedBars(row).length > 0 ? 'below bar' : '';
  const medians = COLUMNS.map(({ figure, digits }) => medianOf(runs, figure).toFixed(digits));
  const lines = [[name, ...medians, verdict]];
  if (runs.length > 1) lines.push(['  worst seed', ...COLUMNS.map((column) => worstOf(runs, column)), '']);
  return lines;
}

function worstOf(runs: readonly Run[], { figure, digits, worst }: Column): string {
  const values = runs.map(({ figures }) => figures[figure]);
  return (worst === 'highest' ? Math.max(...values) : Math.min(...values)).toFixed(digits);
}

export function medianOf(runs: readonly Run[], figure: keyof Figures): number {
  return median(runs.map(({ figures }) => figures[figure]));
}

export function toJson(rows: readonly Row[], fleet: readonly FleetRow[] = []): string {
  const scenarios = rows.map((row) => {
    const figures = Object.keys(row.runs[0]!.figures) as (keyof Figures)[];
    const medians = Object.fromEntries(figures.map((figure) => [figure, medianOf(row.runs, figure)]));
    return { name: row.name, medians, missedBars: missedBars(row), runs: row.runs };
  });
  const fleets = fleet.map(({ sizing, estimate }) => ({ name: sizing.label, ...estimate }));
  return `${JSON.stringify({ scenarios, fleets }, null, 2)}\n`;
}

export interface DesignRow {
  readonly name: string;
  /** Offered, of the limit. */
  readonly load: number;
  readonly runs: readonly Figures[];
}

/** Medians over the seeds. */
export function renderDesigns(rows: readonly DesignRow[]): string {
  const header = [
    'design',
    'load',
    'admitted / ideal',
    'refused inside the quota',
    'owner calls per 1,000',
    'added wait p50 / p99',
  ];
  const lines = rows.map(({ name, load, runs }) => {
    const of = (figure: keyof Figures) => median(runs.map((figures) => figures[figure]));
    const refused = load < 1 ? `${((of('inQuotaRefusals') / of('offered')) * 100).toFixed(1)}%` : '';
    const waits = `${of('waitP50').toFixed(0)} / ${of('waitP99').toFixed(0)} ms`;
    return [name, String(load), of('ofIdeal').toFixed(3), refused, of('callsPerThousand').toFixed(0), waits];
  });
  const render = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  return [header, header.map(() => '---'), ...lines].map(render).join('\n');
}
