/** The names that dashboards and alerts are written against: a change of any is a change that users see. */
import { expect, test } from 'vitest';
import {
  freeLabelsOf,
  type Metric,
  PUBLISHED_BY_HUB,
  REPORTED,
  reportedMetric,
} from '../../src/telemetry/catalogue.ts';

function listOf(metrics: Readonly<Record<string, Metric>>): string[] {
  return Object.entries(metrics).map(([name, { type, labels }]) => `${type} ${name}{${labels.join(',')}}`);
}

test('what isolates report', () => {
  expect(listOf(REPORTED)).toMatchInlineSnapshot(`
    [
      "counter requests_total{domain,outcome,source,region}",
      "counter decisions_total{domain,policy,rule,outcome,source,region}",
      "counter shadow_denied_total{domain,policy,rule,region}",
      "counter near_limit_total{domain,policy,rule,region}",
      "counter owner_calls_total{region}",
      "counter owner_failures_total{region}",
      "counter fallback_decisions_total{region}",
      "counter leases_granted_total{region}",
      "counter lease_holds_total{region}",
      "counter deny_memory_hits_total{region}",
      "counter give_backs_total{region}",
      "counter give_backs_lost_total{region}",
      "counter debts_reported_total{region}",
      "counter debts_lost_total{region}",
      "counter corrections_total{region}",
      "counter corrections_lost_total{region}",
      "counter slot_releases_lost_total{region}",
      "counter buckets_displaced_total{domain,region}",
      "counter rules_rejected_total{domain,reason,region}",
      "counter rules_fetch_failures_total{domain,region}",
      "counter key_lookups_total{result,region}",
      "counter clamped_total{domain,action,region}",
      "counter telemetry_dropped_total{what,region}",
      "counter series_overflow_total{region}",
      "gauge activation{domain,region}",
      "gauge activated_at_ms{domain,region}",
      "gauge open_breakers{region}",
      "gauge all_owners_unreachable{region}",
      "histogram owner_answer_seconds{region}",
    ]
  `);
});

test('what the hub publishes of its own', () => {
  expect(listOf(PUBLISHED_BY_HUB)).toMatchInlineSnapshot(`
    [
      "counter metrics_reports_total{}",
      "gauge activation{domain,region,bound}",
      "gauge activation_age_seconds{domain,region}",
      "gauge open_breakers{region}",
      "gauge all_owners_unreachable{region}",
      "gauge isolates{region}",
    ]
  `);
});

test('every name and label is one that Prometheus takes, and every help is a sentence', () => {
  for (const [name, { labels, help }] of Object.entries<Metric>({ ...REPORTED, ...PUBLISHED_BY_HUB })) {
    expect(name).toMatch(/^[a-z][a-z_]*$/);
    for (const label of labels) expect(label).toMatch(/^[a-z]+$/);
    expect(new Set(labels).size).toBe(labels.length);
    expect(help).toMatch(/^[A-Z].*\.$/);
  }
});

test('every counter is named so, and bounds of histograms rise', () => {
  for (const [name, { type, bounds = [] }] of Object.entries<Metric>(REPORTED)) {
    expect(name.endsWith('_total')).toBe(type === 'counter');
    expect(bounds).toEqual([...bounds].sort((one, other) => one - other));
    expect(bounds.length > 0).toBe(type === 'histogram');
  }
});

test('names of every object, of the hub and of another type are no metrics to report', () => {
  for (const name of [
    'constructor',
    '__proto__',
    'toString',
    'metrics_reports_total',
    'isolates',
    '',
    undefined,
    3,
  ])
    expect(reportedMetric(name, 'counter')).toBeUndefined();
  expect(reportedMetric('activation', 'counter')).toBeUndefined();
  expect(reportedMetric('requests_total', 'counter')).toBe(REPORTED.requests_total);
});

test.each([
  ['decisions_total', ['policy', 'rule']],
  ['requests_total', ['domain']],
  ['owner_calls_total', []],
] as const)('of %s, %j give way first', (name, free) => {
  expect(freeLabelsOf(REPORTED[name])).toEqual(free);
});
