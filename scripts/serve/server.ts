/**
 * The production bundle on raw workerd, with the demo origin and whatever stands beside it, in a temporary folder.
 *
 * Everything that a server started or wrote is gone after `stop`, except a `--state` folder.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { buildHelpers, compatibilityDate, type HelperName, makeBundle } from '../bundle.ts';
import { type ServeConfig, workerdConfig } from './config.ts';
import { startWorkerd, type Workerd } from './workerd.ts';

/** All of them, needed or not: they build in a few milliseconds, and the configuration picks. */
const HELPERS: readonly HelperName[] = [
  'baseline',
  'demo-origin',
  'fault-control',
  'fault-gateway',
  'fault-owner',
];

export interface ServerOptions {
  readonly port: number;
  readonly gateways: number;
  /** Absent: the ruleset in the bundle. */
  readonly ruleset?: Ruleset | undefined;
  readonly origin?: URL | undefined;
  readonly baseline?: number | undefined;
  readonly objectBaseline?: number | undefined;
  readonly faults?: number | undefined;
  /** Absent: durable storage lives and dies with the server. */
  readonly state?: string | undefined;
}

/** Every port that a server with these options listens on. */
export function portsOf(options: ServerOptions): number[] {
  const gateways = Array.from({ length: options.gateways }, (_, index) => options.port + index);
  const others = [options.baseline, options.objectBaseline, options.faults];
  return [...gateways, ...others.filter((port) => port !== undefined)];
}

export interface ServerHooks {
  /** Stops the server, also while it is still starting. */
  readonly signal: AbortSignal;
  readonly onLog: (chunk: Buffer) => void;
}

/** Resolves when every port answers; then `ended` settles when the server is gone and its folder removed. */
export async function startServer(options: ServerOptions, { signal, onLog }: ServerHooks): Promise<Workerd> {
  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-serve-'));
  const clean = () => rm(folder, { recursive: true, force: true });
  try {
    const configPath = await writeConfig(options, { folder, signal });
    const workerd = await startWorkerd({ configPath, sockets: portsOf(options).length, signal, onLog });
    return { ended: workerd.ended.finally(clean) };
  } catch (error) {
    await clean();
    throw error;
  }
}

interface Workplace {
  readonly folder: string;
  readonly signal: AbortSignal;
}

async function writeConfig(options: ServerOptions, { folder, signal }: Workplace): Promise<string> {
  const stateDir = resolve(options.state ?? join(folder, 'state'));
  const configPath = join(folder, 'config.capnp');
  const config: ServeConfig = {
    compatibilityDate: await compatibilityDate(),
    gatewayPorts: portsOf({ port: options.port, gateways: options.gateways }),
    originUrl: options.origin,
    baselinePort: options.baseline,
    objectBaselinePort: options.objectBaseline,
    faultsPort: options.faults,
    ownRules: options.ruleset !== undefined,
    stateDir,
  };
  buildHelpers(HELPERS, folder);
  await Promise.all([
    mkdir(stateDir, { recursive: true }),
    makeBundle(folder, signal),
    writeFile(configPath, workerdConfig(config)),
    options.ruleset && writeFile(join(folder, 'rules.json'), JSON.stringify(options.ruleset)),
  ]);
  return configPath;
}
