/** Talking to one owner directly, without a gate or a network. */
import type { Answer, OwnerCall, OwnerReply, Question } from '../../src/engine/messages.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { callOf, World, type WorldOptions } from './world.ts';

export interface Asking extends Partial<OwnerCall> {
  readonly id?: string;
  readonly cost?: number;
  /** What the holder says of its demand, for each counter. */
  readonly unitsPerSecond?: number;
}

export class Desk {
  readonly world: World;
  #asked = 0;

  constructor(options: WorldOptions = {}) {
    this.world = new World(options);
  }

  get owner() {
    return this.world.owner();
  }

  tell(parts: Partial<OwnerCall>): OwnerReply {
    return this.owner.handle(callOf(parts));
  }

  ask(winners: readonly Winner[], { id, cost = 1, unitsPerSecond = 1, ...parts }: Asking = {}): Answer {
    this.#asked += 1;
    const question = questionOf(id ?? `question ${this.#asked}`, winners, { cost, unitsPerSecond });
    return this.tell({ ...parts, question }).answer!;
  }

  /** How many of `times` equal questions are admitted. */
  admitted(winners: readonly Winner[], times: number, asking: Asking = {}): number {
    return Array.from({ length: times }, () => this.ask(winners, asking)).filter(
      ({ outcome }) => outcome === 'allowed',
    ).length;
  }

  used(winner: Winner): number {
    return this.owner.used(winner.counterId);
  }

  wait(ms: number): Promise<void> {
    return this.world.time.advance(ms);
  }
}

export function questionOf(
  id: string,
  winners: readonly Winner[],
  { cost = 1, unitsPerSecond = 1 }: { cost?: number; unitsPerSecond?: number } = {},
): Question {
  const counters = winners.map(({ counterId, rule }) => ({
    id: counterId,
    limit: rule.limit!,
    shadow: rule.shadow,
    unitsPerSecond,
  }));
  return { id, cost, counters };
}
