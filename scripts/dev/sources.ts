/**
 * What a developer edits, watched: the Worker's code and its rule file. Each save that works is handed on; one that does not is
 * reported, and what was there before goes on.
 */
import { readFile, watch } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { context, type Plugin } from 'esbuild';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { PROJECT_ROOT } from '../command.ts';
import { compileRuleFile } from '../compile-rules.ts';

export interface Watched<T> {
  readonly signal: AbortSignal;
  readonly onChange: (value: T) => void;
}

/** Bundles the Worker now and after each save. esbuild prints what is wrong with the code. */
export async function watchCode({ signal, onChange }: Watched<string>): Promise<void> {
  const handOn: Plugin = {
    name: 'hand-on',
    setup: ({ onEnd }) =>
      onEnd(({ outputFiles }) => {
        const code = outputFiles?.[0]?.text;
        if (code !== undefined) onChange(code);
      }),
  };
  const bundling = await context({
    entryPoints: [join(PROJECT_ROOT, 'src', 'index.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    target: 'es2024',
    conditions: ['workerd', 'worker', 'browser'],
    external: ['cloudflare:*', 'node:*'],
    sourcemap: 'inline',
    logLevel: 'warning',
    plugins: [handOn],
  });
  signal.addEventListener('abort', () => bundling.dispose());
  await bundling.watch();
}

/** An editor may empty a file before it writes it anew, or put another in its place: wait until it has done so. */
const SETTLE_MS = 50;

/** Compiles the rule file after each save that changes it. The folder is watched: a file put in place by a rename is another file. */
export async function watchRules(path: string, { signal, onChange }: Watched<Ruleset>): Promise<void> {
  let seen = await readFile(path, 'utf8');
  for await (const { filename } of watch(dirname(resolve(path)), { signal })) {
    if (filename !== basename(path)) continue;
    await pause(SETTLE_MS, undefined, { signal });
    const text = await readFile(path, 'utf8').catch(() => seen);
    if (text === seen) continue;
    seen = text;
    const result = await compileRuleFile(path);
    for (const line of 'errors' in result ? result.errors : result.warnings) console.error(line);
    if ('errors' in result) console.error('the rules before this save stay in force');
    else onChange(result.ruleset);
  }
}
