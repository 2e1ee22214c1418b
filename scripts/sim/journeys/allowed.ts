/** An allowed request: of an owner that has to start, of one that runs, and out of a lease, which waits for nobody. */
import { ASKED_COLD_MS, IN_ISOLATE_MS } from '../budgets.ts';
import type { Journey } from '../journey.ts';
import { perSecond } from '../scenarios/kit.ts';

/** More often than `auto` asks for before it leases. */
const HOT_EVERY_MS = 10;
const HOT_REQUESTS = 60;

export const ALLOWED: Journey = {
  name: 'allowed',
  about: 'an allowed request: a cold owner, a warm one, a lease',
  isolates: 1,
  async go(walk) {
    const enforced = [perSecond({ perSecond: 100 })];
    walk.leg('a cold owner');
    await walk.ask({ isolate: 0, enforced, budgetMs: ASKED_COLD_MS });
    walk.leg('a warm owner');
    await walk.pass(1_000);
    await walk.ask({ isolate: 0, enforced });
    walk.leg(`from a lease, once the key is hot (${HOT_REQUESTS} more requests, ${HOT_EVERY_MS} ms apart)`);
    await walk.pass(1_000);
    // Of so many messages only those that speak of a lease say anything new, and of those the first.
    let isTold = false;
    walk.tellOf((_, { question }) => {
      const isNews = question?.lease !== undefined && !isTold;
      isTold ||= isNews;
      return isNews;
    });
    for (let count = 0; count < HOT_REQUESTS; count += 1) {
      void walk.askQuietly({ isolate: 0, enforced });
      await walk.pass(HOT_EVERY_MS);
    }
    await walk.ask({ isolate: 0, enforced, budgetMs: IN_ISOLATE_MS });
  },
};
