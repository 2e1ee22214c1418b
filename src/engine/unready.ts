/**
 * A slice that has nothing yet: nobody has asked it for a while, so it has given back what it had. It has a word with its root as soon as
 * somebody asks it again, and knows in a moment what it has. Until then its denials mean nothing, and whoever asks waits a little and asks
 * again, within the request's deadline.
 */
import type { Ask, GroupResult } from './asked.ts';
import type { OwnerLink } from './owner-link.ts';
import type { Timer } from './ports.ts';

/** About as long as a slice needs for a word with its root, which is nearby. */
const PAUSE_MS = 20;

export interface UnreadyPorts {
  readonly link: OwnerLink;
  readonly nowMs: () => number;
  readonly timer: (delayMs: number) => Timer;
}

/** Asks until the answer means something, or the answer to another question would come too late. Each question has an id of its own. */
export async function untilReady(
  ask: Ask,
  send: (ask: Ask) => Promise<GroupResult>,
  { link, nowMs, timer }: UnreadyPorts,
): Promise<GroupResult> {
  for (let time = 1; ; time += 1) {
    const result = await send(time === 1 ? ask : { ...ask, id: `${ask.id}:${time}` });
    const pauseMs = Math.max(PAUSE_MS, link.usualMs);
    const untilMs = ask.startedMs + link.deadlineMs(ask.deadlineMs);
    if (!isUnready(result) || nowMs() + pauseMs + link.usualMs > untilMs) return result;
    await timer(pauseMs).done;
  }
}

function isUnready(result: GroupResult): boolean {
  return result.kind === 'answered' && result.answer.isUnready === true;
}
