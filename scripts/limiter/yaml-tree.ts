/**
 * YAML as a plain tree that remembers where everything stands.
 *
 * Text that YAML would take for a number stays as it is written where text is meant, so a value of `0123` is "0123" and no
 * number. Nothing in a file can make this run long: its size, its depth and what its aliases unfold to are bounded.
 */
import {
  type Alias,
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
} from 'yaml';
import type { Path, Problem } from '../../src/policy/problem.ts';

export interface Place {
  readonly line: number;
  readonly column: number;
}

/** A mistake in the YAML itself, which may be at a place that no path leads to. */
export interface YamlProblem extends Problem {
  readonly place: Place;
}

export interface YamlTree {
  readonly value: unknown;
  readonly problems: readonly YamlProblem[];
  /** Whether `value` is what was written. Broken syntax leaves a tree that would only be blamed for it. */
  readonly sound: boolean;
  /** Where the field or list item at this path starts, or the nearest one above it that is there. */
  placeOf(path: Path): Place;
}

/** Bounds what aliases unfold to. A rule takes about ten values and a hundred bytes, so a file of 1 MiB stays below half of this. */
const VALUES_MAX = 200_000;
/** Each alias is looked up by walking the file, so their number bounds that work too. */
const ALIASES_MAX = 1000;
const DEPTH_MAX = 100;

/** Fields whose values are text, also when they look like numbers. */
const TEXT_FIELDS: ReadonlySet<string> = new Set([
  'key',
  'value',
  'key_sha256',
  'tier',
  'org',
  'user',
  'domain',
  'policy',
]);

export function parseYaml(text: string): YamlTree {
  const lines = new LineCounter();
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    version: '1.2',
    merge: false,
  });
  const placeAt = (offset: number): Place => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems: YamlProblem[] = [...document.errors, ...document.warnings].map((error) => ({
    path: [],
    message: error.code === 'MULTIPLE_DOCS' ? 'holds several documents' : error.message.replace(/\s+/g, ' '),
    place: placeAt(error.pos[0]),
  }));
  const reader = new TreeReader(document);
  const sound = document.errors.every((error) => error.code === 'DUPLICATE_KEY');
  const value = sound ? reader.read(document.contents, 0) : undefined;
  for (const { node, message } of reader.problems) {
    problems.push({ path: [], message, place: placeAt(node.range?.[0] ?? 0) });
  }
  return {
    value,
    problems,
    sound: sound && reader.problems.length === 0,
    placeOf: (path) => placeAt(offsetOf(document, path)),
  };
}

class TreeReader {
  readonly problems: { readonly node: Node; readonly message: string }[] = [];
  readonly #document: Document;
  #valuesLeft = VALUES_MAX;
  #aliasesLeft = ALIASES_MAX;

  constructor(document: Document) {
    this.#document = document;
  }

  read(node: Node | null | undefined, depth: number, isText = false): unknown {
    if (node === null || node === undefined) return null;
    if (this.problems.length > 0) return null;
    this.#valuesLeft -= 1;
    if (this.#valuesLeft < 0) return this.#refuse(node, `unfolds to more than ${VALUES_MAX} values`);
    if (depth > DEPTH_MAX) return this.#refuse(node, `is nested more than ${DEPTH_MAX} levels deep`);
    if (isAlias(node)) return this.#readAlias(node, depth, isText);
    if (isSeq(node)) return node.items.map((item) => this.read(item as Node, depth + 1));
    if (isMap(node)) return this.#readMap(node.items, depth);
    if (!isScalar(node)) return null;
    return isText && typeof node.value === 'number' && node.source !== undefined ? node.source : node.value;
  }

  #readAlias(alias: Alias, depth: number, isText: boolean): unknown {
    this.#aliasesLeft -= 1;
    if (this.#aliasesLeft < 0) return this.#refuse(alias, `is one of more than ${ALIASES_MAX} aliases`);
    const target = alias.resolve(this.#document);
    return target === undefined
      ? this.#refuse(alias, 'is an alias of nothing')
      : this.read(target, depth + 1, isText);
  }

  #readMap(items: readonly unknown[], depth: number): unknown {
    const entries: [string, unknown][] = [];
    for (const item of items) {
      if (!isPair(item)) continue;
      const key = item.key as Node;
      const name = isScalar(key) ? String(key.value) : undefined;
      if (name === undefined) this.#refuse(key, 'is a key that is no text');
      else entries.push([name, this.read(item.value as Node | null, depth + 1, TEXT_FIELDS.has(name))]);
    }
    return Object.fromEntries(entries);
  }

  #refuse(node: Node, message: string): null {
    this.problems.push({ node, message });
    return null;
  }
}

function offsetOf(document: Document, path: Path): number {
  let node = document.contents as Node | null | undefined;
  let offset = node?.range?.[0] ?? 0;
  for (const step of path) {
    const here = isAlias(node) ? node.resolve(document) : node;
    if (isSeq(here) && typeof step === 'number') {
      node = here.items[step] as Node | undefined;
      offset = node?.range?.[0] ?? offset;
    } else if (isMap(here)) {
      const pair = here.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) return offset;
      node = pair.value as Node | null;
      offset = (pair.key as Node).range?.[0] ?? offset;
    } else return offset;
  }
  return offset;
}
