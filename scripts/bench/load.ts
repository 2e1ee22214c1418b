/**
 * Two loads. `fullLoad` keeps every connection busy and asks how much gets through; `steadyLoad` sends on a fixed schedule,
 * whatever the server does, and asks how long each request took.
 */
import { FailureError } from '../command.ts';
import { Connection } from './connection.ts';

export interface FullLoadOptions {
  /** The connections are dealt out to them in turn. */
  readonly ports: readonly number[];
  readonly connections: number;
  readonly seconds: number;
  /** Sent in turn. */
  readonly requests: readonly Buffer[];
}

export interface FullLoadResult {
  readonly requestsPerSecond: number;
  /** Responses by status. */
  readonly statuses: ReadonlyMap<number, number>;
}

export async function fullLoad({
  ports,
  connections,
  seconds,
  requests,
}: FullLoadOptions): Promise<FullLoadResult> {
  const statuses = new Map<number, number>();
  const startMs = performance.now();
  const endMs = startMs + seconds * 1_000;
  let sent = 0;
  const keepBusy = (connection: Connection, done: () => void) => {
    if (performance.now() >= endMs) return done();
    connection.send(requests[sent++ % requests.length]!, (status) => {
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      keepBusy(connection, done);
    });
  };
  await onConnections({ ports, count: connections, seconds }, (opened) =>
    Promise.all(opened.map((connection) => new Promise<void>((done) => keepBusy(connection, done)))),
  );
  const total = [...statuses.values()].reduce((sum, count) => sum + count, 0);
  return { requestsPerSecond: total / ((performance.now() - startMs) / 1_000), statuses };
}

export interface SteadyLoadOptions {
  readonly ports: readonly number[];
  readonly connections: number;
  readonly seconds: number;
  /** To each port; the ports take turns at even distances. */
  readonly ratePerSecond: number;
  readonly requests: readonly Buffer[];
}

export interface SteadyLoadResult {
  /** In order of arrival of the responses. */
  readonly waitsMs: readonly number[];
  readonly statuses: ReadonlyMap<number, number>;
  /** When the first request was sent and the last response was here, by `performance.now()`. */
  readonly firstSentMs: number;
  readonly lastReceivedMs: number;
}

/**
 * Loads several ports at once, so that each sees the same machine at the same time: what one of them waits more than another is
 * its own. A request's wait runs from the moment it was due, also while no connection is free, so a stalled server cannot hide
 * by slowing its own load (coordinated omission). The generator's timers are a millisecond coarse; being due means that its
 * timer has fired, which is the same for all ports.
 */
export async function steadyLoad(options: SteadyLoadOptions): Promise<SteadyLoadResult[]> {
  const { ports, connections, seconds, ratePerSecond, requests } = options;
  const lanes = ports.map(() => new Lane(requests, seconds * ratePerSecond));
  const startWhenOpen = Promise.withResolvers<void>();
  let waiting = ports.length;
  const results = ports.map((port, index) =>
    onConnections({ ports: [port], count: connections, seconds }, (opened) => {
      waiting -= 1;
      if (waiting === 0) startWhenOpen.resolve();
      return lanes[index]!.over(opened);
    }),
  );
  const schedule = startWhenOpen.promise.then(() => sendOnSchedule(lanes, ratePerSecond));
  const [, ...finished] = await Promise.all([schedule, ...results]);
  return finished;
}

/** Ends when every lane has been given all its requests. */
function sendOnSchedule(lanes: readonly Lane[], ratePerSecond: number): Promise<void> {
  const startMs = performance.now();
  const perMs = (ratePerSecond * lanes.length) / 1_000;
  let given = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const nowMs = performance.now();
      for (const due = (nowMs - startMs) * perMs; given < due; given += 1) {
        if (!lanes[given % lanes.length]!.due(nowMs)) {
          clearInterval(timer);
          return resolve();
        }
      }
    }, 1);
  });
}

/** The requests to one port: those that are due wait for a free connection, in order. */
class Lane {
  readonly #requests: readonly Buffer[];
  readonly #total: number;
  readonly #dueMs: number[] = [];
  readonly #waitsMs: number[] = [];
  readonly #statuses = new Map<number, number>();
  readonly #finished = Promise.withResolvers<SteadyLoadResult>();
  #free: Connection[] = [];
  #given = 0;
  #firstSentMs: number | undefined;

  constructor(requests: readonly Buffer[], total: number) {
    this.#requests = requests;
    this.#total = total;
  }

  /** Settles when the last response is here. */
  over(connections: readonly Connection[]): Promise<SteadyLoadResult> {
    this.#free = [...connections];
    return this.#finished.promise;
  }

  /** A request is due; false when there was none left. */
  due(nowMs: number): boolean {
    if (this.#given === this.#total) return false;
    this.#given += 1;
    this.#dueMs.push(nowMs);
    this.#send();
    return true;
  }

  #send(): void {
    while (this.#dueMs.length > 0) {
      const connection = this.#free.pop();
      if (connection === undefined) return;
      const dueMs = this.#dueMs.shift()!;
      this.#firstSentMs ??= performance.now();
      connection.send(this.#requests[this.#waitsMs.length % this.#requests.length]!, (status) => {
        this.#receive(status, dueMs);
        this.#free.push(connection);
        this.#send();
      });
    }
  }

  #receive(status: number, dueMs: number): void {
    const nowMs = performance.now();
    this.#waitsMs.push(nowMs - dueMs);
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    if (this.#waitsMs.length < this.#total) return;
    this.#finished.resolve({
      waitsMs: this.#waitsMs,
      statuses: this.#statuses,
      firstSentMs: this.#firstSentMs ?? nowMs,
      lastReceivedMs: nowMs,
    });
  }
}

interface Connections {
  readonly ports: readonly number[];
  readonly count: number;
  /** How long the work is meant to take. */
  readonly seconds: number;
}

/** A server that lets a request wait this long beyond the end of a load has lost it. */
const PATIENCE_SECONDS = 10;

/** Opens the connections, works with them and closes them; fails as soon as one of them breaks, or when a response never comes. */
async function onConnections<T>(
  { ports, count, seconds }: Connections,
  work: (opened: readonly Connection[]) => Promise<T>,
): Promise<T> {
  const broken = Promise.withResolvers<never>();
  const open = (index: number) => Connection.open(ports[index % ports.length]!, broken.reject);
  const opened = await Promise.all(Array.from({ length: count }, (_, index) => open(index)));
  const lost = new FailureError(
    `a request to port ${ports.join(' or ')} was left without an answer for ${PATIENCE_SECONDS} s`,
  );
  const patience = setTimeout(() => broken.reject(lost), (seconds + PATIENCE_SECONDS) * 1_000);
  try {
    return await Promise.race([work(opened), broken.promise]);
  } finally {
    clearTimeout(patience);
    for (const connection of opened) connection.close();
  }
}
