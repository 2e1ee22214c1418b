/** `limiter keys`: the directory that says what each API key stands for. It holds SHA-256 hashes; raw keys are hashed here. */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { command, UsageError } from '../../command.ts';
import { plainText } from '../text.ts';
import { collect, pairsOf, parseWhole } from './attributes.ts';
import {
  type ConnectionOptions,
  changeClient,
  changeCommand,
  lookupClient,
  lookupCommand,
  printJson,
} from './connection.ts';
import { entryText, readKey, type WireKey } from './key-entry.ts';
import { importCommand } from './key-import.ts';

const KEY_EXAMPLES = `
What stands on a command line is seen by other programs of the machine, and kept in the shell's history; \`--key -\` is not:
  npm run limiter -- keys add --key - --tier premium --org acme < key.txt`;

interface NameOptions extends ConnectionOptions {
  readonly key?: string;
  readonly keySha256?: string;
}

interface AddOptions extends NameOptions {
  readonly tier?: string;
  readonly org?: string;
  readonly user?: string;
  readonly label: readonly string[];
  readonly expires?: string;
  readonly disabled?: boolean;
}

interface ListOptions extends NameOptions {
  readonly limit?: string;
}

const PAGE = 1_000;

/** Many times the longest key: what is longer is another file. */
const STDIN_LENGTH_MAX = 4_096;

const stored = z.looseObject({ stored: z.int() });
const removed = z.looseObject({ removed: z.int() });
const keyList = z.looseObject({
  keys: z.array(
    z.looseObject({
      keySha256: z.string(),
      tier: z.optional(z.string()),
      org: z.optional(z.string()),
      user: z.optional(z.string()),
      labels: z.optional(z.record(z.string(), z.string())),
      disabled: z.optional(z.boolean()),
      expiresAt: z.optional(z.string()),
    }),
  ),
  next: z.nullable(z.string()),
});

export function keysCommand(finish: (exitCode: number) => void): Command {
  return command('keys', 'The key directory: what each API key stands for.')
    .addCommand(addCommand())
    .addCommand(listCommand())
    .addCommand(revokeCommand())
    .addCommand(importCommand(finish));
}

function withName(target: Command): Command {
  return target
    .option('--key <key>', 'the key itself; - reads it from stdin')
    .option('--key-sha256 <hex>', 'its SHA-256, where the key is not at hand');
}

function addCommand(): Command {
  return withName(changeCommand('add', 'Adds a key to the directory, or replaces its entry as a whole.'))
    .option('--tier <name>', 'the tier of its caller')
    .option('--org <name>', 'the organisation')
    .option('--user <name>', 'the user')
    .option(
      '--label <key=value>',
      'more about the caller, which rules see as label_KEY; may be repeated',
      collect,
      [],
    )
    .option('--expires <time>', 'from then on it is as good as unknown: 2027-01-31T00:00:00Z')
    .option('--disabled', 'it is as good as unknown')
    .addHelpText('after', KEY_EXAMPLES)
    .action(async (options: AddOptions) => {
      const client = await changeClient(options);
      const key = await keyOf(options);
      const done = await client.ask(stored, { method: 'PUT', path: '/keys', body: key });
      if (options.json) printJson(done);
      else console.log(`stored ${key.keySha256}: ${entryText(key)}`);
    });
}

function revokeCommand(): Command {
  return withName(changeCommand('revoke', 'Takes a key out of the directory.'))
    .addHelpText('after', KEY_EXAMPLES)
    .action(async (options: NameOptions) => {
      const client = await changeClient(options);
      const { keySha256 } = await keyOf(options);
      const done = await client.ask(removed, { method: 'DELETE', path: '/keys', body: { keySha256 } });
      if (options.json) printJson(done);
      else console.log(`revoked ${keySha256}`);
    });
}

function listCommand(): Command {
  return withName(lookupCommand('list', 'Lists the directory in order of hashes; or one key.'))
    .option('--limit <n>', 'at most so many (default: all)')
    .addHelpText('after', '\nWith --json each line is one key, as `keys import` reads them.')
    .action(async (options: ListOptions) => {
      const client = lookupClient(options);
      const limit =
        options.limit === undefined ? Number.POSITIVE_INFINITY : parseWhole(options.limit, '--limit', 1);
      const isOne = options.key !== undefined || options.keySha256 !== undefined;
      const one = isOne ? { keySha256: (await keyOf(options)).keySha256 } : undefined;
      let listed = 0;
      let after = '';
      do {
        const query = one ?? { after, limit: Math.min(PAGE, limit - listed) };
        const { keys, next } = await client.ask(keyList, { method: 'GET', path: '/keys', query });
        for (const key of keys) console.log(options.json ? JSON.stringify(key) : lineOf(key));
        listed += keys.length;
        after = next ?? '';
      } while (after !== '' && listed < limit);
      if (listed === 0 && !options.json) console.log('no keys');
    });
}

function lineOf({ keySha256, ...entry }: z.output<typeof keyList>['keys'][number]): string {
  return `${plainText(keySha256)}  ${entryText(entry as Partial<WireKey>)}`;
}

/** The entry that the flags describe. */
async function keyOf(options: NameOptions & Partial<AddOptions>): Promise<WireKey> {
  const { key, keySha256, tier, org, user, label = [], expires, disabled } = options;
  if ((key === undefined) === (keySha256 === undefined))
    throw new UsageError(
      'Name the key: by --key KEY, by --key - (reads it from stdin) or by --key-sha256 HEX.',
    );
  const read = readKey({
    key: key === '-' ? await readStdin() : key,
    keySha256,
    tier,
    org,
    user,
    ...(label.length > 0 && { labels: pairsOf(label, '--label') }),
    ...(disabled && { disabled }),
    expiresAt: expires,
  });
  if ('key' in read) return read.key;
  throw new UsageError(...read.problems.map(({ field, message }) => `${FLAGS[field] ?? field}: ${message}`));
}

const FLAGS: Readonly<Record<string, string>> = {
  key: '--key',
  keySha256: '--key-sha256',
  tier: '--tier',
  org: '--org',
  user: '--user',
  labels: '--label',
  expiresAt: '--expires',
};

async function readStdin(): Promise<string> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const chunk of process.stdin) {
    text += chunk;
    if (text.length > STDIN_LENGTH_MAX) throw new UsageError('--key -: stdin holds more than one key.');
  }
  return text.trimEnd();
}
