/**
 * A log of requests: one JSON object a line, read as a stream, checked line by line, and put in the order of time.
 *
 * Nothing is held but the chunk at hand and the lines that wait for their turn. A line that cannot be read ends the reading with its
 * place (`file:line: what is wrong`), and nothing of the line is repeated: it may hold what is secret.
 */
import { formatPath, show } from '../../../src/policy/problem.ts';
import { COST_MAX, isMap } from '../../../src/policy/schema.ts';
import { FailureError } from '../../command.ts';
import { Heap, type Scheduled } from '../../sim/heap.ts';

export interface LogRecord extends Scheduled {
  /** The line. */
  readonly number: number;
  readonly attributes: Readonly<Record<string, string>>;
  readonly cost: number | undefined;
  /** How much of the log it is. */
  readonly bytes: number;
}

/** Twice what the platform takes as the headers of a request. */
const LINE_BYTES_MAX = 262_144;

/**
 * How many lines wait for one that is late. Servers write a line when a request ends, so lines of one moment stand apart by what ends
 * meanwhile: this is a second of 10,000 requests, and about 5 MB.
 */
const OUT_OF_PLACE_MAX = 10_000;

/** What a date can hold (ECMA-262, 21.4.1.1). */
const TIME_MS_MAX = 8.64e15;

const NEWLINE = 0x0a;
const SHA256_HEX = /^[0-9a-f]{64}$/;

/** `name` stands for the log in messages. */
export async function* readLog(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<readonly LogRecord[]> {
  const waiting = new Heap<LogRecord>();
  let takenMs = Number.NEGATIVE_INFINITY;
  const take = (leave: number): readonly LogRecord[] => {
    const taken: LogRecord[] = [];
    while (waiting.size > leave) taken.push(waiting.takeFirst()!);
    takenMs = taken.at(-1)?.atMs ?? takenMs;
    return taken;
  };
  for await (const lines of linesOf(chunks, name)) {
    for (const line of lines) {
      const record = recordOf(line, name);
      if (record === undefined) continue;
      if (record.atMs < takenMs) refuse(name, record.number, lateBy(takenMs - record.atMs));
      waiting.add(record);
      // Line by line, so that where the chunks of the stream end makes no difference.
      const taken = take(OUT_OF_PLACE_MAX);
      if (taken.length > 0) yield taken;
    }
  }
  yield take(0);
}

function lateBy(ms: number): string {
  return (
    `is ${ms} ms too late: a line stands at most ${OUT_OF_PLACE_MAX} lines behind those of its time. ` +
    'Sort the log by "time"'
  );
}

interface Line {
  readonly text: string;
  readonly number: number;
  readonly bytes: number;
}

/**
 * Lines end with a line feed and with nothing else: Node's own reader also ends one at U+2028, which may stand in a JSON text, and
 * holds a line of any length.
 */
async function* linesOf(chunks: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<readonly Line[]> {
  let rest: Buffer = Buffer.alloc(0);
  let number = 0;
  const next = (bytes: Buffer): Line => {
    number += 1;
    if (bytes.length > LINE_BYTES_MAX) refuse(name, number, `has more than ${LINE_BYTES_MAX} bytes`);
    return { text: bytes.toString('utf8'), number, bytes: bytes.length + 1 };
  };
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    const lines: Line[] = [];
    let from = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, from)) {
      lines.push(next(bytes.subarray(from, end)));
      from = end + 1;
    }
    rest = bytes.subarray(from);
    yield lines;
    if (rest.length > LINE_BYTES_MAX) next(rest);
  }
  if (rest.length > 0) yield [next(rest)];
}

/** Nothing for a line that is blank. */
function recordOf({ text, number, bytes }: Line, name: string): LogRecord | undefined {
  if (text.trim() === '') return undefined;
  const raw = parse(text);
  if (!isMap(raw)) refuse(name, number, 'is not a JSON object');
  const { time, attributes, cost } = raw;
  if (typeof time !== 'number' || !(time >= 0 && time <= TIME_MS_MAX))
    refuse(name, number, `time: wants milliseconds since 1970, not ${show(time)}`);
  if (!isMap(attributes)) refuse(name, number, `attributes: wants an object, not ${show(attributes)}`);
  checkAttributes(attributes, (message) => refuse(name, number, message));
  if (cost !== undefined && !isCost(cost))
    refuse(name, number, `cost: wants a whole number from 0 to ${COST_MAX}, not ${show(cost)}`);
  return { atMs: Math.floor(time), number, place: -1, attributes, cost, bytes };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function checkAttributes(
  attributes: Readonly<Record<string, unknown>>,
  refuseWith: (message: string) => never,
): asserts attributes is Readonly<Record<string, string>> {
  for (const attribute in attributes) {
    const value = attributes[attribute];
    if (attribute === 'api_key' && (typeof value !== 'string' || !SHA256_HEX.test(value)))
      refuseWith('attributes.api_key: wants the SHA-256 of the key in 64 hexadecimal digits, not the key');
    if (typeof value !== 'string')
      refuseWith(`${formatPath(['attributes', attribute])}: wants text, not ${show(value)}`);
  }
}

function isCost(cost: unknown): cost is number {
  return typeof cost === 'number' && Number.isInteger(cost) && cost >= 0 && cost <= COST_MAX;
}

function refuse(name: string, number: number, message: string): never {
  throw new FailureError(`${name}:${number}: ${message}`);
}
