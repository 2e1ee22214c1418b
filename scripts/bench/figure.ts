/**
 * What a measurement answers with: figures, each with one value per round.
 *
 * A figure that matters is a ratio or a difference against a baseline of the same round; absolute ones are there to be read.
 */
import { median } from './statistics.ts';

export interface Figure {
  /** `measurement.what`: unique, and what a bar refers to. */
  readonly name: string;
  /** How the numbers are to be read: `x` (a ratio), `ms`, `ns`, `bytes`, `per second` ... */
  readonly unit: string;
  /** One value a round. */
  readonly values: readonly number[];
}

export interface Summary {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export interface Measurement {
  readonly name: string;
  /** One line for `--help`. */
  readonly about: string;
  run(progress: (line: string) => void): Promise<readonly Figure[]>;
}

/** Enough for a median that one disturbed round does not move. */
export const ROUNDS = 5;

export function summary(figure: Figure): Summary {
  return {
    median: median(figure.values),
    lowest: Math.min(...figure.values),
    highest: Math.max(...figure.values),
  };
}
