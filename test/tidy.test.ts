/**
 * The rules of the house that no compiler keeps: who may import whom, what the pure rooms may not touch, how long a file may be.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';

const SRC = join(import.meta.dirname, '..', 'src');

interface Room {
  /** The rooms that it may import from, besides itself. */
  readonly imports: readonly string[];
  /** Decides by arguments alone: clock, randomness, timers and network belong to whoever calls it. */
  readonly pure?: true;
}

const ROOMS: Readonly<Record<string, Room>> = {
  core: { imports: [], pure: true },
  telemetry: { imports: [] },
  policy: { imports: ['core'], pure: true },
  engine: { imports: ['core', 'policy', 'telemetry'], pure: true },
  objects: { imports: ['core', 'policy', 'engine', 'telemetry'] },
  gateway: { imports: ['core', 'policy', 'engine', 'telemetry'] },
  admin: { imports: ['core', 'policy', 'engine', 'telemetry'] },
  /** Built from `rules/`; it holds data only. */
  generated: { imports: [] },
  /** `src/index.ts` itself: the one place where everything meets. */
  '.': { imports: ['core', 'policy', 'engine', 'objects', 'gateway', 'admin', 'telemetry', 'generated'] },
};

/** `core` is arithmetic and needs no package; packages of the others are their own choice. */
const ROOMS_WITHOUT_PACKAGES = new Set(['core']);

const LINES_MAX = 350;

const IMPURE =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\bcrypto\.(?:getRandomValues|randomUUID)\b|\bperformance\b|\bsetTimeout\b|\bsetInterval\b|\bscheduler\b|\bfetch\(|\bcloudflare:|\bprocess\b|\bconsole\b/;

interface SourceFile {
  readonly path: string;
  readonly room: string;
  readonly text: string;
  /** Without comments: they may speak of what the code may not do. */
  readonly code: string;
}

const files = readSources();

describe('rooms', () => {
  it('are all known here', () => {
    expect([...new Set(files.map((file) => file.room))].filter((room) => !(room in ROOMS))).toEqual([]);
  });

  it('import one way only', () => {
    const wrong = files.flatMap((file) =>
      importsOf(file)
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => roomOf(join(dirname(file.path), specifier)))
        .filter((room) => room !== file.room && !ROOMS[file.room]?.imports.includes(room))
        .map((room) => `${file.path} imports from ${room}`),
    );
    expect(wrong).toEqual([]);
  });

  it('of arithmetic need no package', () => {
    const wrong = files
      .filter((file) => ROOMS_WITHOUT_PACKAGES.has(file.room))
      .flatMap((file) =>
        importsOf(file)
          .filter((specifier) => !specifier.startsWith('.'))
          .map((specifier) => `${file.path} imports ${specifier}`),
      );
    expect(wrong).toEqual([]);
  });

  it('that are pure read no clock, no randomness and no network', () => {
    const wrong = files
      .filter((file) => ROOMS[file.room]?.pure)
      .flatMap((file) => matchingLines(file, file.code, IMPURE));
    expect(wrong).toEqual([]);
  });
});

describe('files', () => {
  it(`fit in one sitting: at most ${LINES_MAX} lines`, () => {
    const long = files.map((file) => ({ path: file.path, lines: file.text.split('\n').length }));
    expect(long.filter((file) => file.lines > LINES_MAX)).toEqual([]);
  });

  it('open with what they promise', () => {
    expect(files.filter((file) => !file.text.startsWith('/**')).map((file) => file.path)).toEqual([]);
  });

  it('hold no unfinished business', () => {
    expect(files.flatMap((file) => matchingLines(file, file.text, /\b(?:TODO|FIXME|XXX|HACK)\b/))).toEqual(
      [],
    );
  });
});

function readSources(): SourceFile[] {
  return readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => {
      const text = readFileSync(join(SRC, path), 'utf8');
      return { path, room: roomOf(path), text, code: withoutComments(text) };
    });
}

function roomOf(path: string): string {
  const [first, second] = relative('.', path).split(/[\\/]/);
  return second === undefined ? '.' : (first ?? '.');
}

function importsOf(file: SourceFile): string[] {
  const pattern = /\b(?:import|export)\b[^'";]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\s*\(?\s*['"]([^'"]+)['"]/g;
  return [...file.code.matchAll(pattern)].map((match) => match[1] ?? match[2] ?? '');
}

function matchingLines(file: SourceFile, text: string, pattern: RegExp): string[] {
  const lines = text.split('\n').map((line, index) => ({ line, place: `${file.path}:${index + 1}` }));
  return lines.filter(({ line }) => pattern.test(line)).map(({ line, place }) => `${place} ${line.trim()}`);
}

/** Replaces comments by the line ends they span, so that line numbers stay true. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''))
    .replace(/(^|\s)\/\/[^\n]*/g, '$1');
}
