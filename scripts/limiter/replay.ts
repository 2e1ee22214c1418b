/**
 * `limiter replay LOG --rules A --rules B`: what two rulesets would have decided about the traffic that a log holds, by the production
 * gate and owners under the time of the log.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { type Command, InvalidArgumentError } from 'commander';
import { command, FailureError, UsageError } from '../command.ts';
import { readLog } from './replay/log.ts';
import { Progress } from './replay/progress.ts';
import { replay } from './replay/replay.ts';
import { formatReport } from './replay/report-text.ts';
import type { NamedRuleset } from './replay/tally.ts';
import { readRuleFile } from './validate.ts';

const EXAMPLES = `
The log has a JSON object a line (- reads it from stdin):
  {"time": 1790000000000, "attributes": {"api_key": "<SHA-256 of the key>", "tier": "free", "route": "/v1/search", "method": "GET"}}
"time" is in milliseconds since 1970. "attributes" are as rules see them: of a caller that is known by nothing else remote_address, and
of a key never the key itself. "cost" is what the request did cost; without it, what each ruleset says. Other fields are not read.
Lines may be out of order by up to 10,000 lines.

Both rulesets see the same attributes; their key directories are not asked. One isolate takes all the traffic, and owners answer at once.
Requests take no time: a concurrency limit has its slot back at once, and an estimate costs its default.

Examples:
  npm run limiter -- replay yesterday.jsonl --rules rules/default.yaml --rules new.yaml
  zcat old.jsonl.gz | npm run limiter -- replay - --rules rules/default.yaml --rules new.yaml --json

Ends with 0 whatever the difference, 1 when a rule file or a line of the log is invalid, 2 when one of them cannot be read.`;

interface Options {
  readonly rules: readonly string[];
  readonly top: number;
  readonly json?: boolean;
}

const TOP = 10;

/** As many callers as are told apart. */
const TOP_MAX = 100_000;

export function replayCommand(finish: (exitCode: number) => void): Command {
  return command(
    'replay',
    'Replays recorded traffic through two rulesets: who would gain, and who would lose.',
  )
    .argument('<log>', 'the recorded requests; - for stdin')
    .option('--rules <file>', 'a rule file; give two, the one in force first', collect, [])
    .option('--top <n>', 'how many callers to name of those that gain, and of those that lose', parseTop, TOP)
    .option('--json', 'print JSON')
    .addHelpText('after', EXAMPLES)
    .action(async (log: string, { rules, top, json }: Options) => {
      const rulesets = await readBoth(rules);
      if (rulesets === undefined) {
        finish(1);
        return;
      }
      const source = await openLog(log);
      const progress = new Progress(source.bytes);
      try {
        const records = readLog(source.chunks, source.name);
        const report = await replay(records, rulesets, {
          top,
          onProgress: (done) => progress.tell(done),
        });
        progress.end();
        console.log(json ? JSON.stringify(report, undefined, 2) : formatReport(report));
        finish(0);
      } finally {
        progress.end();
        await source.close();
      }
    });
}

function collect(file: string, known: readonly string[]): readonly string[] {
  return [...known, file];
}

function parseTop(text: string): number {
  const top = Number(text);
  if (!/^\d+$/.test(text) || top > TOP_MAX)
    throw new InvalidArgumentError(`wants a whole number from 0 to ${TOP_MAX}.`);
  return top;
}

/** Nothing when one of them is invalid; what is wrong with each has been said then. */
async function readBoth(
  files: readonly string[],
): Promise<readonly [NamedRuleset, NamedRuleset] | undefined> {
  const [a, b, ...others] = files;
  if (a === undefined || b === undefined || others.length > 0)
    throw new UsageError(`--rules: wants two rule files, the one in force first, and has ${files.length}.`);
  const [one, two] = await Promise.all([readRuleFile(a), readRuleFile(b)]);
  for (const rules of [one, two]) {
    if (!('errors' in rules)) continue;
    for (const line of rules.errors) console.error(line);
  }
  if ('errors' in one || 'errors' in two) return undefined;
  return [
    { name: a, ruleset: one.ruleset },
    { name: b, ruleset: two.ruleset },
  ];
}

interface Source {
  /** For messages. */
  readonly name: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** How long the log is, where that is known. */
  readonly bytes: number | undefined;
  readonly close: () => Promise<void>;
}

async function openLog(log: string): Promise<Source> {
  if (log === '-') return { name: 'stdin', chunks: process.stdin, bytes: undefined, close: async () => {} };
  let file: FileHandle | undefined;
  try {
    file = await open(log);
    const stats = await file.stat();
    if (stats.isDirectory()) throw new Error('it is a folder');
    const bytes = stats.isFile() ? stats.size : undefined;
    const handle = file;
    return { name: log, chunks: chunksOf(handle, log), bytes, close: () => handle.close() };
  } catch (error) {
    await file?.close();
    throw new UsageError(`cannot read ${log}: ${messageOf(error)}`);
  }
}

async function* chunksOf(file: FileHandle, log: string): AsyncGenerator<Uint8Array> {
  try {
    yield* file.createReadStream({ autoClose: false });
  } catch (error) {
    throw new FailureError(`cannot read on in ${log}: ${messageOf(error)}`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
