/**
 * `limiter keys import FILE`: many keys, in batches. Nothing is sent of a file that has a mistake anywhere; and whatever ends an import
 * early, its last word is the command that continues it. A batch that was sent twice is stored once.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { KEYS_PER_REQUEST_MAX } from '../../../src/admin/schemas.ts';
import { FailureError, stopOnSignals, UsageError } from '../../command.ts';
import { type AdminClient, AdminFailure } from '../admin-client.ts';
import { countText, durationText, plainText, plural } from '../text.ts';
import { parseWhole } from './attributes.ts';
import { type ConnectionOptions, changeClient, changeCommand, printJson } from './connection.ts';
import { type FileKey, isCsvFile, readKeyFile } from './key-file.ts';

const EXAMPLES = `
One key a line, as JSON or as CSV with a header line; each with its key or the SHA-256 of it, and whatever else is known of it:
  {"key": "k_live_1", "tier": "free", "org": "acme", "user": "ada", "labels": {"plan": "gold"}, "disabled": false, "expiresAt": "2027-01-31T00:00:00Z"}
  key,tier,org,user,label_plan,disabled,expiresAt
Keys are hashed here: only their SHA-256 is sent. An entry that the directory has already is replaced as a whole.

Every line is checked before the first is sent. \`keys list --json\` writes what this reads.`;

interface Options extends ConnectionOptions {
  readonly from?: string;
}

/** About a million keys; what is larger is split. */
const FILE_BYTES_MAX = 256 * 1_048_576;

/** Below the 1 MiB that the server takes, whatever labels the keys have. */
const BATCH_BYTES_MAX = 900_000;

/** Some ten seconds in all: a restart, or a moment of too much. */
const ATTEMPTS_MAX = 5;
const WAIT_MS = { first: 500, max: 30_000 };

const PROGRESS_MS = 1_000;

const stored = z.looseObject({ stored: z.int() });

export function importCommand(finish: (exitCode: number) => void): Command {
  return changeCommand('import', 'Adds the keys of a file to the directory.')
    .argument('<file>', 'JSON lines, or CSV with a header line')
    .option('--from <line>', 'begin at this line of the file: continues an import that has ended early')
    .addHelpText('after', EXAMPLES)
    .action(async (file: string, options: Options) => {
      const client = await changeClient(options);
      const from = options.from === undefined ? 1 : parseWhole(options.from, '--from', 1);
      const keys = await readKeys(file, from);
      if (keys === undefined) {
        finish(1);
        return;
      }
      const progress = new Progress(keys.length);
      try {
        await sendAll(client, keys, progress);
      } catch (error) {
        if (!(error instanceof AdminFailure)) throw error;
        const done = `${countText(progress.done)} of ${plural(keys.length, 'key')} are stored.`;
        const next = commandFrom(keys[progress.done]!.line, file, options);
        throw new FailureError(`${error.message}\n${done} To go on:\n  ${next}`);
      } finally {
        progress.end();
      }
      if (options.json) printJson({ stored: keys.length });
      else console.log(`imported ${plural(keys.length, 'key')}`);
    });
}

/** Nothing when lines are wrong; what is wrong with each has been said then. */
async function readKeys(file: string, from: number): Promise<readonly FileKey[] | undefined> {
  const text = await readText(file);
  const { keys, problems, lines } = readKeyFile(text, { isCsv: isCsvFile(file, text), from });
  if (problems.length > 0) {
    for (const { line, field, message } of problems)
      console.error(plainText(`${file}:${line}: ${field === '' ? '' : `${field}: `}${message}`));
    const wrong = new Set(problems.map(({ line }) => line)).size;
    console.error(`${plural(wrong, 'line')} ${wrong === 1 ? 'is' : 'are'} wrong. Nothing was sent.`);
    return undefined;
  }
  if (from > lines && from > 1) throw new UsageError(`--from: ${file} has ${plural(lines, 'line')}.`);
  if (keys.length === 0) throw new FailureError(`${file} holds no keys.`);
  return keys;
}

async function readText(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: Error) => {
    throw new UsageError(`cannot read ${file}: ${error.message}`);
  });
  if (bytes.length > FILE_BYTES_MAX)
    throw new FailureError(`${file} has more than ${countText(FILE_BYTES_MAX)} bytes: split it.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new FailureError(`${file} is not UTF-8 text.`);
  }
}

async function sendAll(client: AdminClient, keys: readonly FileKey[], progress: Progress): Promise<void> {
  const signal = stopOnSignals();
  for (const batch of batchesOf(keys)) {
    await send(client, batch, { signal, progress });
    progress.add(batch.length);
  }
}

function* batchesOf(keys: readonly FileKey[]): Generator<readonly FileKey[]> {
  let batch: FileKey[] = [];
  let bytes = 0;
  for (const each of keys) {
    const size = Buffer.byteLength(JSON.stringify(each.key)) + 1;
    if (batch.length === KEYS_PER_REQUEST_MAX || (batch.length > 0 && bytes + size > BATCH_BYTES_MAX)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(each);
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

/** Tried again while the reason may pass. */
async function send(
  client: AdminClient,
  batch: readonly FileKey[],
  { signal, progress }: { readonly signal: AbortSignal; readonly progress: Progress },
): Promise<void> {
  const question = {
    method: 'PUT',
    path: '/keys',
    body: { keys: batch.map(({ key }) => key) },
    signal,
  } as const;
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.ask(stored, question);
      return;
    } catch (error) {
      const waitMs = signal.aborted ? undefined : waitBefore(attempt, error);
      if (waitMs === undefined) throw error;
      progress.note(`${(error as Error).message} Trying again in ${durationText(waitMs)}.`);
      await sleep(waitMs, undefined, { signal }).catch(() => {
        throw new AdminFailure('Interrupted.');
      });
    }
  }
}

/** Nothing when trying again does not help. */
function waitBefore(attempt: number, error: unknown): number | undefined {
  if (!(error instanceof AdminFailure) || !error.isPassing || attempt >= ATTEMPTS_MAX) return undefined;
  const waitMs = error.retryAfterMs ?? WAIT_MS.first * 2 ** (attempt - 1);
  return waitMs > WAIT_MS.max ? undefined : waitMs;
}

function commandFrom(line: number, file: string, { url, author }: Options): string {
  const flags = Object.entries({ '--url': url, '--author': author, '--from': String(line) });
  const given = flags.filter((flag): flag is [string, string] => flag[1] !== undefined);
  return [
    'npm run limiter -- keys import',
    quoted(file),
    ...given.map(([flag, value]) => `${flag} ${quoted(value)}`),
  ].join(' ');
}

/** As a shell reads it. */
function quoted(text: string): string {
  return /^[\w./:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Count, part and rate on stderr: once a second, on one line of a terminal or line by line, and at the end. */
class Progress {
  done = 0;
  readonly #total: number;
  readonly #startedMs = performance.now();
  #toldMs = performance.now();

  constructor(total: number) {
    this.#total = total;
  }

  add(count: number): void {
    this.done += count;
    // The end tells by itself.
    if (this.done === this.#total) return;
    if (performance.now() - this.#toldMs >= PROGRESS_MS) this.#tell(process.stderr.isTTY ? '' : '\n');
  }

  end(): void {
    this.#tell('\n');
  }

  /** A line of its own, above that of a terminal. */
  note(text: string): void {
    process.stderr.write(`${process.stderr.isTTY ? '\r\u001b[K' : ''}${text}\n`);
  }

  #tell(end: string): void {
    this.#toldMs = performance.now();
    const seconds = Math.max(0.001, (this.#toldMs - this.#startedMs) / 1_000);
    const part = Math.floor((100 * this.done) / this.#total);
    const line = `${countText(this.done)} of ${plural(this.#total, 'key')}, ${part}%, ${countText(Math.round(this.done / seconds))}/s`;
    process.stderr.write(process.stderr.isTTY ? `\r${line}\u001b[K${end}` : `${line}${end}`);
  }
}
