/**
 * Who may use the admin API: whoever shows the token. It is compared in constant time; an address that shows wrong ones is refused for a
 * while, right token or not, or the limit would not limit guessing.
 */
import { BucketTable } from '../core/bucket-table.ts';
import type { Limit } from '../core/decision.ts';
import { wholeSeconds } from '../engine/level.ts';
import { countedBy } from '../policy/address.ts';
import { digestOf } from '../policy/sha256.ts';
import { logEvent } from '../telemetry/log.ts';
import type { ProblemDetails } from './problems.ts';

/** A person's slips, and no more; each isolate counts by itself, without I/O, so that guessing costs nobody anything. */
const FAILURES: Limit = { algorithm: 'token_bucket', quota: 10, windowMs: 60_000, burst: 10, maxDelayMs: 0 };
const FAILURES_SLOTS = 4_096;

/** An attacker has a whole /64, so that is what is counted. */
const IPV6_PREFIX = 64;

/** Longer than any token; what is longer is not hashed but refused. */
const TOKEN_LENGTH_MAX = 1_024;

export class Guard {
  readonly #failures: BucketTable;

  constructor(seed: number) {
    this.#failures = new BucketTable({ slots: FAILURES_SLOTS, seed });
  }

  /** Why the request may not pass; `undefined` when it may. */
  refuse(request: Request, token: string, nowMs: number): ProblemDetails | undefined {
    const address = addressOf(request);
    const shown = shownBy(request);
    // Who shows nothing guesses nothing.
    const step = this.#failures.decide(address, FAILURES, shown === '' ? 0 : 1, nowMs);
    if (step.outcome === 'denied') {
      const seconds = wholeSeconds(step.retryAfterMs, 1);
      return {
        status: 429,
        error: 'too_many_failures',
        message: `This address has shown too many wrong tokens. Try again in ${seconds} seconds.`,
        headers: { 'Retry-After': String(seconds) },
      };
    }
    if (shown !== '' && isSame(shown, token)) {
      this.#failures.giveBack(address, FAILURES, { cost: 1, chargedAtMs: nowMs }, nowMs);
      return undefined;
    }
    if (shown !== '') logEvent({ event: 'admin_refused', address });
    return {
      status: 401,
      error: 'unauthorized',
      message: 'This path needs "Authorization: Bearer" with the admin token.',
      headers: { 'WWW-Authenticate': 'Bearer realm="edge-limiter"' },
    };
  }
}

function addressOf(request: Request): string {
  return countedBy(request.headers.get('cf-connecting-ip') ?? undefined, IPV6_PREFIX);
}

function shownBy(request: Request): string {
  const shown = request.headers.get('authorization') ?? '';
  return /^bearer +(.+)$/i.exec(shown)?.[1] ?? shown;
}

/** Over digests of one length, so that neither the token's length nor how much of it was right shows in the time it takes. */
function isSame(shown: string, token: string): boolean {
  if (shown.length > TOKEN_LENGTH_MAX) return false;
  return crypto.subtle.timingSafeEqual(digestOf(shown), digestOf(token));
}
