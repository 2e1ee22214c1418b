/**
 * Who is counted: the identity of a counter, and the owner that holds it.
 *
 * A counter is (domain, policy, enforced or shadow, the rule's path, the counted pairs): no number and no list position is in it,
 * so changing a limit or the order of a file keeps what was counted. Every part is written with its length in front, so two
 * different tuples never spell the same string, whatever delimiters their values hold.
 */
import type { Rule } from './ruleset.ts';

/** (attribute, value), sorted by attribute. A subject is its resolved attribute: `['api_key', hash]`, never a bare value. */
export type Pairs = readonly (readonly [attribute: string, value: string])[];

/** Which Durable Object holds a counter. `name` is injective over (domain, pairs) and holds no raw key. */
export interface OwnerRef {
  readonly name: string;
  /** One of the fixed number of owners that values which a client can invent are spread over. */
  readonly shared: boolean;
}

/** A rule that won in its policy, with the counter it is counted on. `unlimited` rules have no counter. */
export interface Winner {
  readonly rule: Rule;
  readonly counterId: string;
  readonly owner: OwnerRef;
  readonly pairs: Pairs;
}
