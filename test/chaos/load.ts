/**
 * A steady load on gateways, and all that it was answered: so many requests a second of each caller, in turn at each gateway, whether or not
 * earlier ones have been answered.
 */
import { Agent, request } from 'undici';

export interface Caller {
  readonly key: string;
  readonly perSecond: number;
}

export interface Answer {
  readonly key: string;
  /** The place of the gateway among all. */
  readonly gateway: number;
  /** All times are of `performance.now()`. */
  readonly sentMs: number;
  readonly answeredMs: number;
  /** The status, or what went wrong instead of an answer. */
  readonly outcome: number | string;
  readonly source: string;
  /** Of the caller's own limit, as the answer told. */
  readonly remaining: number;
}

/** So often the load looks at what is due; a few requests each time. */
const TICK_MS = 10;

/** What could not be sent for so long is left out: it would arrive all at once, which no caller meant. */
const LATE_MS_MAX = 100;

/** So often each gateway's pulse is taken. */
const PULSE_MS = 100;

/** Longer than any request may take, so that one that hangs is told as such. */
const GIVE_UP_MS = 20_000;

export class Load {
  readonly answers: Answer[] = [];
  readonly #ports: readonly number[];
  /** No request waits for another's connection: a wait that is measured is the server's. */
  readonly #agent = new Agent({ connections: null, pipelining: 1 });
  readonly #pending = new Set<Promise<void>>();
  readonly #sent = new Map<string, number>();
  #timers: NodeJS.Timeout[] = [];
  #slowestPulseMs = 0;

  constructor(ports: readonly number[]) {
    this.#ports = ports;
  }

  /** The longest that a gateway took for a request that has nothing to do with limits: what the machine adds to a wait. */
  get slowestPulseMs(): number {
    return this.#slowestPulseMs;
  }

  /** Goes on until the end. */
  start(callers: readonly Caller[]): void {
    let lastMs = performance.now();
    const due = new Map(callers.map(({ key }) => [key, 0]));
    const sendDue = () => {
      const nowMs = performance.now();
      const elapsedMs = Math.min(nowMs - lastMs, LATE_MS_MAX);
      lastMs = nowMs;
      for (const { key, perSecond } of callers) {
        let units = due.get(key)! + (elapsedMs * perSecond) / 1_000;
        for (; units >= 1; units -= 1) void this.send(key);
        due.set(key, units);
      }
    };
    const takePulses = () => {
      for (const gateway of this.#ports.keys()) this.#follow(this.#takePulse(gateway));
    };
    this.#timers = [setInterval(sendDue, TICK_MS), setInterval(takePulses, PULSE_MS)];
  }

  /** Every request that was sent has then been answered, and nothing is left open. */
  async end(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all(this.#pending);
    if (!this.#agent.closed) await this.#agent.close();
  }

  /** What was answered within the last `forMs`. */
  recent(forMs: number): readonly Answer[] {
    const sinceMs = performance.now() - forMs;
    return this.answers.filter(({ answeredMs }) => answeredMs >= sinceMs);
  }

  /** Settles when it has been answered. */
  send(key: string): Promise<void> {
    const sent = this.#sent.get(key) ?? 0;
    this.#sent.set(key, sent + 1);
    const answered = this.#ask(key, sent % this.#ports.length).then((answer) => {
      this.answers.push(answer);
    });
    return this.#follow(answered);
  }

  #follow(work: Promise<void>): Promise<void> {
    const followed = work.finally(() => this.#pending.delete(followed));
    this.#pending.add(followed);
    return followed;
  }

  async #takePulse(gateway: number): Promise<void> {
    const sentMs = performance.now();
    await this.#get(gateway, '/_limiter/health').catch(() => {});
    this.#slowestPulseMs = Math.max(this.#slowestPulseMs, performance.now() - sentMs);
  }

  async #ask(key: string, gateway: number): Promise<Answer> {
    const sentMs = performance.now();
    try {
      const { statusCode, headers } = await this.#get(gateway, '/', key);
      return {
        ...{ key, gateway, sentMs, answeredMs: performance.now(), outcome: statusCode },
        source: /limiter;desc="(\w+)"/.exec(String(headers['server-timing']))?.[1] ?? '',
        remaining: Number(/"default";r=(\d+)/.exec(String(headers.ratelimit))?.[1] ?? Number.NaN),
      };
    } catch (error) {
      const answeredMs = performance.now();
      return { key, gateway, sentMs, answeredMs, outcome: String(error), source: '', remaining: Number.NaN };
    }
  }

  async #get(gateway: number, path: string, key = '') {
    const response = await request(`http://127.0.0.1:${this.#ports[gateway]}${path}`, {
      dispatcher: this.#agent,
      headers: { 'x-api-key': key, 'cf-connecting-ip': '192.0.2.1' },
      headersTimeout: GIVE_UP_MS,
      bodyTimeout: GIVE_UP_MS,
    });
    await response.body.dump();
    return response;
  }
}

/** How often each caller was answered what, where and by whom: for a failure to tell. */
export function tallyOf(answers: readonly Answer[]): string {
  const tally = new Map<string, number>();
  for (const { key, gateway, source, outcome } of answers) {
    const what = `${key} at gateway ${gateway}: ${outcome} from ${source || 'nobody'}`;
    tally.set(what, (tally.get(what) ?? 0) + 1);
  }
  return [...tally]
    .sort()
    .map(([what, count]) => `  ${count} x ${what}`)
    .join('\n');
}
