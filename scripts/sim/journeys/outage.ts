/**
 * A request whose owner is out of reach: a few wait for the deadline, then nobody waits, and once the owner is back it is told what was
 * admitted without it.
 */

import type { Winner } from '../../../src/policy/counter.ts';
import { ASKED_COLD_MS, DEADLINE_MS, IN_ISOLATE_MS, PROBE_MS, RECOVERY_MS } from '../budgets.ts';
import { HEALTHY } from '../faults.ts';
import type { Journey, Walk } from '../journey.ts';
import { MINUTE_MS, winner } from '../rules.ts';
import { units } from '../words.ts';

/** An isolate's breaker opens with the third unanswered question in a row. */
const UNANSWERED = 3;

/** While the owner comes back, requests come this often. */
const EVERY_MS = 50;

export const OUTAGE: Journey = {
  name: 'outage',
  about: 'an owner out of reach: deadline, fallback, breaker, recovery and debt',
  isolates: 1,
  async go(walk) {
    const rule = winner({ quota: 600, windowMs: MINUTE_MS, consistency: 'strict' });
    const asking = { isolate: 0, enforced: [rule] };
    walk.whenLogged(({ holder }, { event }) =>
      walk.hop(holder, event === 'breaker_opened' ? 'opens its breaker' : 'closes its breaker'),
    );
    walk.leg('all is well');
    await walk.ask({ ...asking, budgetMs: ASKED_COLD_MS });
    walk.leg('the owner is out of reach: the deadline, then the fallback');
    walk.world.faults = { ...HEALTHY, callsLost: 1 };
    for (let count = 0; count < UNANSWERED; count += 1)
      await walk.ask({ ...asking, budgetMs: DEADLINE_MS + IN_ISOLATE_MS });
    walk.leg('the breaker is open: nobody waits; now and then a probe');
    await walk.ask({ ...asking, budgetMs: IN_ISOLATE_MS });
    await walk.pass(PROBE_MS);
    await walk.ask({ ...asking, budgetMs: IN_ISOLATE_MS });
    walk.leg(`the owner is back: a request every ${EVERY_MS} ms`);
    await recover(walk, rule);
    // What is still on its way has nothing to do with the request to come.
    await walk.pass(RECOVERY_MS);
    walk.leg('as before');
    await walk.ask(asking);
  },
};

/** Until the breaker has closed. Of all the messages those are told of that carry a debt. */
async function recover(walk: Walk, rule: Winner): Promise<void> {
  const { holder } = walk.world.isolates[0]!;
  const { host } = walk.world.owner(rule.owner.name);
  const backMs = walk.nowMs;
  const tookSince = () => ({ ms: walk.nowMs - backMs, budgetMs: RECOVERY_MS });
  const inUse = () => units(host.used(rule.counterId));
  walk.hop(host.name, `is back, with ${inUse()} in use`);
  walk.world.faults = HEALTHY;
  let isClosed = false;
  let isFirst = true;
  walk.tellOf((_, { debts = [] }) => debts.length > 0);
  walk.whenLogged(() => {
    isClosed = true;
    walk.hop(holder, `closes its breaker: exact again; the owner has ${inUse()} in use`, {
      took: tookSince(),
    });
  });
  while (!isClosed && walk.nowMs < backMs + 2 * RECOVERY_MS) {
    void walk.askQuietly({ isolate: 0, enforced: [rule] }).then(({ source }) => {
      if (source === 'owner' && isFirst)
        walk.hop(holder, 'has the first verdict of its owner again', { source, took: tookSince() });
      isFirst &&= source !== 'owner';
    });
    await walk.pass(EVERY_MS);
  }
  if (!isClosed) walk.hop(holder, 'has not closed its breaker', { took: tookSince() });
  walk.tellOf(() => true);
}
