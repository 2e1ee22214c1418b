/**
 * A way around an owner that is late because it is being split: thousands of isolates wait for it to say so, and their slices have begun.
 *
 * A request whose owner is late knocks at its slice. Once that has begun, the isolate has moved, and the request is asked for there; what the
 * owner says later is not waited for. Only limits that one object cannot count at their full rate are worth a knock, and one is
 * on its way at a time.
 */
import type { Limit } from '../core/decision.ts';
import { placeOf } from '../policy/place.ts';
import type { Version } from '../policy/ruleset.ts';
import { BoundedMap } from './bounded-map.ts';
import { type Group, isSliceable } from './groups.ts';
import type { OwnerLink } from './owner-link.ts';
import type { Timer } from './ports.ts';
import { type Slices, SPLIT_CALLS_PER_SECOND, wholeOf } from './slices.ts';

/** Three round trips within a region, or twice as long as the owner usually takes. */
const LATE_MS = 60;
const USUAL_TIMES = 2;

/** From so many units a second on a key is there for thousands of isolates: each knocks before its first question. */
const KNOCKED_FIRST_PER_SECOND = 5_000;

/** How often an isolate knocks at most; after a knock in vain it waits half again as long for the next. */
const KNOCK_MS = 60;
const KNOCK_MS_MAX = 2_000;
const LATER = 1.5;

/** By then it may be another story. */
const FORGET_AFTER_MS = 5_000;

const KNOCKED_MAX = 256;

export interface DetourPorts {
  readonly nowMs: () => number;
  readonly timer: (delayMs: number) => Timer;
  readonly linkTo: (group: Group) => OwnerLink;
  /** Whether the slice has begun; false when it does not answer. */
  readonly knock: (slice: Group, version: Version) => Promise<boolean>;
}

export class Detour {
  readonly #slices: Slices;
  readonly #ports: DetourPorts;
  /** When each owner's slice was last knocked at, and how long after that it is left alone. */
  readonly #knocked = new BoundedMap<{ readonly atMs: number; readonly pauseMs: number }>(KNOCKED_MAX);

  constructor(slices: Slices, ports: DetourPorts) {
    this.#slices = slices;
    this.#ports = ports;
  }

  /** The group as it is to be asked for instead, once that is known; `undefined` if the owner's part is `settled` before. */
  around(group: Group, version: Version, settled: Promise<unknown>): Promise<Group | undefined> | undefined {
    return isWorthAKnock(group) ? this.#around(group, version, settled) : undefined;
  }

  /** Looks before the first question, where an owner is likely to have been split. */
  ahead(group: Group, version: Version): Promise<Group | undefined> | undefined {
    const isFirst = this.#ports.linkTo(group).isUnknown(this.#ports.nowMs());
    return isFirst && isWorthAKnock(group, KNOCKED_FIRST_PER_SECOND)
      ? this.#ahead(group, version)
      : undefined;
  }

  async #ahead(group: Group, version: Version): Promise<Group | undefined> {
    const timer = this.#ports.timer(LATE_MS);
    await Promise.race([this.look(group, version), timer.done]);
    timer.cancel();
    const placed = this.#slices.placed(group);
    return placed === group ? undefined : placed;
  }

  async #around(group: Group, version: Version, settled: Promise<unknown>): Promise<Group | undefined> {
    let isSettled = false;
    const end = settled.then(() => {
      isSettled = true;
    });
    let pauseMs = Math.max(LATE_MS, USUAL_TIMES * this.#ports.linkTo(group).usualMs);
    for (;;) {
      const timer = this.#ports.timer(pauseMs);
      await Promise.race([end, timer.done]);
      timer.cancel();
      if (!isSettled) await Promise.race([end, this.look(group, version)]);
      if (isSettled) return undefined;
      const placed = this.#slices.placed(group);
      if (placed !== group) return placed;
      pauseMs = LATE_MS;
    }
  }

  /** Moves to the slice if it has begun. */
  async look(group: Group, version: Version): Promise<void> {
    const { name } = group.owner;
    const nowMs = this.#ports.nowMs();
    if (!isWorthAKnock(group) || this.#slices.placed(group) !== group) return;
    const last = this.#knocked.get(name);
    const sinceMs = last === undefined ? Number.POSITIVE_INFINITY : nowMs - last.atMs;
    if (sinceMs < (last?.pauseMs ?? 0)) return;
    const isNew = last === undefined || sinceMs >= FORGET_AFTER_MS;
    const pauseMs = isNew ? KNOCK_MS : Math.min(KNOCK_MS_MAX, LATER * last.pauseMs);
    this.#knocked.set(name, { atMs: nowMs, pauseMs });
    if (await this.#ports.knock(this.#slices.guessed(group), version)) this.#slices.moveAsGuessed(group);
  }
}

/** A lower limit denies most of what could split its owner, and isolates remember that. */
function isWorthAKnock(group: Group, unitsPerSecond = SPLIT_CALLS_PER_SECOND): boolean {
  const { owner, enforced } = group;
  if (
    owner.shared ||
    !enforced.some(({ rule }) => isMore(rule.limit!, unitsPerSecond)) ||
    !isSliceable(group)
  )
    return false;
  return wholeOf(owner.name) === undefined && placeOf(owner.name) === undefined;
}

function isMore({ quota, windowMs }: Limit, unitsPerSecond: number): boolean {
  return quota * 1_000 >= unitsPerSecond * windowMs;
}
