/**
 * What the hub publishes of the gauges of live isolates: never a series an isolate, since isolates come and go by the thousand, but how
 * many there are, sums, and the oldest and the newest activation that any of them decides by.
 */
import { type GaugeName, PUBLISHED_BY_HUB } from './catalogue.ts';
import type { LiveIsolate } from './isolates.ts';
import { type Labels, seriesKey } from './labels.ts';
import type { Family, Sample } from './prometheus.ts';

const MS_PER_SECOND = 1_000;

const SUMMED = ['open_breakers', 'all_owners_unreachable'] as const satisfies readonly GaugeName[];

interface Activations {
  readonly labels: Labels;
  readonly oldest: number;
  readonly newest: number;
  /** 0 when nobody who decides by the newest knows. */
  readonly newestAtMs: number;
}

export function publishedGauges(isolates: readonly LiveIsolate[], nowMs: number): Family[] {
  const activations = activationsOf(isolates);
  return [
    family('activation', activations.flatMap(boundsOf)),
    family(
      'activation_age_seconds',
      activations.flatMap((seen) => ageOf(seen, nowMs)),
    ),
    ...SUMMED.map((name) => family(name, sum(isolates.flatMap(({ gauges }) => samplesOf(gauges, name))))),
    family('isolates', sum(isolates.map(({ region }) => ({ labels: { region }, value: 1 })))),
  ];
}

function family(name: keyof typeof PUBLISHED_BY_HUB, samples: readonly Sample[]): Family {
  return { name, metric: PUBLISHED_BY_HUB[name], samples };
}

function boundsOf({ labels, oldest, newest }: Activations): Sample[] {
  return [
    { labels: { ...labels, bound: 'oldest' }, value: oldest },
    { labels: { ...labels, bound: 'newest' }, value: newest },
  ];
}

/** Bundled rules were activated by no one. The clock of whoever activated may be ahead of this one. */
function ageOf({ labels, newestAtMs }: Activations, nowMs: number): Sample[] {
  if (newestAtMs === 0) return [];
  return [{ labels, value: Math.max(0, nowMs - newestAtMs) / MS_PER_SECOND }];
}

function activationsOf(isolates: readonly LiveIsolate[]): Activations[] {
  const seen = new Map<string, Activations>();
  for (const { gauges } of isolates) {
    const activatedAtMs = new Map(
      samplesOf(gauges, 'activated_at_ms').map(({ labels, value }) => [keyOf(labels), value]),
    );
    for (const { labels, value } of samplesOf(gauges, 'activation')) {
      const key = keyOf(labels);
      const atMs = activatedAtMs.get(key) ?? 0;
      seen.set(key, widened(seen.get(key), { labels, oldest: value, newest: value, newestAtMs: atMs }));
    }
  }
  return [...seen.values()];
}

function widened(known: Activations | undefined, one: Activations): Activations {
  if (known === undefined) return one;
  const { labels, newest, newestAtMs } = known;
  const oldest = Math.min(known.oldest, one.oldest);
  if (one.newest > newest) return { ...one, oldest };
  const isSame = one.newest === newest;
  return { labels, oldest, newest, newestAtMs: isSame ? Math.max(newestAtMs, one.newestAtMs) : newestAtMs };
}

function sum(samples: readonly Sample[]): Sample[] {
  const sums = new Map<string, Sample>();
  for (const { labels, value } of samples) {
    const key = keyOf(labels);
    sums.set(key, { labels, value: (sums.get(key)?.value ?? 0) + value });
  }
  return [...sums.values()];
}

function samplesOf(gauges: LiveIsolate['gauges'], wanted: GaugeName): Sample[] {
  return gauges.flatMap(([name, labels, value]) => (name === wanted ? [{ labels, value }] : []));
}

function keyOf(labels: Labels): string {
  return seriesKey('', labels);
}
