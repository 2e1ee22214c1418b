/** What scenarios are made of: a limit a second, and streams over a number of isolates. */
import type { Winner } from '../../../src/policy/counter.ts';
import { type Draw, evenly } from '../random.ts';
import { SECOND_MS, type WinnerOptions, winner } from '../rules.ts';
import type { Asked, Phase, Stream } from '../traffic.ts';

/**
 * How long a load lasts of which more is offered than the limit: as long as the live bench floods its gateways. Before its first answer a
 * holder has nothing to spend, so a cold start loses a tenth of a second or two of the rate, once.
 */
export const OVERLOAD_MS = 10_000;

/** The longest deadline of all, and the millisecond that a clock of whole ones may be behind. */
export const ANSWERED_WITHIN_MS = 1_001;

export interface PerSecond extends Partial<WinnerOptions> {
  readonly perSecond: number;
}

/** A rule of so much a second; it leases when that pays, as rules do that do not say otherwise. */
export function perSecond({ perSecond: quota, ...options }: PerSecond): Winner {
  return winner({ quota, windowMs: SECOND_MS, consistency: 'auto', ...options });
}

export interface LoadOptions {
  readonly isolates: number;
  /** Which isolate gets a request; each alike unless said. */
  readonly spread?: Draw;
  readonly group?: string;
  readonly phases: readonly Phase[];
}

/** One caller's requests, over all isolates. */
export function load(
  asked: Omit<Asked, 'group' | 'isolate'>,
  { isolates, spread = evenly(isolates), group = 'all', phases }: LoadOptions,
): Stream {
  return { phases, request: (random) => ({ ...asked, group, isolate: spread(random) }) };
}
