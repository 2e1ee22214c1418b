/**
 * Counts what was decided: each request once, and each of its policies. A handle is looked up once for a rule and kept, since this
 * happens on the way of every request.
 */
import { capacity } from '../core/decision.ts';
import type { EngineEvent } from '../engine/ports.ts';
import type { PolicyReport, Source, VerdictOutcome } from '../engine/verdict.ts';
import type { Winner } from '../policy/counter.ts';
import { ruleLabel } from '../policy/rule-label.ts';
import type { Rule } from '../policy/ruleset.ts';
import type { CounterName } from '../telemetry/catalogue.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { Counter } from '../telemetry/series.ts';
import type { Decided } from './limiter.ts';

/** A caller that has no more than this part left is near its limit. */
const NEAR_PART_LEFT = 0.2;

type Kind = `${VerdictOutcome} ${Source}`;

interface RuleCounters {
  readonly byKind: Map<Kind, Counter>;
  near: Counter | undefined;
}

const EVENTS = {
  owner_call: 'owner_calls_total',
  owner_failure: 'owner_failures_total',
  deny_memory_hit: 'deny_memory_hits_total',
  fallback_decision: 'fallback_decisions_total',
  give_back: 'give_backs_total',
  give_back_lost: 'give_backs_lost_total',
  lease_granted: 'leases_granted_total',
  lease_hold: 'lease_holds_total',
  debt_reported: 'debts_reported_total',
  debt_lost: 'debts_lost_total',
  correction_made: 'corrections_total',
  correction_lost: 'corrections_lost_total',
  slot_release_lost: 'slot_releases_lost_total',
} as const satisfies Readonly<Record<Exclude<EngineEvent, 'shadow_denied'>, CounterName>>;

export class Tally {
  readonly #metrics: Metrics;
  readonly #domain: string;
  readonly #requests = new Map<Kind | 'unmatched', Counter>();
  readonly #rules = new WeakMap<Rule, RuleCounters>();

  constructor(metrics: Metrics, domain: string) {
    this.#metrics = metrics;
    this.#domain = domain;
  }

  decided({ verdict, match }: Decided): void {
    const { outcome, source, policies } = verdict;
    this.#countRequest(match.unmatched ? 'unmatched' : `${outcome} ${source}`, { outcome, source });
    if (match.clamped !== undefined)
      this.#metrics.count('clamped_total', { domain: this.#domain, action: match.clamped.clamp.action });
    const { enforced } = match;
    for (const [at, report] of policies.entries()) {
      // Reports mostly come in the order of the winners.
      const winner = enforced[at]?.rule.policy === report.policy ? enforced[at] : find(enforced, report);
      if (winner !== undefined) this.#countPolicy(winner.rule, report);
    }
  }

  shadowDenied({ rule }: Winner): void {
    this.#metrics.count('shadow_denied_total', this.#labelsOf(rule));
  }

  event(event: EngineEvent, amount: number): void {
    // Counted by policy instead.
    if (event !== 'shadow_denied') this.#metrics.count(EVENTS[event], {}, amount);
  }

  #countRequest(kind: Kind | 'unmatched', { outcome, source }: { outcome: string; source: string }): void {
    let counter = this.#requests.get(kind);
    if (counter === undefined) {
      const labels = { outcome: kind === 'unmatched' ? kind : outcome, source, domain: this.#domain };
      counter = this.#metrics.counter('requests_total', labels);
      this.#requests.set(kind, counter);
    }
    counter.add();
  }

  #countPolicy(rule: Rule, { outcome, source, level, limit }: PolicyReport): void {
    let counters = this.#rules.get(rule);
    if (counters === undefined) {
      counters = { byKind: new Map(), near: undefined };
      this.#rules.set(rule, counters);
    }
    const kind: Kind = `${outcome} ${source}`;
    let counter = counters.byKind.get(kind);
    if (counter === undefined) {
      counter = this.#metrics.counter('decisions_total', { ...this.#labelsOf(rule), outcome, source });
      counters.byKind.set(kind, counter);
    }
    counter.add();
    if (outcome !== 'allowed' || level === undefined) return;
    if (level.remaining > capacity(limit) * NEAR_PART_LEFT) return;
    counters.near ??= this.#metrics.counter('near_limit_total', this.#labelsOf(rule));
    counters.near.add();
  }

  #labelsOf(rule: Rule): { domain: string; policy: string; rule: string } {
    return { domain: this.#domain, policy: rule.policy, rule: ruleLabel(rule) };
  }
}

function find(winners: readonly Winner[], { policy }: PolicyReport): Winner | undefined {
  return winners.find(({ rule }) => rule.policy === policy);
}
