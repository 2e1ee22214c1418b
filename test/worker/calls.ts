/** Calls as isolates make them, for tests that speak to an owner directly. */
import { env } from 'cloudflare:workers';
import type { Limit } from '../../src/core/decision.ts';
import {
  type CounterQuestion,
  MESSAGE_FORMAT,
  type OwnerCall,
  type OwnerReply,
} from '../../src/engine/messages.ts';

let questions = 0;

export interface OwnerStub {
  call(call: OwnerCall): Promise<OwnerReply>;
}

export function ownerStub(name: string) {
  return env.OWNER.getByName(name);
}

export function tokenBucket(quota: number, windowMs: number, burst = quota): Limit {
  return { algorithm: 'token_bucket', quota, windowMs, burst, maxDelayMs: 0 };
}

export function question(limit: Limit, cost = 1, more: Partial<OwnerCall> = {}): OwnerCall {
  const counter: CounterQuestion = { id: 'counter', limit, shadow: false, unitsPerSecond: 1 };
  questions += 1;
  return {
    format: MESSAGE_FORMAT,
    holder: 'test',
    version: { activation: 0, builtAtMs: 1 },
    question: { id: `q${questions}`, cost, counters: [counter] },
    ...more,
  };
}

/** Asks the owner of this name, which may have been evicted since the last time. */
export async function ask(
  name: string,
  limit: Limit,
  cost = 1,
  more: Partial<OwnerCall> = {},
): Promise<OwnerReply> {
  return (ownerStub(name) as unknown as OwnerStub).call(question(limit, cost, more));
}

export function isAllowed(reply: OwnerReply): boolean {
  return reply.answer?.outcome === 'allowed';
}

export function remaining(reply: OwnerReply): number | undefined {
  return reply.answer?.counters[0]?.remaining;
}
