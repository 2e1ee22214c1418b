/**
 * One owner's object: the real `Owner` and `WriteBehind`, with storage that outlives them, driven the way the platform drives them.
 */
import { nowMsFor, used } from '../../src/core/algorithms.ts';
import type { OwnerCall, OwnerReply } from '../../src/engine/messages.ts';
import { Owner } from '../../src/engine/owner.ts';
import { roleOf, rootNameOf } from '../../src/engine/role.ts';
import { restore, WriteBehind } from '../../src/engine/write-behind.ts';
import type { Time } from './time.ts';

export interface HostOptions {
  readonly name: string;
  readonly time: Time;
  readonly rawMs: () => number;
  readonly countersMax: number;
  readonly blocks: number;
  /** Messages are copied on their way in and out, so that neither side can reach into the other; a few microseconds each. */
  readonly copiesMessages: boolean;
  /** A call of a middle owner to its root; rejects when nothing comes of it. */
  readonly callRoot?: (root: string, call: OwnerCall) => Promise<OwnerReply>;
}

export class OwnerHost {
  readonly #options: HostOptions;
  readonly #rows = new Map<string, unknown>();
  #life: Life | undefined;
  #lives = 0;
  #writes = 0;
  #displaced = 0;

  constructor(options: HostOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** How many times rows were written. */
  get writes(): number {
    return this.#writes;
  }

  get displaced(): number {
    return this.#displaced;
  }

  get rows(): ReadonlyMap<string, unknown> {
    return this.#rows;
  }

  get owner(): Owner {
    return this.#alive().owner;
  }

  handle(call: OwnerCall): OwnerReply {
    const life = this.#alive();
    const { copiesMessages, rawMs } = this.#options;
    const reply = life.owner.handle(copiesMessages ? structuredClone(call) : call, rawMs());
    this.#writeWhenDue(life);
    this.#tellRootWhenDue(life);
    return copiesMessages ? structuredClone(reply) : reply;
  }

  /** Memory is gone, and so is what was about to be written. The next call finds what storage holds. */
  restart(): void {
    this.#life?.cancelWrite?.();
    this.#life?.cancelTelling?.();
    this.#life = undefined;
  }

  /** Units in use on a counter, 0 when the owner has none of this id. */
  used(counterId: string): number {
    const { owner } = this.#alive();
    // Asking how long brings the owner's clock to the present.
    owner.restInMs(this.#options.rawMs());
    const found = [...owner.counters()].find(({ id }) => id === counterId);
    return found === undefined ? 0 : used(found.limit, found.state, nowMsFor(found.limit, owner.clock));
  }

  #alive(): Life {
    if (this.#life !== undefined) return this.#life;
    const { name, rawMs, countersMax, blocks } = this.#options;
    this.#lives += 1;
    const writeBehind = new WriteBehind(blocks);
    const options = {
      incarnation: `${name}#${this.#lives}`,
      countersMax,
      ...roleOf(name, Math.ceil(rawMs())),
      onChanged: writeBehind.changed.bind(writeBehind),
      onDisplaced: () => {
        this.#displaced += 1;
      },
    };
    const owner = new Owner(options, rawMs(), restore(structuredClone([...this.#rows])));
    this.#life = { owner, writeBehind };
    return this.#life;
  }

  /** A middle owner has a word for its root now and then, whether anybody asks it or not. */
  #tellRootWhenDue(life: Life): void {
    const { name, rawMs, time, callRoot } = this.#options;
    const root = rootNameOf(name);
    if (root === undefined || callRoot === undefined) return;
    life.cancelTelling?.();
    delete life.cancelTelling;
    const rootCall = life.owner.rootCall(rawMs());
    const dueInMs = life.owner.rootCallInMs(rawMs());
    if (dueInMs !== undefined)
      life.cancelTelling = time.after(Math.max(1, dueInMs), () => this.#tellRootWhenDue(life));
    if (rootCall === undefined) return;
    const replied = (reply: OwnerReply | undefined) => {
      if (this.#life !== life) return;
      life.owner.rootReplied(rootCall, reply, rawMs());
      this.#writeWhenDue(life);
      this.#tellRootWhenDue(life);
    };
    callRoot(root, rootCall.call).then(replied, () => replied(undefined));
  }

  #writeWhenDue(life: Life): void {
    const dueInMs = life.writeBehind.dueInMs(this.#options.rawMs());
    if (dueInMs === undefined || (dueInMs > 0 && life.cancelWrite !== undefined)) return;
    if (dueInMs === 0) this.#write(life);
    else life.cancelWrite = this.#options.time.after(dueInMs, () => this.#write(life));
  }

  #write(life: Life): void {
    life.cancelWrite?.();
    delete life.cancelWrite;
    this.#writes += 1;
    for (const [key, row] of life.writeBehind.take(life.owner, this.#options.rawMs())) {
      if (row === undefined) this.#rows.delete(key);
      else this.#rows.set(key, structuredClone(row));
    }
  }
}

interface Life {
  readonly owner: Owner;
  readonly writeBehind: WriteBehind;
  cancelWrite?: () => void;
  cancelTelling?: () => void;
}
