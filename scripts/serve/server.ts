/**
 * The production bundle on raw workerd, with the demo origin and whatever stands beside it, in a temporary folder.
 *
 * Everything that a server started or wrote is gone after `stop`, except a `--state` folder.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import {
  buildHelpers,
  buildPeers,
  compatibilityDate,
  type HelperName,
  makeBundle,
  type PeerName,
} from '../bundle.ts';
import type { Beside } from './beside.ts';
import { type ServeConfig, workerdConfig } from './config.ts';
import { keepAwake } from './heartbeat.ts';
import { startRecorder } from './recorder.ts';
import { startWorkerd, type Workerd } from './workerd.ts';

/** All of them, needed or not: they build in a few milliseconds, and the configuration picks. */
const HELPERS: readonly HelperName[] = [
  'baseline',
  'demo-origin',
  'fault-control',
  'fault-gateway',
  'fault-owner',
];

const PEERS: readonly PeerName[] = ['hono-rate-limiter', 'object-limiter', 'rate-limiter-flexible'];

export interface ServerOptions {
  readonly port: number;
  readonly gateways: number;
  /** Absent: the ruleset in the bundle. */
  readonly ruleset?: Ruleset | undefined;
  readonly origin?: URL | undefined;
  readonly beside: readonly Beside[];
  readonly faults?: number | undefined;
  /** Of a call from one region to another and its answer together, in milliseconds. */
  readonly regionLatency?: number | undefined;
  /** Absent: durable storage lives and dies with the server. */
  readonly state?: string | undefined;
  readonly adminToken?: string | undefined;
  /** A file that decided requests are appended to. */
  readonly record?: string | undefined;
  readonly v8Flag?: readonly string[];
}

/** Every port that a server with these options listens on. */
export function portsOf(options: ServerOptions): number[] {
  const beside = options.beside.map(({ port }) => port);
  const faults = options.faults === undefined ? [] : [options.faults];
  return [...gatewayPorts(options), ...beside, ...faults];
}

function gatewayPorts({ port, gateways }: ServerOptions): number[] {
  return Array.from({ length: gateways }, (_, index) => port + index);
}

export interface ServerHooks {
  /** Stops the server, also while it is still starting. */
  readonly signal: AbortSignal;
  readonly onLog: (chunk: Buffer) => void;
}

/** Resolves when every port answers; then `ended` settles when the server is gone and its folder removed. */
export async function startServer(options: ServerOptions, { signal, onLog }: ServerHooks): Promise<Workerd> {
  const recorder = options.record === undefined ? undefined : await startRecorder(options.record);
  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-serve-'));
  const clean = async () => {
    await recorder?.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const configPath = await writeConfig(options, { folder, signal, recorder: recorder?.address });
    const workerd = await startWorkerd({ configPath, sockets: portsOf(options).length, signal, onLog });
    keepAwake(gatewayPorts(options), workerd.ended);
    return { ended: workerd.ended.finally(clean) };
  } catch (error) {
    await clean();
    throw error;
  }
}

interface Workplace {
  readonly folder: string;
  readonly signal: AbortSignal;
  readonly recorder: string | undefined;
}

async function writeConfig(options: ServerOptions, { folder, signal, recorder }: Workplace): Promise<string> {
  const stateDir = resolve(options.state ?? join(folder, 'state'));
  const configPath = join(folder, 'config.capnp');
  const config: ServeConfig = {
    compatibilityDate: await compatibilityDate(),
    gatewayPorts: gatewayPorts(options),
    originUrl: options.origin,
    beside: options.beside,
    faultsPort: options.faults,
    regionLatencyMs: options.regionLatency,
    ownRules: options.ruleset !== undefined,
    stateDir,
    adminToken: options.adminToken,
    recorder,
    v8Flags: options.v8Flag ?? [],
  };
  buildHelpers(HELPERS, folder);
  buildPeers(
    PEERS.filter((peer) => options.beside.some(({ name }) => name === peer)),
    folder,
  );
  await mkdir(stateDir, { recursive: true });
  await Promise.all([
    makeBundle(folder, signal),
    writeFile(configPath, workerdConfig(config)),
    options.ruleset && writeFile(join(folder, 'rules.json'), JSON.stringify(options.ruleset)),
  ]);
  return configPath;
}
