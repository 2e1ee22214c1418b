/**
 * One domain in one isolate: its rules, its limiter, and what is counted about it.
 *
 * A limiter is for one domain only, since "newer" is an order among the activations of one domain.
 */
import type { EngineLog } from '../engine/ports.ts';
import { logEvent } from '../telemetry/log.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { Limiter, type LimiterObserver } from './limiter.ts';
import type { Recorder } from './recorder.ts';
import { type RulesPorts, RulesSource } from './rules-source.ts';
import type { Snapshot } from './snapshot.ts';
import { Tally } from './tally.ts';

export interface DomainOptions
  extends Pick<RulesPorts, 'stores' | 'seed' | 'sha256' | 'within' | 'fetchMsMax'> {
  readonly owners: DurableObjectNamespace;
  readonly bundled: Snapshot;
  readonly metrics: Metrics;
  readonly recorder: Recorder | undefined;
  /** The domain that the gateway itself serves. */
  readonly isOwn: boolean;
}

/** 256 KiB: a domain that is only asked about now and then. */
const OTHER_BUCKET_SLOTS = 16_384;

export class Domain {
  readonly source: RulesSource;
  readonly #newLimiter: () => Limiter;
  #limiter: Limiter | undefined;
  #isCutOff = false;
  #displaced = 0;

  constructor({ owners, bundled, metrics, recorder, isOwn, ...sources }: DomainOptions) {
    const { domain } = bundled.ruleset;
    const tally = new Tally(metrics, domain);
    this.source = new RulesSource(bundled, {
      ...sources,
      onStoreFailed: () => metrics.count('rules_fetch_failures_total', { domain }),
      onRefused: (reason) => {
        if (reason !== 'unreachable') metrics.count('rules_rejected_total', { domain, reason });
      },
      onClampsChanged: () => this.#limiter?.forgetDenied(),
      onChanged: (event) => logEvent({ ...event }),
    });
    const bucketSlots = isOwn ? {} : { bucketSlots: OTHER_BUCKET_SLOTS };
    const observer: LimiterObserver = {
      decided: (decided, facts) => {
        tally.decided(decided);
        recorder?.record(facts, decided.cost, Date.now());
      },
      count: (event, amount) => tally.event(event, amount),
      shadowDenied: (winner) => tally.shadowDenied(winner),
      answered: (tookMs) => metrics.observe('owner_answer_seconds', {}, tookMs / 1_000),
      heard: ({ version, clamps }) => this.source.heard(version, clamps),
      changed: (line) => this.#changed(line),
    };
    this.#newLimiter = () => new Limiter(owners, { observer, ...bucketSlots });
  }

  /** Made by the first question: a domain that turns out to have no rules never needs one. */
  get limiter(): Limiter {
    this.#limiter ??= this.#newLimiter();
    return this.#limiter;
  }

  /** How many buckets have had to give way since this was last asked. */
  takeDisplaced(): number {
    const before = this.#displaced;
    this.#displaced = this.#limiter?.displacedBuckets ?? 0;
    return this.#displaced - before;
  }

  /** Whether no owner at all can be reached. */
  get isCutOff(): boolean {
    return this.#isCutOff;
  }

  #changed({ event }: EngineLog): void {
    if (event === 'all_owners_unreachable') this.#isCutOff = true;
    if (event === 'owners_reachable') this.#isCutOff = false;
  }
}
