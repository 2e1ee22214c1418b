/**
 * The production bundle, exactly as a deploy would upload it.
 *
 * `serve`, `bench` and `deploy:check` all run what `wrangler deploy` makes, so a measurement or a smoke test never speaks about
 * some other build of the same sources. Works without a network.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildSync } from 'esbuild';
import { captureScript, PROJECT_ROOT, WRANGLER } from './command.ts';

export interface Bundle {
  /** The one ES module that holds the Worker. */
  readonly path: string;
  readonly gzipBytes: number;
}

/** Bundles `src/index.ts` into `outDir` (made if missing). Rejects with wrangler's own words when it cannot. */
export async function makeBundle(outDir: string, signal?: AbortSignal): Promise<Bundle> {
  await captureScript(WRANGLER, ['deploy', '--dry-run', '--outdir', outDir], signal);
  const path = join(outDir, 'index.js');
  return { path, gzipBytes: gzipSync(await readFile(path)).byteLength };
}

/** The date whose runtime behaviour the Worker asks for; the helper Workers beside it run under the same. */
export async function compatibilityDate(): Promise<string> {
  const config = await readFile(join(PROJECT_ROOT, 'wrangler.toml'), 'utf8');
  const date = /^compatibility_date = "(\d{4}-\d{2}-\d{2})"/m.exec(config)?.[1];
  if (date === undefined) throw new Error('wrangler.toml has no compatibility_date');
  return date;
}

/** The Workers of `scripts/workers` that stand beside the limiter in `serve`, `dev` and `bench`. */
export type HelperName = 'baseline' | 'demo-origin' | 'fault-control' | 'fault-gateway' | 'fault-owner';

/**
 * Turns helper Workers into JavaScript, one `NAME.js` each. What a helper imports of `src/index.ts` stays as it is written: it is the
 * production bundle, which the server's config names accordingly, and not a second copy of its sources.
 */
export function buildHelpers(names: readonly HelperName[], outDir: string): void {
  // Synchronous: the asynchronous form leaves a service process beside the server for as long as it runs.
  buildSync({
    entryPoints: names.map((name) => join(PROJECT_ROOT, 'scripts', 'workers', `${name}.ts`)),
    outdir: outDir,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    external: ['*/src/index.ts', 'cloudflare:*'],
    logLevel: 'silent',
  });
}

/** The limiters of others that the bench compares with, one Worker each. */
export type PeerName = 'hono-rate-limiter' | 'object-limiter' | 'rate-limiter-flexible';

/** Bundles peers with the packages that they are made of, one `NAME.js` each. */
export function buildPeers(names: readonly PeerName[], outDir: string): void {
  buildSync({
    entryPoints: names.map((name) => join(PROJECT_ROOT, 'scripts', 'workers', 'peers', `${name}.ts`)),
    outdir: outDir,
    bundle: true,
    format: 'esm',
    target: 'es2024',
    // Leaves out what a package says that it only needs in Node.
    platform: 'browser',
    external: ['cloudflare:*'],
    minify: true,
    logLevel: 'silent',
  });
}
