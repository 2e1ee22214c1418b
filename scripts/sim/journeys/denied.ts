/** A denied request: by its owner, then by what the isolate remembers of that; and back when it was told to come. */
import { ASKED_COLD_MS, IN_ISOLATE_MS } from '../budgets.ts';
import type { Journey } from '../journey.ts';
import { MINUTE_MS, winner } from '../rules.ts';

export const DENIED: Journey = {
  name: 'denied',
  about: 'a denied request: its owner, the memory of a denial, and back at its Retry-After',
  isolates: 2,
  async go(walk) {
    const enforced = [winner({ quota: 10, burst: 1, windowMs: MINUTE_MS, consistency: 'auto' })];
    walk.leg('another isolate takes the last unit');
    await walk.ask({ isolate: 1, enforced, budgetMs: ASKED_COLD_MS });
    walk.leg('the owner denies');
    await walk.ask({ isolate: 0, enforced });
    walk.leg('the isolate remembers');
    await walk.pass(100);
    const { retryAfterMs } = await walk.ask({ isolate: 0, enforced, budgetMs: IN_ISOLATE_MS });
    walk.leg('back when it was told');
    await walk.pass(retryAfterMs);
    await walk.ask({ isolate: 0, enforced });
  },
};
