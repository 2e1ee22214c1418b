/**
 * Empties the outbox: to KV, and to the owners of clamped callers. At once after a change, and again by alarm until all has arrived.
 */
import { MESSAGE_FORMAT, type OwnerCall } from '../../engine/messages.ts';
import type { Clamp } from '../../policy/clamp.ts';
import { encodePairs } from '../../policy/counter.ts';
import { hintOf } from '../../policy/place.ts';
import { logEvent } from '../../telemetry/log.ts';
import type { Outbox, Word } from './outbox.ts';

/** A change is answered when all have been told of it, or after this long; what is left is told later. */
const TELL_MS_MAX = 2_000;

/** Whoever takes longer is told again later. */
const SEND_MS_MAX = 5_000;

/** An object that has gone has told nobody for so long. */
const LOST_MS = 10_000;

/** Between attempts: doubled from a second, up to a minute. */
const RETRY_MS = { first: 1_000, last: 60_000 };

export interface Told {
  readonly OWNER: DurableObjectNamespace;
  readonly RULES?: KVNamespace;
  readonly KEYS?: KVNamespace;
}

export interface TellingOptions {
  readonly storage: DurableObjectStorage;
  readonly outbox: Outbox;
  readonly told: Told;
  /** An entry of KV as it should be now; `null` where there should be none. */
  readonly entryOf: (target: 'RULES' | 'KEYS', key: string) => string | null;
}

export class Telling {
  readonly #storage: DurableObjectStorage;
  readonly #outbox: Outbox;
  readonly #told: Told;
  readonly #entryOf: (target: 'RULES' | 'KEYS', key: string) => string | null;
  #draining: Promise<string | undefined> | undefined;
  #failures = 0;

  constructor({ storage, outbox, told, entryOf }: TellingOptions) {
    this.#storage = storage;
    this.#outbox = outbox;
    this.#told = told;
    this.#entryOf = entryOf;
  }

  /** Called in the same breath as a change: whatever happens to this object before all are told, the next one goes on. */
  expect(): void {
    if (this.#outbox.size > 0) this.#storage.setAlarm(Date.now() + LOST_MS);
  }

  /** A clamp for the owner of its caller. */
  static word(owner: string, clamp: Clamp): Word {
    const key = JSON.stringify([owner, encodePairs(clamp.pairs)]);
    return { target: 'OWNER', key, value: JSON.stringify(clamp) };
  }

  /** Tells whoever has to know, and answers why some do not yet. */
  tell(): Promise<string | undefined> {
    return orLater(this.drain(), TELL_MS_MAX, () => 'some are told later');
  }

  /** One at a time; what is added meanwhile goes along. Never rejects. */
  drain(): Promise<string | undefined> {
    this.#draining ??= this.#drain().finally(() => {
      this.#draining = undefined;
    });
    return this.#draining;
  }

  async #drain(): Promise<string | undefined> {
    const failure = await this.#outbox.drain((word) => this.#send(word));
    if (failure === undefined) {
      this.#failures = 0;
      await this.#storage.deleteAlarm();
      return undefined;
    }
    if (this.#failures === 0)
      logEvent({ event: 'control_telling_failed', waiting: this.#outbox.size, reason: failure });
    const delayMs = Math.min(RETRY_MS.last, RETRY_MS.first * 2 ** this.#failures);
    this.#failures += 1;
    await this.#storage.setAlarm(Date.now() + delayMs);
    return failure;
  }

  #send({ target, key, value }: Word): Promise<void> {
    const sent =
      target === 'OWNER'
        ? this.#push((JSON.parse(key) as [string])[0], `${value}`)
        : this.#put(target, key, this.#entryOf(target, key));
    return orLater(sent, SEND_MS_MAX, () => {
      // What was given up may still arrive, after what comes next: once it has, the entry is written again.
      if (target !== 'OWNER')
        sent.then(
          () => this.#again({ target, key, value }),
          () => {},
        );
      throw new Error(`${target} did not answer within ${SEND_MS_MAX} ms`);
    });
  }

  #again(word: Word): void {
    this.#outbox.add(word);
    this.expect();
    this.drain();
  }

  /** A namespace that is no longer bound has nobody to tell. */
  async #put(target: 'RULES' | 'KEYS', key: string, value: string | null): Promise<void> {
    if (value === null) await this.#told[target]?.delete(key);
    else await this.#told[target]?.put(key, value);
  }

  async #push(owner: string, clamp: string): Promise<void> {
    const call: OwnerCall = {
      format: MESSAGE_FORMAT,
      holder: 'control',
      version: { activation: 0, builtAtMs: 0 },
      clamps: [JSON.parse(clamp) as Clamp],
    };
    const hint = hintOf(owner);
    const stub = this.#told.OWNER.getByName(owner, hint && { locationHint: hint });
    await (stub as unknown as { call(call: OwnerCall): Promise<unknown> }).call(call);
  }
}

async function orLater<Value>(
  promise: Promise<Value>,
  limitMs: number,
  instead: () => Value,
): Promise<Value> {
  const { promise: late, resolve } = Promise.withResolvers<'late'>();
  const timer = setTimeout(() => resolve('late'), limitMs);
  try {
    const first = await Promise.race([promise.then((value) => ({ value })), late]);
    return first === 'late' ? instead() : first.value;
  } finally {
    clearTimeout(timer);
  }
}
