/**
 * The one list of metrics: what each is called, what it means and which labels it bears. Code that counts and code that publishes both
 * take their names from here, so a name that is not here cannot be counted.
 *
 * Names are short in the code and bear `METRIC_PREFIX` in everything that is published. A label's values are either a closed set of the
 * code (`outcome`, `source`, `region`, ...) or come from a rule file (`domain`, `policy`, `rule`); the latter give way to `OTHER` when
 * there are too many series. No label holds anything that a client sends.
 */
export const METRIC_PREFIX = 'edge_limiter_';

/** Stands for every value that there was no room for. */
export const OTHER = 'other';

export type MetricType = 'counter' | 'gauge' | 'histogram';

export interface Metric {
  readonly type: MetricType;
  readonly help: string;
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets, rising; the last bucket, which takes the rest, is not listed. */
  readonly bounds?: readonly number[];
}

/** What isolates report. */
export const REPORTED = {
  requests_total: counter(
    ['domain', 'outcome', 'source', 'region'],
    'Requests, each once, by what was decided and by whom.',
  ),
  decisions_total: counter(
    ['domain', 'policy', 'rule', 'outcome', 'source', 'region'],
    'Decisions, one for each policy that applied to a request.',
  ),
  shadow_denied_total: counter(
    ['domain', 'policy', 'rule', 'region'],
    'Requests that a policy in shadow mode would have denied.',
  ),
  near_limit_total: counter(
    ['domain', 'policy', 'rule', 'region'],
    'Requests that a policy allowed with at most a fifth of its limit left.',
  ),
  owner_calls_total: counter(['region'], 'Calls to owners of counters.'),
  owner_failures_total: counter(['region'], 'Calls to owners that failed or took too long.'),
  fallback_decisions_total: counter(
    ['region'],
    'Decisions made without the owner because it did not answer.',
  ),
  leases_granted_total: counter(['region'], 'Leases that owners granted.'),
  lease_holds_total: counter(['region'], 'Grants in which the owner told the isolate to hold.'),
  deny_memory_hits_total: counter(['region'], 'Denials from memory, which asked no owner.'),
  give_backs_total: counter(['region'], 'Charges that were to be given back.'),
  give_backs_lost_total: counter(['region'], 'Charges whose give-back never reached the owner.'),
  debts_reported_total: counter(['region'], 'Debts of an outage that were reported to owners.'),
  debts_lost_total: counter(['region'], 'Debts of an outage that never reached the owner.'),
  corrections_total: counter(['region'], 'Corrections of a cost that was only estimated.'),
  corrections_lost_total: counter(['region'], 'Corrections of a cost that never reached the owner.'),
  slot_releases_lost_total: counter(['region'], 'Releases of slots that never reached the owner.'),
  buckets_displaced_total: counter(
    ['domain', 'region'],
    'Buckets of local rules and of outages that gave way to others before they were full.',
  ),
  rules_rejected_total: counter(['domain', 'reason', 'region'], 'Published rules that were not taken over.'),
  rules_fetch_failures_total: counter(['domain', 'region'], 'Attempts to fetch rules that failed.'),
  key_lookups_total: counter(['result', 'region'], 'Look-ups of API keys.'),
  clamped_total: counter(['domain', 'action', 'region'], 'Requests of callers whom an operator has clamped.'),
  telemetry_dropped_total: counter(['what', 'region'], 'Pieces of telemetry that were dropped.'),
  series_overflow_total: counter(
    ['region'],
    'Times that a new series found no room and was counted as "other".',
  ),
  activation: gauge(['domain', 'region'], 'Number of the activation that an isolate decides by.'),
  activated_at_ms: gauge(
    ['domain', 'region'],
    'When that activation was made, in ms since 1970; 0 for bundled rules.',
  ),
  open_breakers: gauge(['region'], 'Owners that isolates do not ask because they failed lately.'),
  all_owners_unreachable: gauge(['region'], 'Isolates that reach no owner at all.'),
  owner_answer_seconds: histogram(
    ['region'],
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2],
    'Time until an owner answered.',
  ),
} as const satisfies Readonly<Record<string, Metric>>;

/** What the hub publishes of its own: made of what it knows, and never reported by anyone. */
export const PUBLISHED_BY_HUB = {
  metrics_reports_total: counter([], 'Reports of isolates that were counted, repeats left out.'),
  activation: gauge(
    ['domain', 'region', 'bound'],
    'The oldest and the newest activation that a live isolate decides by.',
  ),
  activation_age_seconds: gauge(
    ['domain', 'region'],
    'Time since the newest activation was made; absent for bundled rules.',
  ),
  open_breakers: REPORTED.open_breakers,
  all_owners_unreachable: REPORTED.all_owners_unreachable,
  isolates: gauge(['region'], 'Isolates that reported within the last two minutes.'),
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof REPORTED;

type NamesOf<Type extends MetricType> = {
  [Name in MetricName]: (typeof REPORTED)[Name]['type'] extends Type ? Name : never;
}[MetricName];

export type CounterName = NamesOf<'counter'>;
export type GaugeName = NamesOf<'gauge'>;
export type HistogramName = NamesOf<'histogram'>;

/** The labels that whoever counts has to give; the region is the isolate's. */
export type GivenLabels<Name extends MetricName> = {
  readonly [Label in Exclude<(typeof REPORTED)[Name]['labels'][number], 'region'>]: string;
};

/** The metric of that name if isolates may report it under that type. Names come from afar, so `constructor` is no metric. */
export function reportedMetric(name: unknown, type: MetricType): Metric | undefined {
  if (typeof name !== 'string' || !Object.hasOwn(REPORTED, name)) return undefined;
  const metric: Metric = REPORTED[name as MetricName];
  return metric.type === type ? metric : undefined;
}

/**
 * The labels that give way first when a metric has too many series: policy and rule, of which a domain has many, and the domain itself
 * where there are no such.
 */
export function freeLabelsOf({ labels }: Metric): readonly string[] {
  const ofPolicies = labels.filter((label) => label === 'policy' || label === 'rule');
  return ofPolicies.length > 0 ? ofPolicies : labels.filter((label) => label === 'domain');
}

function counter<const Labels extends readonly string[]>(labels: Labels, help: string) {
  return { type: 'counter', labels, help } as const;
}

function gauge<const Labels extends readonly string[]>(labels: Labels, help: string) {
  return { type: 'gauge', labels, help } as const;
}

function histogram<const Labels extends readonly string[]>(
  labels: Labels,
  bounds: readonly number[],
  help: string,
) {
  return { type: 'histogram', labels, bounds, help } as const;
}
