/**
 * The Durable Object that owns counters: a thin shell that loads, lets the engine decide, and saves what the engine says is due.
 *
 * A call reads, decides and changes memory with no `await` between; storage follows at most a second later (`engine/write-behind`)
 * without holding the reply back. When nothing stored matters any more an alarm empties the storage. The alarm may come twice, late or
 * never: all it does is drop what says nothing.
 */
import { DurableObject } from 'cloudflare:workers';
import { isReadable, MESSAGE_FORMAT, type OwnerCall, type OwnerReply } from '../engine/messages.ts';
import type { RootCall } from '../engine/middle.ts';
import { Owner } from '../engine/owner.ts';
import { roleOf, rootNameOf } from '../engine/role.ts';
import { restore, WriteBehind } from '../engine/write-behind.ts';
import { isSharedName } from '../policy/counter.ts';
import { logEvent } from '../telemetry/log.ts';

/** A caller has a counter a policy, far fewer than this; about 200 bytes each. */
const COUNTERS_MAX = 1_024;

/** A shared owner holds a 256th of all addresses seen lately; a few megabytes at most. */
const SHARED_COUNTERS_MAX = 16_384;

/** A caller's own counters are one row. A shared owner writes at most 16 rows a second, each well under storage's 2 MB. */
const BLOCKS = 1;
const SHARED_BLOCKS = 16;

const UNCONFIRMED = { allowUnconfirmed: true } as const;

export class LimiterOwner extends DurableObject<Cloudflare.Env> {
  readonly #owner: Owner;
  readonly #writeBehind: WriteBehind;
  #writeTimer: ReturnType<typeof setTimeout> | undefined;
  #hasAlarm = false;
  readonly #root: string | undefined;
  #rootTimer: ReturnType<typeof setTimeout> | undefined;
  #isRootSilent = false;

  constructor(state: DurableObjectState, env: Cloudflare.Env) {
    super(state, env);
    const name = state.id.name ?? '';
    const isShared = isSharedName(name);
    this.#root = rootNameOf(name);
    const stored = restore(state.storage.kv.list());
    this.#writeBehind = new WriteBehind(isShared ? SHARED_BLOCKS : BLOCKS);
    this.#owner = new Owner(
      {
        incarnation: crypto.randomUUID(),
        ...roleOf(name, Date.now()),
        countersMax: isShared ? SHARED_COUNTERS_MAX : COUNTERS_MAX,
        onChanged: (changed, restInMs) => this.#writeBehind.changed(changed, restInMs),
        onDisplaced: () => logEvent({ event: 'counter_displaced', owner: state.id.name }),
      },
      Date.now(),
      stored,
    );
    if (stored === undefined) return;
    // An alarm is written with the first row, but one that was lost would leave the rows behind for ever.
    state.blockConcurrencyWhile(async () => {
      this.#hasAlarm = (await state.storage.getAlarm()) !== null;
    });
  }

  /** The one method that isolates call. */
  async call(call: OwnerCall): Promise<OwnerReply> {
    if (!isReadable(call?.format, MESSAGE_FORMAT))
      throw new TypeError('the call is in a format that cannot be read');
    const nowMs = Date.now();
    const reply = this.#owner.handle(call, nowMs);
    this.#writeWhenDue(nowMs);
    this.#tellRootWhenDue(nowMs);
    return reply;
  }

  override async alarm(): Promise<void> {
    const nowMs = Date.now();
    this.#hasAlarm = false;
    this.#owner.sweep(nowMs);
    this.#tellRootWhenDue(nowMs);
    if (this.#owner.restInMs(nowMs) > 0) this.#write(nowMs);
    else await this.ctx.storage.deleteAll();
  }

  /** A middle owner has a word for its root now and then, whether anybody asks it or not. No request waits for what comes of it. */
  #tellRootWhenDue(nowMs: number): void {
    if (this.#root === undefined) return;
    const rootCall = this.#owner.rootCall(nowMs);
    if (rootCall !== undefined) {
      // Its last word ends a lease here at once, and no answer comes that would have that written.
      this.#writeWhenDue(nowMs);
      this.ctx.waitUntil(this.#tellRoot(this.#root, rootCall));
    }
    const dueInMs = this.#owner.rootCallInMs(nowMs);
    if (this.#rootTimer !== undefined) clearTimeout(this.#rootTimer);
    this.#rootTimer =
      dueInMs === undefined
        ? undefined
        : setTimeout(() => this.#tellRootWhenDue(Date.now()), Math.max(1, Math.ceil(dueInMs)));
  }

  async #tellRoot(root: string, rootCall: RootCall): Promise<void> {
    let reply: OwnerReply | undefined;
    try {
      reply = await (this.env.OWNER.getByName(root) as unknown as LimiterOwner).call(rootCall.call);
      if (this.#isRootSilent) logEvent({ event: 'root_reachable', owner: this.ctx.id.name });
      this.#isRootSilent = false;
    } catch (error) {
      if (!this.#isRootSilent)
        logEvent({ event: 'root_unreachable', owner: this.ctx.id.name, reason: String(error) });
      this.#isRootSilent = true;
    }
    const nowMs = Date.now();
    this.#owner.rootReplied(rootCall, reply, nowMs);
    this.#writeWhenDue(nowMs);
    this.#tellRootWhenDue(nowMs);
  }

  #writeWhenDue(nowMs: number): void {
    const dueInMs = this.#writeBehind.dueInMs(nowMs);
    if (dueInMs === undefined) return;
    if (dueInMs === 0) this.#write(nowMs);
    else this.#writeTimer ??= setTimeout(() => this.#write(Date.now()), dueInMs);
  }

  /** Everything that changed, in one transaction, together with the alarm that will remove it. */
  #write(nowMs: number): void {
    if (this.#writeTimer !== undefined) clearTimeout(this.#writeTimer);
    this.#writeTimer = undefined;
    const { storage } = this.ctx;
    const rows = this.#writeBehind.take(this.#owner, nowMs);
    const writes: Promise<unknown>[] = [];
    const put = Object.fromEntries([...rows].filter(([, value]) => value !== undefined));
    const empty = [...rows].flatMap(([key, value]) => (value === undefined ? [key] : []));
    if (Object.keys(put).length > 0) writes.push(storage.put(put, UNCONFIRMED));
    if (empty.length > 0) writes.push(storage.delete(empty, UNCONFIRMED));
    if (!this.#hasAlarm) {
      this.#hasAlarm = true;
      writes.push(storage.setAlarm(nowMs + Math.max(1, Math.ceil(this.#owner.restInMs(nowMs))), UNCONFIRMED));
    }
    Promise.all(writes).catch((error: unknown) => {
      logEvent({ event: 'owner_write_failed', owner: this.ctx.id.name, reason: String(error) });
    });
  }
}
