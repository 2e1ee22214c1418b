/**
 * The Workers that can stand beside the limiter in its process, in front of the same origin, so that a bench finds both on the same
 * machine at the same time: baselines, and limiters of others.
 */
import type { PeerName } from '../bundle.ts';
import type { WorkerConfig } from './config.ts';

interface Kind {
  readonly module: 'baseline' | 'demo-origin' | 'limiter' | PeerName;
  /** Switches of the baseline Worker, which says what they do. */
  readonly does?: readonly ('FIELDS' | 'DENIES')[];
  /** Its objects live in a Worker of their own, as the limiter's owners do. */
  readonly objects?: { readonly binding: string; readonly className: string };
}

const NOTHING = { binding: 'NOTHING', className: 'Nothing' };

const KINDS = {
  baseline: { module: 'baseline' },
  'object-baseline': { module: 'baseline', objects: NOTHING },
  'fields-baseline': { module: 'baseline', does: ['FIELDS'] },
  'object-fields-baseline': { module: 'baseline', objects: NOTHING, does: ['FIELDS'] },
  'denial-baseline': { module: 'baseline', does: ['DENIES'] },
  'hono-rate-limiter': { module: 'hono-rate-limiter' },
  'object-limiter': {
    module: 'object-limiter',
    objects: { binding: 'LIMITERS', className: 'ObjectLimiter' },
  },
  'rate-limiter-flexible': { module: 'rate-limiter-flexible' },
  /** The limiter without control plane and telemetry, in front of the same owners. */
  'bare-limiter': { module: 'limiter' },
  /** An origin of its own, for servers outside that forward to one. */
  'demo-origin': { module: 'demo-origin' },
} as const satisfies Readonly<Record<string, Kind>>;

export type BesideName = keyof typeof KINDS;

export const BESIDE_NAMES = Object.keys(KINDS) as readonly BesideName[];

export interface Beside {
  readonly name: BesideName;
  readonly port: number;
}

/** One Worker for each, named `besideService(...)`; of one name there may be several, and so several isolates. */
export function besideWorkers(
  beside: readonly Beside[],
  { origin, limiter }: { readonly origin: readonly string[]; readonly limiter: readonly string[] },
): readonly WorkerConfig[] {
  const workers = beside.map((place) => {
    const { module, does = [], objects }: Kind = KINDS[place.name];
    return {
      name: besideService(place),
      modules: [module],
      bindings: [
        ...(module === 'limiter' ? limiter : origin),
        ...does.map((what) => `(name = "${what}", text = "true")`),
        ...(objects === undefined ? [] : [objectsBinding(objects)]),
      ],
    };
  });
  return [...workers, ...objectsWorkers(beside)];
}

export function besideService({ name, port }: Beside): string {
  return `${name}-${port}`;
}

/** One Worker for each class: whoever binds it shares the objects. */
function objectsWorkers(beside: readonly Beside[]): Iterable<WorkerConfig> {
  const workers = new Map<string, WorkerConfig>();
  for (const { name } of beside) {
    const { module, objects }: Kind = KINDS[name];
    if (objects === undefined) continue;
    const objectClass = objects.className;
    workers.set(objectClass, {
      name: objectsService(objectClass),
      modules: [module],
      bindings: [],
      objectClasses: [objectClass],
    });
  }
  return workers.values();
}

function objectsBinding({ binding, className }: NonNullable<Kind['objects']>): string {
  const service = objectsService(className);
  return `(name = "${binding}", durableObjectNamespace = (className = "${className}", serviceName = "${service}"))`;
}

function objectsService(className: string): string {
  return `objects-${className}`;
}
