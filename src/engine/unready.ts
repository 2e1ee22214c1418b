/**
 * A slice that has nothing yet: nobody has asked it for a while, so it has given back what it had. It has a word with its root as soon as
 * somebody asks it again, and knows in a moment what it has. Until then its denials mean nothing: whoever asked waits for a place to ask again,
 * which one request of an isolate gets at a time, a moment after the last answer (`OwnerLink.hasPlace`), and as long as its deadline lets it.
 */
import type { Ask, GroupResult } from './asked.ts';

/** Asks until the answer means something; `send` has an end to that. Each question has an id of its own. */
export async function untilReady(ask: Ask, send: (ask: Ask) => Promise<GroupResult>): Promise<GroupResult> {
  for (let time = 1; ; time += 1) {
    const result = await send(time === 1 ? ask : { ...ask, id: `${ask.id}:${time}` });
    if (result.kind !== 'answered' || result.answer.isUnready !== true) return result;
  }
}
