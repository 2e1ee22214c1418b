/**
 * The limiter in front of the demo origin, under Miniflare, with code and rules that can be replaced while it runs.
 *
 * Counters live in a folder that outlasts a reload: saving a file does not give anybody a new quota.
 */
import { Miniflare, type MiniflareOptions } from 'miniflare';
import type { Ruleset } from '../../src/policy/ruleset.ts';
import { STOP_SIGNALS } from '../command.ts';

export interface DevOptions {
  readonly port: number;
  /** Absent: the demo origin, a second Worker. */
  readonly origin?: URL | undefined;
  readonly compatibilityDate: string;
  readonly demoOriginCode: string;
  readonly stateDir: string;
  /** Absent: there is no admin API. */
  readonly adminToken?: string | undefined;
}

export interface DevContent {
  readonly code: string;
  readonly ruleset: Ruleset;
}

export class DevServer {
  readonly #options: DevOptions;
  #content: Partial<DevContent> = {};
  #miniflare: Miniflare | undefined;
  /** Replacements happen one after the other. */
  #last: Promise<void> = Promise.resolve();

  constructor(options: DevOptions) {
    this.#options = options;
  }

  /** Puts new code or rules in force; settles when they are. Nothing runs before both are there. */
  replace(content: Partial<DevContent>): Promise<void> {
    this.#content = { ...this.#content, ...content };
    this.#last = this.#last.then(() => this.#apply()).catch((error: Error) => console.error(error.message));
    return this.#last;
  }

  async stop(): Promise<void> {
    await this.#last;
    await this.#miniflare?.dispose();
  }

  async #apply(): Promise<void> {
    const { code, ruleset } = this.#content;
    if (code === undefined || ruleset === undefined) return;
    const options = miniflareOptions(this.#options, { code, ruleset });
    if (this.#miniflare === undefined) this.#miniflare = startMiniflare(options);
    else await this.#miniflare.setOptions(options);
    await this.#miniflare.ready;
  }
}

/**
 * Miniflare ends the whole process on a signal, with an error code and before anything can be put away. Its handlers are taken off
 * again: `stop` disposes of it in order.
 */
function startMiniflare(options: MiniflareOptions): Miniflare {
  const before = new Map(STOP_SIGNALS.map((name) => [name, new Set(process.listeners(name))]));
  const miniflare = new Miniflare(options);
  for (const [name, ours] of before) {
    for (const listener of process.listeners(name)) if (!ours.has(listener)) process.off(name, listener);
  }
  return miniflare;
}

function miniflareOptions(options: DevOptions, { code, ruleset }: DevContent): MiniflareOptions {
  const { compatibilityDate, origin } = options;
  const originBinding =
    origin === undefined
      ? ({ ORIGIN: { type: 'worker', worker: 'demo-origin' } } as const)
      : ({ ORIGIN_URL: { type: 'text', value: origin.href } } as const);
  return {
    host: '127.0.0.1',
    port: options.port,
    cf: false,
    resourcePersistencePath: options.stateDir,
    workers: [
      {
        config: {
          name: 'limiter',
          compatibilityDate,
          manifest: oneModule(code),
          env: {
            ...objectBindings(),
            REFRESH_SECONDS: { type: 'text', value: '1' },
            ...(options.adminToken === undefined
              ? {}
              : { ADMIN_TOKEN: { type: 'text', value: options.adminToken } as const }),
            SERVER_TIMING: { type: 'text', value: 'true' },
            BUNDLED_RULES: { type: 'json', value: JSON.parse(JSON.stringify(ruleset)) },
            ...originBinding,
          },
          exports: objectExports(),
        },
        // Here the client says who it is, so that one machine can play many callers.
        dev: { stripCfConnectingIp: false },
      },
      { config: { name: 'demo-origin', compatibilityDate, manifest: oneModule(options.demoOriginCode) } },
    ],
  };
}

const OBJECTS = { OWNER: 'LimiterOwner', CONTROL: 'ControlPlane', METRICS: 'MetricsHub' };

function objectBindings() {
  const bindings = Object.entries(OBJECTS).map(([name, exportName]) => {
    return [name, { type: 'durable-object', worker: 'limiter', exportName }] as const;
  });
  return Object.fromEntries(bindings);
}

function objectExports() {
  const classes = Object.values(OBJECTS).map((name) => {
    return [name, { type: 'durable-object', storage: 'sqlite' }] as const;
  });
  return Object.fromEntries(classes);
}

function oneModule(contents: string) {
  return {
    mainModule: 'index.js',
    modulesRoot: '/',
    modules: { 'index.js': { type: 'esm', contents } },
  } as const;
}
