/**
 * Two gateways and their owners, each a process of its own on loopback, made of the production bundle.
 *
 * The gateways' objects of class `FarOwner` have the ids of the owners, since both namespaces are made from the same unique key. What
 * owners store is in a folder that outlives their process.
 */
import { randomInt } from 'node:crypto';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildHelpers, compatibilityDate, makeBundle } from '../../scripts/bundle.ts';
import { freePorts, portProblem } from '../../scripts/serve/ports.ts';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { WorkerdProcess } from './process.ts';

export const GATEWAYS = 2;

/** The bundle and what stands beside it, made once for all topologies. */
export interface Build {
  readonly folder: string;
  readonly date: string;
}

export async function build(ruleset: Ruleset): Promise<Build> {
  const folder = await mkdtemp(join(tmpdir(), 'edge-limiter-chaos-'));
  buildHelpers(['demo-origin'], folder);
  await Promise.all([
    makeBundle(folder),
    copyFile(join(import.meta.dirname, 'far-owner.js'), join(folder, 'far-owner.js')),
    writeFile(join(folder, 'rules.json'), JSON.stringify(ruleset)),
  ]);
  return { folder, date: await compatibilityDate() };
}

export function removeBuild({ folder }: Build): Promise<void> {
  return rm(folder, { recursive: true, force: true });
}

export interface Topology {
  readonly owners: WorkerdProcess;
  readonly gateways: readonly WorkerdProcess[];
  readonly gatewayPorts: readonly number[];
}

/** Nothing runs yet: whoever starts it can then also end what did not start in full. */
export async function newTopology({ folder, date }: Build): Promise<Topology> {
  const ownersPort = await quietPort();
  const firstPort = await freePorts(GATEWAYS);
  const gatewayPorts = Array.from({ length: GATEWAYS }, (_, index) => firstPort + index);
  const stateDir = await mkdtemp(join(folder, 'state-'));
  const ownersConfig = join(folder, `owners-${ownersPort}.capnp`);
  await writeFile(ownersConfig, configOf(ownersServices({ date, stateDir })));
  const gateways = gatewayPorts.map(async (port) => {
    const config = join(folder, `gateway-${port}.capnp`);
    await writeFile(config, configOf(gatewayServices({ date, ownersPort }), port));
    return new WorkerdProcess([config]);
  });
  return {
    owners: new WorkerdProcess([`--debug-port=127.0.0.1:${ownersPort}`, ownersConfig]),
    gateways: await Promise.all(gateways),
    gatewayPorts,
  };
}

export async function startTopology({ owners, gateways }: Topology): Promise<void> {
  await Promise.all([owners, ...gateways].map((each) => each.start()));
}

export async function endTopology({ owners, gateways }: Topology): Promise<void> {
  await Promise.all([owners, ...gateways].map((each) => each.kill()));
}

/** Below the ports that systems give out by themselves, so that nobody is given it while the owners are away. */
const QUIET_PORTS = { first: 20_000, end: 30_000 };
const ATTEMPTS_MAX = 100;

async function quietPort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = randomInt(QUIET_PORTS.first, QUIET_PORTS.end);
    if ((await portProblem([port])) === undefined) return port;
  }
  throw new Error(`no free port from ${QUIET_PORTS.first} to ${QUIET_PORTS.end}`);
}

function ownersServices({ date, stateDir }: { date: string; stateDir: string }): string[] {
  return [
    `(name = "owners", worker = (compatibilityDate = "${date}", modules = [${BUNDLE}],
      durableObjectNamespaces = [(className = "LimiterOwner", uniqueKey = "owners", enableSql = true)],
      durableObjectStorage = (localDisk = "state")))`,
    `(name = "state", disk = (path = ${JSON.stringify(stateDir)}, writable = true))`,
  ];
}

function gatewayServices({ date, ownersPort }: { date: string; ownersPort: number }): string[] {
  return [
    `(name = "gateway", worker = (compatibilityDate = "${date}", modules = [${BUNDLE}], bindings = [
      (name = "OWNER", durableObjectNamespace = (className = "FarOwner", serviceName = "far-owners")),
      (name = "ORIGIN", service = "origin"),
      (name = "SERVER_TIMING", text = "true"),
      (name = "BUNDLED_RULES", json = embed "rules.json")]))`,
    `(name = "far-owners", worker = (compatibilityDate = "${date}",
      modules = [(name = "far-owner.js", esModule = embed "far-owner.js")],
      bindings = [
        (name = "PROCESSES", workerdDebugPort = void),
        (name = "OWNERS_ADDRESS", text = "127.0.0.1:${ownersPort}")],
      durableObjectNamespaces = [(className = "FarOwner", uniqueKey = "owners")],
      durableObjectStorage = (inMemory = void)))`,
    `(name = "origin", worker = (compatibilityDate = "${date}",
      modules = [(name = "demo-origin.js", esModule = embed "demo-origin.js")]))`,
  ];
}

const BUNDLE = '(name = "index.js", esModule = embed "index.js")';

function configOf(services: readonly string[], port?: number): string {
  const socket = `(name = "http", address = "127.0.0.1:${port}", service = "gateway", http = ())`;
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [${services.join(',\n')}],
  sockets = [${port === undefined ? '' : socket}]);
`;
}
