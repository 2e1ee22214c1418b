/**
 * What a request that was charged an estimate turns out to cost: from a header of its response, or from the Worker's own code.
 *
 * With a header the response's head settles the matter at once. Without one it stays open until the response has ended, and what the code
 * said last is what counts, so a stream that is broken off costs what was known of it. Whatever is absent or absurd costs the
 * stated default.
 */
import type { Estimate } from '../policy/ruleset.ts';
import { logEvent } from '../telemetry/log.ts';

/** As the rule format has it for costs: more is a mistake, and a debt ends at a quota anyway. */
const UNITS_MAX = 1_000_000;

export class Bill {
  readonly #estimate: Estimate;
  readonly #settle: (units: number) => void;
  #told: number | undefined;

  /** `settle` is told the cost; only its first call counts. */
  constructor(estimate: Estimate, settle: (units: number) => void) {
    this.#estimate = estimate;
    this.#settle = settle;
  }

  /** Whether only the end of the response can settle it. */
  get isOpen(): boolean {
    return this.#estimate.header === undefined;
  }

  /** The code says what the request has cost so far; it may say so again and again. */
  tell(units: number): void {
    if (isUnits(units)) this.#told = units;
    else logEvent({ event: 'cost_invalid', reason: `settle was told ${String(units)}` });
  }

  responded(headers: Headers): void {
    const { header } = this.#estimate;
    if (header === undefined) return;
    const value = headers.get(header);
    const units = value === null ? undefined : unitsOf(value);
    if (value !== null && units === undefined)
      logEvent({ event: 'cost_invalid', reason: `the response’s ${header} is ${value.slice(0, 64)}` });
    this.#told ??= units;
    this.close();
  }

  /** Nothing more will be known. */
  close(): void {
    this.#settle(this.#told ?? this.#estimate.defaultCost);
  }
}

function isUnits(units: number): boolean {
  return Number.isSafeInteger(units) && units >= 0 && units <= UNITS_MAX;
}

/** A number of whole units in digits, and nothing else. */
function unitsOf(text: string): number | undefined {
  const units = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  return isUnits(units) ? units : undefined;
}
