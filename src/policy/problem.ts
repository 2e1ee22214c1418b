/** What is wrong with a rule file, as values: the place in its tree, and a sentence that follows on from the place. */

export type Path = readonly (string | number)[];

export interface Problem {
  readonly path: Path;
  readonly message: string;
}

export type Report = (path: Path, message: string) => void;

/** `descriptors[0].rate_limit.burst`; the whole file is `(file)`. */
export function formatPath(path: Path): string {
  if (path.length === 0) return '(file)';
  return path.reduce<string>((text, step) => {
    if (typeof step === 'number') return `${text}[${step}]`;
    const name = /^[\w-]+$/.test(step) ? step : JSON.stringify(step);
    return text === '' ? name : `${text}.${name}`;
  }, '');
}

/** A value as a message shows it: short, and on one line. */
export function show(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a map';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length <= 60 ? text : `${text.slice(0, 57)}...`;
}

/** ` (did you mean "x"?)` for the nearest option, or nothing when none is near. */
export function suggestion(word: string, options: readonly string[]): string {
  const near = options
    .map((option) => ({ option, distance: editDistance(word.toLowerCase(), option) }))
    .filter(({ option, distance }) => distance <= Math.max(1, Math.floor(option.length / 3)))
    .sort((a, b) => a.distance - b.distance)[0];
  return near === undefined ? '' : ` (did you mean "${near.option}"?)`;
}

const COMPARED_LENGTH_MAX = 40;

/**
 * Insertions, deletions, replacements and swaps of neighbours between two words (optimal string alignment); words too long to be
 * a slip are far apart.
 */
function editDistance(a: string, b: string): number {
  if (a.length > COMPARED_LENGTH_MAX) return Number.POSITIVE_INFINITY;
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (i: number, j: number): number => rows[i]?.[j] as number;
  for (let i = 1; i <= a.length; i += 1) {
    rows.push([i]);
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : replaced;
      rows[i]?.push(Math.min(replaced, swapped, at(i - 1, j) + 1, at(i, j - 1) + 1));
    }
  }
  return at(a.length, b.length);
}
