/**
 * A key too hot for one object: its owner becomes the root of several middle owners beside it, its slices, and each isolate asks one of them.
 *
 * Once an owner is asked by many holders more often than it can answer, it lends to each of its slices an equal part of what is left, says
 * so to whoever asks for a lease, and lends to isolates no more. An isolate takes along what its slice begins with, so a slice need not wait for the root
 * and admits nothing on credit: what was lent is cut out of the root's bucket, and nothing is admitted twice across the change. Whoever
 * has not heard of it goes on asking the root, and does no harm.
 *
 * It ends by itself: the owner forgets its slices when its counters are next at rest, an isolate a minute after it last asked one.
 */
import type { Limit } from '../core/decision.ts';
import { isSharedName, type OwnerRef } from '../policy/counter.ts';
import type { GroupResult } from './asked.ts';
import { BoundedMap } from './bounded-map.ts';
import { type Group, isSliceable } from './groups.ts';
import type { Split } from './messages.ts';

/** Calls a second of which an owner gets rid: it answers 1,000, and is slow before. */
export const SPLIT_CALLS_PER_SECOND = 700;

/** Fewer holders than this do not ask so often, or not for long: they have leases. */
export const SPLIT_HOLDERS = 128;

/** Each slice has so much of a limit, or what it has in hand would be less than chance asks for. */
const UNITS_PER_SECOND_EACH = 300;

/** So many objects answer 16,000 calls a second, each half of what it could. */
const SLICES_MAX = 32;

/** How many slices an owner of counters with these limits is split into. */
export function slicesFor(limits: readonly Limit[]): number {
  const unitsPerSecond = Math.max(0, ...limits.map(({ quota, windowMs }) => (quota * 1_000) / windowMs));
  return Math.max(2, Math.min(SLICES_MAX, Math.ceil(unitsPerSecond / UNITS_PER_SECOND_EACH)));
}

/** For so long an owner tells what its slices begin with, and an isolate passes it on: by then each has begun, or has asked the root. */
export const OPENING_MS = 1_000;

/** What has been longer on its way may have ended where it comes from by the time it is passed on. */
const STALE_MS = 3_000;

const FORGET_AFTER_MS = 60_000;

/** Keys that are so hot are few. */
const GROUPS_MAX = 256;

const PREFIX = 'slice/';

/** The owner that a slice is cut from; `undefined` for what is no slice. */
export function wholeOf(name: string): string | undefined {
  const found = /^slice\/(\d+)\/(\d+)\/(.+)$/s.exec(name);
  const [slice, slices] = [Number(found?.[1]), Number(found?.[2])];
  return slice < slices && slices <= SLICES_MAX ? found?.[3] : undefined;
}

/** Which of its owner's slices it is, from 0. */
export function numberOf(slice: string): number {
  return Number(slice.split('/', 2)[1]);
}

/** How many slices its owner has; `undefined` for what is no slice. */
export function countOf(slice: string): number | undefined {
  return wholeOf(slice) === undefined ? undefined : Number(slice.split('/', 3)[2]);
}

/** The slices of an owner. */
export function slicesOf(name: string, slices: number): readonly string[] {
  return Array.from({ length: slices }, (_, slice) => sliceName(slice, slices, name));
}

/** All slices of the owner that this one is a slice of, itself among them; none for what is no slice. */
export function slicesBeside(name: string): readonly string[] {
  return slicesOf(wholeOf(name) ?? '', countOf(name) ?? 0);
}

/** Whether an owner of this name can be split: one caller's own. One of many shared ones has others beside it. */
export function isSplittable(name: string): boolean {
  return !isSharedName(name);
}

interface Moved {
  readonly split: Split;
  /** The counters that are known to have been split; of others the owner is asked, which splits them too. */
  readonly counterIds: ReadonlySet<string>;
  readonly openUntilMs: number;
  /** When the group was last asked for. */
  askedMs: number;
}

/** One isolate's way to slices. */
export class Slices {
  readonly #hash: number;
  readonly #nowMs: () => number;
  /** By the owner's name. */
  readonly #moved = new BoundedMap<Moved>(GROUPS_MAX);

  constructor(holder: string, nowMs: () => number) {
    this.#hash = hash(holder);
    this.#nowMs = nowMs;
  }

  /** The group as it is to be asked for now. */
  placed(group: Group): Group {
    if (this.#moved.size === 0) return group;
    const moved = this.#moved.get(group.owner.name);
    if (moved === undefined || !isSliceable(group)) return group;
    if (!group.enforced.every(({ counterId }) => moved.counterIds.has(counterId))) return group;
    const nowMs = this.#nowMs();
    if (nowMs - moved.askedMs > FORGET_AFTER_MS) {
      this.#moved.delete(group.owner.name);
      return group;
    }
    moved.askedMs = nowMs;
    const { slices, opening } = moved.split;
    return { ...group, owner: this.#sliceOf(group, slices), ...(nowMs < moved.openUntilMs && { opening }) };
  }

  /**
   * The group as it is to be asked for after all, where its owner has been split meanwhile and did not admit: it has lent what there is to its
   * slices, and they have the last word.
   */
  sentOn(group: Group, result: GroupResult): Group | undefined {
    if (!isOpen(result)) return undefined;
    const placed = this.placed(group);
    return placed === group ? undefined : placed;
  }

  /** The group as it is to be asked for if its owner has been split. */
  guessed(group: Group): Group {
    const slices = slicesFor(group.enforced.map(({ rule }) => rule.limit!));
    return { ...group, owner: this.#sliceOf(group, slices) };
  }

  /** It was guessed right. */
  moveAsGuessed(group: Group): void {
    const slices = slicesFor(group.enforced.map(({ rule }) => rule.limit!));
    this.move(group, { slices, opening: [] }, this.#nowMs());
  }

  /** The group's owner has been split, as it has said to a question that was sent at `sentMs`: from now on its slice is asked. */
  move(group: Group, split: Split, sentMs: number): void {
    const known = this.#moved.get(group.owner.name);
    const slices = known?.split.slices ?? split.slices;
    if (!isSliceable(group) || !(slices >= 1 && slices <= SLICES_MAX) || split.slices !== slices) return;
    const nowMs = this.#nowMs();
    const isNews = split.opening?.length > 0 && nowMs - sentMs <= STALE_MS;
    const told = isNews || known === undefined ? split : known.split;
    const openUntilMs = isNews ? nowMs + OPENING_MS : (known?.openUntilMs ?? nowMs);
    const counterIds = new Set([
      ...(known?.counterIds ?? []),
      ...group.enforced.map((each) => each.counterId),
    ]);
    this.#moved.set(group.owner.name, {
      split: told,
      counterIds,
      openUntilMs,
      askedMs: known?.askedMs ?? nowMs,
    });
  }

  #sliceOf({ owner }: Group, slices: number): OwnerRef {
    return { ...owner, name: sliceName(this.#hash % slices, slices, owner.name) };
  }
}

/** Whether the request was neither admitted nor left with the owner, which might still charge it. */
function isOpen(result: GroupResult): boolean {
  if (result.kind === 'answered')
    return result.answer.split !== undefined && result.answer.outcome === 'denied';
  return result.kind === 'dry' || (result.kind === 'unanswered' && result.late === undefined);
}

function sliceName(slice: number, slices: number, name: string): string {
  return `${PREFIX}${slice}/${slices}/${name}`;
}

/** FNV-1a: it only has to spread isolates alike. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return value >>> 0;
}
