/**
 * Files of keys: JSON lines, or CSV with a header line. Read whole or not at all: the keys, each with its line, or every mistake.
 */
import { suggestion } from '../../../src/policy/problem.ts';
import { type KeyProblem, readKey, type WireKey } from './key-entry.ts';

export interface FileKey {
  /** From 1. */
  readonly line: number;
  readonly key: WireKey;
}

export interface LineProblem extends KeyProblem {
  readonly line: number;
}

export interface KeyFile {
  readonly keys: readonly FileKey[];
  readonly problems: readonly LineProblem[];
  readonly lines: number;
}

type ReadLine = (line: string) => unknown;

/** What a line holds cannot be read at all. */
class LineError extends Error {}

/** `from`: the first line that counts; a header is read all the same. */
export function readKeyFile(
  text: string,
  { isCsv, from }: { readonly isCsv: boolean; readonly from: number },
): KeyFile {
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  if (lines.at(-1) === '') lines.pop();
  const keys: FileKey[] = [];
  const problems: LineProblem[] = [];
  const firstAt = new Map<string, number>();
  let readLine: ReadLine | undefined = isCsv ? undefined : parseJsonLine;
  for (const [index, text] of lines.entries()) {
    const line = index + 1;
    if (text.trim() === '' || (readLine !== undefined && line < from)) continue;
    try {
      if (readLine === undefined) {
        readLine = csvReader(text);
        continue;
      }
      const read = readKey(readLine(text));
      if ('problems' in read) {
        problems.push(...read.problems.map((problem) => ({ ...problem, line })));
        continue;
      }
      const { keySha256 } = read.key;
      const first = firstAt.get(keySha256);
      if (first !== undefined)
        problems.push({ line, field: '', message: `is the same key as in line ${first}` });
      firstAt.set(keySha256, line);
      keys.push({ line, key: read.key });
    } catch (error) {
      if (!(error instanceof LineError)) throw error;
      problems.push({ line, field: '', message: error.message });
      // Without its header nothing in a table has a name.
      if (readLine === undefined) break;
    }
  }
  return { keys, problems, lines: lines.length };
}

/** By its name; else by what it begins with. */
export function isCsvFile(name: string, text: string): boolean {
  if (/\.csv$/i.test(name)) return true;
  return !/\.(?:json|jsonl|ndjson)$/i.test(name) && !/^\ufeff?\s*\{/.test(text);
}

/** What JSON itself says of a mistake quotes the line, and a line holds a key. */
function parseJsonLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    throw new LineError('is no JSON');
  }
}

const COLUMNS: Readonly<Record<string, string>> = {
  key: 'key',
  keysha256: 'keySha256',
  tier: 'tier',
  org: 'org',
  user: 'user',
  disabled: 'disabled',
  expiresat: 'expiresAt',
};

const HEADERS = [...new Set(Object.values(COLUMNS)), 'label_NAME'];

/** Reads lines by their header. Names may be written `keySha256` or `key_sha256`; `label_plan` is the label `plan`. */
function csvReader(header: string): ReadLine {
  const columns = splitCsv(header).map((name, index) => columnOf(name.trim(), index));
  const repeated = columns.find((column, index) => columns.indexOf(column) !== index);
  if (repeated !== undefined) throw new LineError(`names the column ${repeated} twice`);
  return (line) => {
    const cells = splitCsv(line);
    if (cells.length !== columns.length)
      throw new LineError(`has ${cells.length} cells; its header has ${columns.length}`);
    const entry: Record<string, unknown> = {};
    const labels: Record<string, string> = {};
    for (const [index, column] of columns.entries()) {
      const cell = cells[index]!;
      if (cell === '') continue;
      if (column.startsWith(LABEL)) labels[column.slice(LABEL.length)] = cell;
      else entry[column] = column === 'disabled' ? readFlag(cell) : cell;
    }
    return Object.keys(labels).length === 0 ? entry : { ...entry, labels };
  };
}

const LABEL = 'label_';

function columnOf(name: string, index: number): string {
  const label = /^labels?[_.](.+)$/.exec(name)?.[1];
  if (label !== undefined) return LABEL + label;
  const column = COLUMNS[name.replaceAll('_', '').toLowerCase()];
  if (column === undefined)
    throw new LineError(
      `is no header: column ${index + 1} is none of ${HEADERS.join(', ')}${suggestion(name, HEADERS)}`,
    );
  return column;
}

function readFlag(cell: string): boolean {
  if (/^(?:true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  throw new LineError('disabled: wants true or false');
}

/** RFC 4180, but for line ends inside quotes: no key and no label has one. */
function splitCsv(line: string): readonly string[] {
  const cells: string[] = [];
  const cell = /\s*"((?:[^"]|"")*)"\s*(,|$)|([^",]*)(,|$)/y;
  for (;;) {
    const found = cell.exec(line);
    if (found === null)
      throw new LineError(`has a quotation mark where none can be, in cell ${cells.length + 1}`);
    const [, quoted, , plain] = found;
    cells.push(quoted === undefined ? plain!.trim() : quoted.replaceAll('""', '"'));
    if ((found[2] ?? found[4]) !== ',') return cells;
  }
}
