/**
 * What a scenario is: a name, and one or more cases of it, each a plan that a simulation carries out.
 */
import type { Version } from '../../src/policy/ruleset.ts';
import type { Faults } from './faults.ts';
import type { Random } from './random.ts';
import type { Row } from './report.ts';
import type { Asked, Stream } from './traffic.ts';
import type { Witness } from './witness.ts';
import type { World } from './world.ts';

export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly cases: readonly Case[];
  /** What the rows say when they are laid side by side: lines below the table. */
  readonly finding?: (rows: readonly Row[]) => readonly string[];
}

export interface Case {
  /** Tells the cases of one scenario apart; empty when there is one only. */
  readonly label: string;
  readonly plan: (random: Random) => Plan;
  /** Takes a minute or more, and is left out of what every change has to pass. */
  readonly isLong?: boolean;
  /** Breaks a promise as the engine stands, which is said and does not fail a run. */
  readonly isKnownToBreak?: boolean;
}

export interface Plan {
  readonly isolates: number;
  readonly streams: readonly Stream[];
  /** In place of what is usual, until the world heals. */
  readonly faults?: Partial<Faults>;
  readonly happenings?: readonly Happening[];
  /** When the faults end, and from when on everything must be as if they had never been. */
  readonly heal?: { readonly atMs: number; readonly liveFromMs: number };
  /** The largest cost of a request. */
  readonly largestCost?: number;
  /** How long a request waits for an owner. */
  readonly deadlineMs?: number;
  /** Owners are out of reach at times: measured against what `engine/bound` says of that, and not against the bare limit. */
  readonly isDegraded?: boolean;
  /** Regions that ask for limits which they share; 1 unless said. */
  readonly regions?: number;
  /** Some of them are cut off from others at times. */
  readonly isPartitioned?: boolean;
  /** Everybody has an answer within so long, or the run fails. */
  readonly answeredWithinMs?: number;
  /** Units that callers inside their quota may be refused; none unless said. */
  readonly inQuotaRefusalsMax?: number;
}

/** Something that happens once. */
export interface Happening {
  readonly atMs: number;
  readonly happen: (stage: Stage) => void;
}

/** What a happening can do. */
export interface Stage {
  readonly world: World;
  readonly witness: Witness;
  send(asked: Asked): void;
  /** From now on requests come with this version of the rules. */
  adopt(version: Version): void;
  /** A sentence for whoever reads the table. */
  remark(sentence: string): void;
  /** A promise that only the scenario knows of has been broken: the run fails. */
  breach(what: string): void;
}
