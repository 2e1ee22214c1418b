/** Requests share what the isolate knows, and never a promise: on the platform, all that a request has begun may die with it. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { describe, expect, test } from 'vitest';
import { Gate } from '../../src/engine/gate.ts';
import type { Ports } from '../../src/engine/ports.ts';
import type { Verdict } from '../../src/engine/verdict.ts';
import type { Winner } from '../../src/policy/counter.ts';
import { SECOND_MS, type WinnerOptions, winner } from './rules.ts';
import { FIRST_VERSION, World } from './world.ts';

const REQUESTS = 12;
const DEADLINE_MS = 150;

/** One request is dead: no answer to a call of its own comes back, and no timer that it has set goes off. */
class Mortals {
  readonly world = new World();
  readonly callers: (number | undefined)[] = [];
  readonly problems: unknown[] = [];
  readonly #request = new AsyncLocalStorage<number>();
  readonly #dead: number;
  readonly #gate: Gate;

  constructor(dead: number) {
    this.#dead = dead;
    this.#gate = new Gate(this.#ports(), { holder: 'isolate', bucketSlots: 64 });
  }

  ask(request: number, enforced: readonly Winner[]): Promise<{ source: string; tookMs: number }> {
    const { time } = this.world;
    const sentMs = time.elapsedMs;
    const asked = {
      version: FIRST_VERSION,
      enforced,
      shadow: [],
      cost: 1,
      largestCost: 1,
      deadlineMs: DEADLINE_MS,
    };
    const verdict = this.#request.run(request, () => this.#gate.decide(asked, (work) => this.#keep(work)));
    return Promise.resolve(verdict).then(({ source }: Verdict) => ({
      source,
      tookMs: time.elapsedMs - sentMs,
    }));
  }

  #ports(): Ports {
    const { ports } = this.world;
    const never = new Promise<never>(() => {});
    const isDead = () => this.#request.getStore() === this.#dead;
    return {
      ...ports,
      timer: (delayMs) => (isDead() ? { done: never, cancel: () => {} } : ports.timer(delayMs)),
      callOwner: (owner, call) => {
        this.callers.push(this.#request.getStore());
        const reply = ports.callOwner(owner, call);
        return isDead() ? never : reply;
      },
    };
  }

  #keep(work: Promise<unknown>): void {
    work.catch((problem: unknown) => this.problems.push(problem));
  }
}

/** Twelve requests in one moment, to owners that have answered before; what came of all but the dead one. */
async function together(dead: number, options: readonly WinnerOptions[]) {
  const mortals = new Mortals(dead);
  const { time } = mortals.world;
  const winners = options.map((each) => winner(each));
  for (const { owner } of winners)
    await time.settle(mortals.ask(-1, [winner({ quota: 9, policy: 'before', owner: owner.name })]));
  mortals.callers.length = 0;
  const living: Promise<{ source: string; tookMs: number }>[] = [];
  for (let request = 0; request < REQUESTS; request += 1) {
    const verdict = mortals.ask(request, winners);
    if (request !== dead) living.push(verdict);
  }
  const verdicts = await time.settle(Promise.all(living));
  const later = async () => {
    await time.advance(2 * SECOND_MS);
    return time.settle(mortals.ask(REQUESTS, winners));
  };
  return { mortals, verdicts, later };
}

describe.each([0, 5, REQUESTS - 1])('when request %i of twelve dies', (dead) => {
  test.each<readonly [string, readonly WinnerOptions[]]>([
    ['a bucket', [{ quota: 100 }]],
    ['a window', [{ quota: 100, algorithm: 'fixed_window' }]],
    ['a limit that they exceed', [{ quota: 5 }]],
    ['requests in progress', [{ quota: 100, algorithm: 'concurrency' }]],
    ['two owners', [{ quota: 100 }, { quota: 100, policy: 'other', owner: 'other' }]],
  ])('%s: the others are decided by calls of their own', async (_, options) => {
    const { mortals, verdicts } = await together(dead, options);
    for (const verdict of verdicts) expect(verdict).toEqual({ source: 'owner', tookMs: 2 });
    const callers = options.flatMap(() => Array.from({ length: REQUESTS }, (_, request) => request));
    expect(mortals.callers.toSorted()).toEqual(callers.toSorted());
    expect(mortals.problems).toEqual([]);
  });

  test.each<readonly [string, WinnerOptions]>([
    ['leased', { quota: 600, consistency: 'leased' }],
    ['so hot that its owner may be split', { quota: 6_000, windowMs: SECOND_MS, consistency: 'auto' }],
  ])(
    'a counter that is %s: the others are decided within their deadline, and in two seconds all is as it was',
    async (_, options) => {
      const { mortals, verdicts, later } = await together(dead, [options]);
      for (const { tookMs } of verdicts) expect(tookMs).toBeLessThanOrEqual(DEADLINE_MS);
      expect(await later()).toEqual({ source: 'owner', tookMs: 2 });
      expect(mortals.problems).toEqual([]);
    },
  );
});
