/**
 * The workerd configuration behind `serve`: which Workers there are, what each may call, and which port leads to which.
 *
 * Each gateway is a service of its own, and so an isolate of its own, as on a fleet of edge machines. All of them bind the
 * objects of one `owner` service. Paths of modules are relative to the configuration file.
 */

import { type Beside, besideService, besideWorkers } from './beside.ts';

export interface ServeConfig {
  readonly compatibilityDate: string;
  readonly gatewayPorts: readonly number[];
  /** Absent: the demo origin, a Worker in the same process. */
  readonly originUrl?: URL | undefined;
  readonly beside: readonly Beside[];
  readonly faultsPort?: number | undefined;
  /** Absent: the regions are all in one place. */
  readonly regionLatencyMs?: number | undefined;
  /** A compiled ruleset stands in `rules.json` and takes the place of the one in the bundle. */
  readonly ownRules: boolean;
  /** Where the objects' storage is kept; absolute. */
  readonly stateDir: string;
  /** Absent: there is no admin API. */
  readonly adminToken?: string | undefined;
  /** Where decided requests are sent to, as `127.0.0.1:PORT`. */
  readonly recorder?: string | undefined;
  /** Given to V8 as they are. */
  readonly v8Flags: readonly string[];
}

/**
 * The names that modules go by inside workerd. The helpers were written against `src/index.ts`; under these names, what they
 * import is the production bundle.
 */
const MODULES = {
  limiter: '(name = "src/index.ts", esModule = embed "index.js")',
  baseline: '(name = "baseline.js", esModule = embed "baseline.js")',
  'hono-rate-limiter': '(name = "hono-rate-limiter.js", esModule = embed "hono-rate-limiter.js")',
  'object-limiter': '(name = "object-limiter.js", esModule = embed "object-limiter.js")',
  'rate-limiter-flexible': '(name = "rate-limiter-flexible.js", esModule = embed "rate-limiter-flexible.js")',
  'demo-origin': '(name = "demo-origin.js", esModule = embed "demo-origin.js")',
  'fault-control': '(name = "fault-control.js", esModule = embed "fault-control.js")',
  'fault-gateway': '(name = "scripts/workers/fault-gateway.ts", esModule = embed "fault-gateway.js")',
  'fault-owner': '(name = "scripts/workers/fault-owner.ts", esModule = embed "fault-owner.js")',
} as const;

export interface WorkerConfig {
  readonly name: string;
  /** The first is the main module. */
  readonly modules: readonly (keyof typeof MODULES)[];
  readonly bindings: readonly string[];
  /** The classes of objects that the Worker holds. */
  readonly objectClasses?: readonly string[];
}

interface SocketConfig {
  readonly port: number;
  readonly service: string;
}

export function workerdConfig(config: ServeConfig): string {
  const workers = [
    ...limiterWorkers(config),
    ...originWorkers(config),
    ...besideWorkers(config.beside, { origin: originBindings(config), limiter: bareBindings(config) }),
    ...faultWorkers(config),
  ];
  const { recorder } = config;
  const services = [
    ...(recorder === undefined
      ? []
      : [`(name = "recorder", external = (address = ${text(recorder)}, http = ()))`]),
    ...workers.map((worker) => workerService(worker, config.compatibilityDate)),
    `(name = "state", disk = (path = ${text(config.stateDir)}, writable = true))`,
    // A self-hosted origin usually stands on a private address, which workerd refuses unless told otherwise.
    '(name = "internet", network = (allow = ["public", "private"], tlsOptions = (trustBrowserCas = true)))',
  ];
  return [
    'using Workerd = import "/workerd/workerd.capnp";',
    'const config :Workerd.Config = (',
    `  services = ${list(services)},`,
    `  sockets = ${list(sockets(config).map(socket))},`,
    `  v8Flags = ${list(config.v8Flags.map(text))}`,
    ');',
    '',
  ].join('\n');
}

function limiterWorkers(config: ServeConfig): WorkerConfig[] {
  const faults = config.faultsPort !== undefined;
  const isApart = config.regionLatencyMs !== undefined;
  const shared = [
    ...rulesAndOrigin(config),
    '(name = "REFRESH_SECONDS", text = "1")',
    ...(config.adminToken === undefined ? [] : [`(name = "ADMIN_TOKEN", text = ${text(config.adminToken)})`]),
    ...(config.recorder === undefined ? [] : ['(name = "RECORDER", service = "recorder")']),
  ];
  const gateways = config.gatewayPorts.map((_, index) => ({
    name: gatewayName(index),
    modules: faults ? (['fault-gateway', 'limiter'] as const) : (['limiter'] as const),
    bindings: [...objectBindings(', serviceName = "owner"'), ...shared],
  }));
  const owner = {
    name: 'owner',
    modules: isApart || faults ? (['fault-owner', 'limiter'] as const) : (['limiter'] as const),
    bindings: [
      ...objectBindings(''),
      ...shared,
      ...(isApart ? [`(name = "REGION_LATENCY_MS", text = "${config.regionLatencyMs}")`] : []),
    ],
    objectClasses: Object.values(OBJECTS),
  };
  return [...gateways, owner];
}

/** The objects by their bindings. They all live in one service. */
const OBJECTS = { OWNER: 'LimiterOwner', CONTROL: 'ControlPlane', METRICS: 'MetricsHub' };

/** `where` is where the objects live, seen from the Worker that binds them. */
function objectBindings(where: string): string[] {
  return Object.entries(OBJECTS).map(
    ([name, className]) =>
      `(name = "${name}", durableObjectNamespace = (className = "${className}"${where}))`,
  );
}

/** The limiter as it is without a control plane: what a bench compares with. */
function bareBindings(config: ServeConfig): string[] {
  return [
    '(name = "OWNER", durableObjectNamespace = (className = "LimiterOwner", serviceName = "owner"))',
    ...rulesAndOrigin(config),
  ];
}

function rulesAndOrigin(config: ServeConfig): string[] {
  return [
    ...originBindings(config),
    '(name = "SERVER_TIMING", text = "true")',
    ...(config.ownRules ? ['(name = "BUNDLED_RULES", json = embed "rules.json")'] : []),
  ];
}

function originWorkers(config: ServeConfig): WorkerConfig[] {
  return config.originUrl === undefined ? [{ name: 'origin', modules: ['demo-origin'], bindings: [] }] : [];
}

function originBindings(config: ServeConfig): string[] {
  return config.originUrl === undefined
    ? ['(name = "ORIGIN", service = "origin")']
    : [`(name = "ORIGIN_URL", text = ${text(config.originUrl.href)})`];
}

function faultWorkers(config: ServeConfig): WorkerConfig[] {
  if (config.faultsPort === undefined) return [];
  const gateways = config.gatewayPorts.map(
    (_, index) =>
      `(name = "GATEWAY_${index}", service = (name = "${gatewayName(index)}", entrypoint = "counts"))`,
  );
  const bindings = ['(name = "OWNER_FAULTS", service = "owner")', ...gateways];
  return [{ name: 'fault-control', modules: ['fault-control'], bindings }];
}

function sockets(config: ServeConfig): SocketConfig[] {
  const all = [
    ...config.gatewayPorts.map((port, index) => ({ port, service: gatewayName(index) })),
    ...config.beside.map((place) => ({ port: place.port, service: besideService(place) })),
  ];
  if (config.faultsPort !== undefined) all.push({ port: config.faultsPort, service: 'fault-control' });
  return all;
}

function gatewayName(index: number): string {
  return `gateway-${index}`;
}

function workerService(worker: WorkerConfig, compatibilityDate: string): string {
  const { objectClasses = [] } = worker;
  const namespaces = objectClasses.map(
    (name) => `(className = "${name}", uniqueKey = "${name}", enableSql = true)`,
  );
  const objects =
    objectClasses.length === 0
      ? ''
      : `,
      durableObjectNamespaces = ${list(namespaces)},
      durableObjectStorage = (localDisk = "state")`;
  return `(name = "${worker.name}", worker = (
      compatibilityDate = "${compatibilityDate}",
      modules = ${list(worker.modules.map((name) => MODULES[name]))},
      bindings = ${list(worker.bindings)}${objects}
    ))`;
}

/** Loopback only: under `serve` a client may write its own CF-Connecting-IP, so the open net must not reach it directly. */
function socket({ port, service }: SocketConfig): string {
  return `(name = "port-${port}", address = "127.0.0.1:${port}", service = "${service}", http = (cfBlobHeader = "CF-Blob"))`;
}

function list(items: readonly string[]): string {
  return `[${items.map((item) => `\n    ${item}`).join(',')}]`;
}

/** Cap'n Proto's text takes JSON's escapes of quotes, backslashes and line ends; other characters stand as they are. */
function text(value: string): string {
  return JSON.stringify(value);
}
