/**
 * A rule file on disk, read and compiled: a ruleset with its warnings, or every error at once.
 *
 * Both are lines `file:line:column path: message`, in the order of the file, as editors and terminals link them.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { compile } from '../../src/policy/compile.ts';
import { formatPath, type Problem } from '../../src/policy/problem.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { type Place, parseYaml, type YamlTree } from './yaml-tree.ts';

export type LoadedRules =
  | { readonly ruleset: Ruleset; readonly warnings: readonly string[] }
  | { readonly errors: readonly string[] };

/** Thousands of rules fit in a tenth of this; what is larger is no rule file. */
const FILE_BYTES_MAX = 1_048_576;

/** Rejects only when the file cannot be read. */
export async function loadRuleFile(path: string, builtAtMs: number): Promise<LoadedRules> {
  return loadRules(await readFile(path), { name: path, builtAtMs });
}

export function loadRules(
  bytes: Uint8Array,
  { name, builtAtMs }: { readonly name: string; readonly builtAtMs: number },
): LoadedRules {
  const refuse = (message: string): LoadedRules => ({ errors: [`${name}:1:1 (file): ${message}`] });
  if (bytes.length > FILE_BYTES_MAX)
    return refuse(`has ${bytes.length} bytes; a rule file has at most ${FILE_BYTES_MAX}`);
  const text = decode(bytes);
  if (text === undefined) return refuse('is not UTF-8 text');

  const tree = parseYaml(text);
  const syntax = tree.problems.map((problem) => ({ problem, place: problem.place }));
  if (!tree.sound) return { errors: toLines(syntax, name) };
  const compiled = compile(tree.value, { sha256, builtAtMs });
  const errors = [...syntax, ...(compiled.ok ? [] : placed(compiled.errors, tree))];
  if (!compiled.ok || errors.length > 0) return { errors: toLines(errors, name) };
  return { ruleset: compiled.ruleset, warnings: toLines(placed(compiled.warnings, tree), name) };
}

export function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

interface PlacedProblem {
  readonly problem: Problem;
  readonly place: Place;
}

function placed(problems: readonly Problem[], tree: YamlTree): readonly PlacedProblem[] {
  return problems.map((problem) => ({ problem, place: tree.placeOf(problem.path) }));
}

function toLines(problems: readonly PlacedProblem[], name: string): readonly string[] {
  const inOrder = problems.toSorted((a, b) => a.place.line - b.place.line || a.place.column - b.place.column);
  return inOrder.map(({ problem, place }) => {
    return `${name}:${place.line}:${place.column} ${formatPath(problem.path)}: ${problem.message}`;
  });
}

function decode(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
