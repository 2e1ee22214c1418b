/**
 * Who sends what: streams of requests at random times, each at a rate that changes with the time.
 */
import type { Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import type { Region } from '../../src/policy/region.ts';
import type { Random } from './random.ts';
import type { Stage } from './scenario.ts';
import type { Time } from './time.ts';

export interface Asked {
  /** Callers of one name are measured together, apart from others. */
  readonly group: string;
  /** The slot of the isolate that the request comes to. */
  readonly isolate: number;
  readonly enforced: readonly Winner[];
  readonly shadow?: readonly Winner[];
  /** Where the request is: regional rules are counted there. */
  readonly region?: Region;
  /** Units; 1 unless said. */
  readonly cost?: number;
  /** How long an admitted request is in progress, in milliseconds; over at once unless said. */
  readonly lastsMs?: number;
  /** When the caller first asked for the same, in milliseconds of the run: it has been denied, and has come back. */
  readonly firstAskedMs?: number;
  /** What the caller does when it has its answer. */
  readonly heard?: (heard: Heard, stage: Stage) => void;
}

export interface Heard {
  readonly verdict: Verdict;
  readonly askedMs: number;
  /** The isolate that decided. */
  readonly holder: string;
}

export interface Phase {
  readonly forMs: number;
  readonly perSecond: number;
}

export interface Stream {
  /** One after the other; nothing is sent once they are over. Requests within one come at random, as from many senders. */
  readonly phases: readonly Phase[];
  readonly request: (random: Random) => Asked;
}

export interface StreamHost {
  readonly time: Time;
  readonly random: Random;
  readonly send: (asked: Asked) => void;
}

export function startStream({ phases, request }: Stream, { time, random, send }: StreamHost): void {
  const sendNext = (at: number, endsMs: number): void => {
    const { perSecond } = phases[at]!;
    const waitMs = perSecond === 0 ? Number.POSITIVE_INFINITY : random.exponential(1_000 / perSecond);
    // Arrivals at random do not remember when the last one was, so the next phase begins to draw at its own beginning.
    if (time.elapsedMs + waitMs >= endsMs) {
      time.after(endsMs - time.elapsedMs, () => beginPhase(at + 1, endsMs));
      return;
    }
    time.after(waitMs, () => {
      send(request(random));
      sendNext(at, endsMs);
    });
  };
  const beginPhase = (at: number, startsMs: number): void => {
    const phase = phases[at];
    if (phase !== undefined) sendNext(at, startsMs + phase.forMs);
  };
  beginPhase(0, time.elapsedMs);
}

/** Part by part, over and over, until `totalMs` are full. */
export function repeated(cycle: readonly Phase[], totalMs: number): readonly Phase[] {
  const phases: Phase[] = [];
  for (let leftMs = totalMs, at = 0; leftMs > 0; at += 1) {
    const phase = cycle[at % cycle.length]!;
    phases.push({ ...phase, forMs: Math.min(leftMs, phase.forMs) });
    leftMs -= phase.forMs;
  }
  return phases;
}
