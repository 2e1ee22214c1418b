/**
 * Concurrency: how many requests are in progress at once, as slots that requests hold by name.
 *
 * A request takes one slot, whatever it costs, under an id of its own; taking it again, or letting it go twice, changes nothing. A slot that
 * nobody renews is free after the limit's window, so a holder that dies keeps nothing for ever. Slots are not units: what a request turned
 * out to cost (`charge`) takes none.
 *
 * When a slot will be free, only its request knows. The wait that a denial tells is therefore a guess of a second, or less where the first
 * slot ends sooner by itself.
 *
 * Equal in kind to a counting semaphore with leases. Instants are whole milliseconds on the owner's logical clock, and nothing is rounded.
 */
import { ALLOWED, type Algorithm, denied, type Limit, type PastCharge, type Step } from './decision.ts';

export interface Slots {
  /** Who holds a slot, in no order that matters; each id once. */
  readonly ids: readonly string[];
  /** When each ends by itself, in the same order. */
  readonly endsAtMs: readonly number[];
}

/** Most requests are over within a second, and clients that poll a full limit more often than that only make it fuller. */
export const RETRY_GUESS_MS = 1_000;

/** Slots taken without asking (`hold`) may take a limit to twice its size, as a debt takes other counters one quota below empty. */
const OVERFULL = 2;

function decide(limit: Limit, state: Slots | undefined, cost: number, nowMs: number, id = ''): Step<Slots> {
  if (cost === 0) return { decision: ALLOWED, state };
  if (limit.quota === 0) return { decision: denied(limit.windowMs), state };
  const live = liveSlots(state, nowMs);
  if (!live.ids.includes(id) && live.ids.length >= limit.quota)
    return { decision: denied(waitMs(live, nowMs)), state };
  return { decision: ALLOWED, state: withSlot(live, id, nowMs + limit.windowMs) };
}

function available(limit: Limit, state: Slots | undefined, nowMs: number): number {
  return Math.max(-limit.quota, limit.quota - used(limit, state, nowMs));
}

function used(_limit: Limit, state: Slots | undefined, nowMs: number): number {
  return liveSlots(state, nowMs).ids.length;
}

function charge(_limit: Limit, state: Slots | undefined): Slots | undefined {
  return state;
}

function giveBack(
  _limit: Limit,
  state: Slots | undefined,
  { id = '' }: PastCharge,
  nowMs: number,
): Slots | undefined {
  return release(state, id, nowMs);
}

function atRestAtMs(_limit: Limit, state: Slots | undefined): number {
  return state === undefined ? Number.NEGATIVE_INFINITY : Math.max(...state.endsAtMs);
}

/**
 * The slot of a request that is in progress, for a window from now: renewed, or taken without asking when nobody here knows of it (the
 * owner has lost its memory, or was away when the request was admitted).
 */
export function hold(limit: Limit, state: Slots | undefined, id: string, nowMs: number): Slots | undefined {
  const live = liveSlots(state, nowMs);
  const isRoom = live.ids.length < limit.quota * OVERFULL || live.ids.includes(id);
  return isRoom ? withSlot(live, id, nowMs + limit.windowMs) : orNothing(live);
}

/** Lets a slot go, if it is still held. */
export function release(state: Slots | undefined, id: string, nowMs: number): Slots | undefined {
  const live = liveSlots(state, nowMs);
  return live.ids.includes(id) ? orNothing(withoutSlot(live, id)) : orNothing(live);
}

const NO_SLOTS: Slots = { ids: [], endsAtMs: [] };

/** The very state when all its slots are live, so that a denial copies nothing. */
function liveSlots(state: Slots | undefined, nowMs: number): Slots {
  if (state === undefined) return NO_SLOTS;
  if (state.endsAtMs.every((endsAtMs) => endsAtMs > nowMs)) return state;
  const isLive = (_: unknown, at: number) => state.endsAtMs[at]! > nowMs;
  return { ids: state.ids.filter(isLive), endsAtMs: state.endsAtMs.filter(isLive) };
}

function withSlot(slots: Slots, id: string, endsAtMs: number): Slots {
  const others = withoutSlot(slots, id);
  return { ids: [...others.ids, id], endsAtMs: [...others.endsAtMs, endsAtMs] };
}

function withoutSlot({ ids, endsAtMs }: Slots, id: string): Slots {
  const slot = ids.indexOf(id);
  if (slot < 0) return { ids, endsAtMs };
  return { ids: ids.toSpliced(slot, 1), endsAtMs: endsAtMs.toSpliced(slot, 1) };
}

function orNothing(slots: Slots): Slots | undefined {
  return slots.ids.length === 0 ? undefined : slots;
}

function waitMs(live: Slots, nowMs: number): number {
  let firstEndMs = Number.POSITIVE_INFINITY;
  for (const endsAtMs of live.endsAtMs) firstEndMs = Math.min(firstEndMs, endsAtMs);
  return Math.min(RETRY_GUESS_MS, firstEndMs - nowMs);
}

export const concurrency: Algorithm<Slots> = { decide, available, used, charge, giveBack, atRestAtMs };
