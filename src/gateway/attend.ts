/**
 * The way of an admitted request that holds slots or was charged an estimate, from the limiter to the end of its response.
 *
 * Whatever happens on the way (an answer, an error, a client that leaves) ends the stay once: slots are let go, and an estimate that
 * nobody settled costs its default.
 */
import type { Context, Next } from 'hono';
import { countsSlots } from '../core/decision.ts';
import type { InProgress } from '../engine/verdict.ts';
import type { Winner } from '../policy/counter.ts';
import { Bill } from './bill.ts';
import type { Decided } from './limiter.ts';
import type { LimiterEnv } from './limiter-env.ts';
import { untilEnd } from './response-end.ts';

/** `stay` is that of the decision. */
export async function attend<E extends LimiterEnv>(
  context: Context<E>,
  { match }: Decided,
  stay: InProgress,
  next: Next,
): Promise<void> {
  const bill = match.estimate && new Bill(match.estimate, (units) => stay.settle(units));
  const end = () => {
    bill?.close();
    stay.end();
  };
  if (bill !== undefined) offer(context, bill);
  const isSlots = match.enforced.some(holdsSlot) || match.shadow.some(holdsSlot);
  // Where the platform tells of it, a client that leaves before its answer has begun.
  context.req.raw.signal.addEventListener('abort', end);
  try {
    await next();
  } catch (error) {
    end();
    throw error;
  }
  bill?.responded(context.res.headers);
  if (!isSlots && bill?.isOpen !== true) return;
  const background = (work: Promise<unknown>) => context.executionCtx.waitUntil(work);
  const response = untilEnd(context.res, context.req.raw, end, background);
  if (response === context.res) return;
  // Hono would copy the headers of the response in place onto the new one, which has them already.
  context.res = undefined;
  context.res = response;
}

/** Behind two limiters, each with an estimate, both are told. */
function offer<E extends LimiterEnv>(context: Context<E>, bill: Bill): void {
  const outer = context.get('settle');
  context.set('settle', (units: number) => {
    outer?.(units);
    bill.tell(units);
  });
}

function holdsSlot({ rule }: Winner): boolean {
  return rule.limit !== undefined && countsSlots(rule.limit);
}
