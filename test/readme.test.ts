/** What the documents show must work as it stands: rule files load, code bundles, commands and links lead somewhere. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buildSync } from 'esbuild';
import { describe, expect, it } from 'vitest';
import packageJson from '../package.json' with { type: 'json' };
import { loadRules } from '../scripts/limiter/load.ts';

const ROOT = join(import.meta.dirname, '..');
const README = 'README.md';
const documents = [
  README,
  'CHANGELOG.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.md'))
    .map((path) => join('docs', path)),
];

interface Block {
  readonly name: string;
  readonly text: string;
}

/** The fenced blocks of a language, named by the line at which they begin. */
function blocksIn(document: string, language: string): readonly Block[] {
  const text = read(document);
  const fence = new RegExp(`^ *\`\`\`${language}\n([\\s\\S]*?)^ *\`\`\`$`, 'gm');
  return [...text.matchAll(fence)].map((match) => ({
    name: `${document}:${text.slice(0, match.index).split('\n').length + 1}`,
    text: match[1] ?? '',
  }));
}

function read(document: string): string {
  return readFileSync(join(ROOT, document), 'utf8');
}

describe('rule files in the documents', () => {
  const files = documents
    .flatMap((document) => blocksIn(document, 'yaml'))
    .filter(({ text }) => text.startsWith('domain:'));

  it('are there to be tried', () => {
    expect(files.map(({ name }) => name)).toContainEqual(expect.stringMatching(/^README\.md:/));
  });

  it.each(files)('$name loads, with nothing to warn of', ({ name, text }) => {
    const loaded = loadRules(new TextEncoder().encode(text), { name, builtAtMs: 1 });
    expect('errors' in loaded ? loaded.errors : loaded.warnings).toEqual([]);
  });
});

describe('code in the README', () => {
  it.each(blocksIn(README, 'ts'))('$name bundles, from names that the package exports', ({ text }) => {
    const bundle = () =>
      buildSync({
        stdin: { contents: text, resolveDir: ROOT, loader: 'ts' },
        bundle: true,
        write: false,
        format: 'esm',
        external: ['cloudflare:*', './ruleset.json'],
        logLevel: 'silent',
      });
    expect(bundle).not.toThrow();
  });
});

describe.each(documents)('%s', (document) => {
  it('names only commands that there are', () => {
    const named = [...read(document).matchAll(/npm run ([\w:]+)/g)].map((match) => match[1] ?? '');
    expect(named.filter((name) => !Object.hasOwn(packageJson.scripts, name))).toEqual([]);
  });

  it('links only to what is there', () => {
    const links = [...read(document).matchAll(/\]\((?!https?:)([^)#]+)/g)].map((match) => match[1] ?? '');
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(document), link)))).toEqual([]);
  });

  it('names only source files that there are', () => {
    const files = [...read(document).matchAll(/`((?:src|test|scripts|rules)\/[\w./-]+)`/g)].map(
      (match) => match[1] ?? '',
    );
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });
});
