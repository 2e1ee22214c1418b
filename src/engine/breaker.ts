/**
 * Whether an owner is worth asking: so that an outage costs the requests of an isolate a handful of deadlines and not one each.
 *
 * An owner's breaker opens after a few failures in a row, or at once when the owner says that it is overloaded. While it is open nobody
 * waits; now and then one probe asks in the background. When a probe is answered, the breaker closes gradually: it lets one question
 * through, then two, then four, so that an owner that has just come back is not buried. When many different owners fail
 * and none answers, the outage is the network's, and one breaker for all opens: owners never asked before are not each tried in turn.
 */

/** Two can be bad luck (a lost connection and its retry); the third wait in a row is the last. */
const FAILURES_TO_OPEN = 3;

/** Half of what the promise "exact again within two seconds" leaves for noticing, so that closing has the other half. */
const PROBE_INTERVAL_MS = 500;

/** Probes of many isolates must not arrive together: each interval is up to a fifth longer. */
const PROBE_JITTER = 0.2;

/** A probe is waited for at most a second; one that is not heard of after this long was of a request that vanished. */
const PROBE_LOST_MS = 1_500;

/** With this many questions at once answered in time the breaker is closed: 1, 2, 4 ... 64 takes seven answers. */
const CLOSED_AT = 64;

/** All owners count as unreachable when this many distinct ones failed and none answered for `ALL_SILENT_MS`. */
const DISTINCT_FAILED = 20;
const ALL_SILENT_MS = 2_000;

type State =
  | { readonly kind: 'closed'; readonly failures: number }
  | { readonly kind: 'open'; readonly probeAtMs: number }
  | { readonly kind: 'closing'; readonly allowance: number };

/** What to do with a question: ask, decide without the owner, or decide without it and probe in the background. */
export type Advice = 'ask' | 'avoid' | 'probe';

export type Change = 'opened' | 'closed' | undefined;

/** The breaker of one owner. */
export class Breaker {
  #state: State = { kind: 'closed', failures: 0 };

  get isClosed(): boolean {
    return this.#state.kind === 'closed';
  }

  /** `inFlight` is how many questions this isolate has with the owner. A probe that is advised must be made. */
  advise({ inFlight, nowMs }: { inFlight: number; nowMs: number }): Advice {
    const state = this.#state;
    if (state.kind === 'closed') return 'ask';
    if (state.kind === 'closing') return inFlight < state.allowance ? 'ask' : 'avoid';
    if (nowMs < state.probeAtMs) return 'avoid';
    this.#state = { kind: 'open', probeAtMs: nowMs + PROBE_LOST_MS };
    return 'probe';
  }

  answered(): Change {
    const state = this.#state;
    const allowance = state.kind === 'closing' ? state.allowance * 2 : 1;
    if (state.kind === 'closed' || allowance >= CLOSED_AT) {
      this.#state = { kind: 'closed', failures: 0 };
      return state.kind === 'closed' ? undefined : 'closed';
    }
    this.#state = { kind: 'closing', allowance };
    return undefined;
  }

  failed({ overloaded, nowMs, jitter }: { overloaded: boolean; nowMs: number; jitter: number }): Change {
    const state = this.#state;
    if (state.kind === 'closed' && !overloaded && state.failures + 1 < FAILURES_TO_OPEN) {
      this.#state = { kind: 'closed', failures: state.failures + 1 };
      return undefined;
    }
    const probeAtMs = nowMs + PROBE_INTERVAL_MS * (1 + PROBE_JITTER * jitter);
    this.#state = { kind: 'open', probeAtMs };
    return state.kind === 'closed' ? 'opened' : undefined;
  }
}

/** The breaker for all owners together. */
export class FleetBreaker {
  readonly #failedOwners = new Set<string>();
  #lastAnswerMs = Number.NEGATIVE_INFINITY;
  #probeAtMs = Number.NEGATIVE_INFINITY;
  #isOpen = false;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  advise(nowMs: number): Advice {
    if (!this.#isOpen) return 'ask';
    if (nowMs < this.#probeAtMs) return 'avoid';
    this.#probeAtMs = nowMs + PROBE_INTERVAL_MS;
    return 'probe';
  }

  answered(nowMs: number): Change {
    this.#failedOwners.clear();
    this.#lastAnswerMs = nowMs;
    if (!this.#isOpen) return undefined;
    this.#isOpen = false;
    return 'closed';
  }

  failed(owner: string, nowMs: number): Change {
    if (this.#failedOwners.size < DISTINCT_FAILED) this.#failedOwners.add(owner);
    const isSilent = nowMs - this.#lastAnswerMs >= ALL_SILENT_MS;
    if (this.#isOpen || this.#failedOwners.size < DISTINCT_FAILED || !isSilent) return undefined;
    this.#isOpen = true;
    this.#probeAtMs = nowMs + PROBE_INTERVAL_MS;
    return 'opened';
  }
}
