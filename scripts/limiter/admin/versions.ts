/** `limiter versions`, `activate` and `rollback`: what was published, and which of it is in force. */
import { type Command, InvalidArgumentError } from 'commander';
import * as z from 'zod/mini';
import { plainText } from '../text.ts';
import { parseWhole } from './attributes.ts';
import {
  type ConnectionOptions,
  changeClient,
  changeCommand,
  domainOf,
  lookupClient,
  lookupCommand,
  printJson,
  rulesetsPath,
  withDomain,
} from './connection.ts';
import { table, timeText } from './table.ts';

interface Options extends ConnectionOptions {
  readonly domain?: string;
}

interface ListOptions extends Options {
  readonly limit: string;
  readonly before?: string;
}

const activation = z.looseObject({
  activation: z.int(),
  version: z.int(),
  activatedAt: z.string(),
  author: z.string(),
  cause: z.string(),
});

export const versionList = z.looseObject({
  active: z.nullable(activation),
  versions: z.array(
    z.looseObject({ version: z.int(), createdAt: z.string(), author: z.string(), message: z.string() }),
  ),
});

const activated = z.looseObject({ activation: z.int(), version: z.int() });

const LISTED = 20;

export function versionsCommand(): Command {
  return withDomain(
    lookupCommand('versions', 'Lists what was published, the newest first, and what is in force.'),
  )
    .option('--limit <n>', 'how many, up to 1,000', String(LISTED))
    .option('--before <version>', 'only versions before this one')
    .action(async ({ limit, before, ...options }: ListOptions) => {
      const client = lookupClient(options);
      const query = {
        limit: parseWhole(limit, '--limit', 1),
        ...(before !== undefined && { before: parseWhole(before, '--before', 1) }),
      };
      const domain = await domainOf(client, options.domain);
      const list = await client.ask(versionList, { method: 'GET', path: rulesetsPath(domain), query });
      if (options.json) printJson(list);
      else console.log(listText(list, domain));
    });
}

export function activateCommand(): Command {
  return withDomain(changeCommand('activate', 'Puts a version in force.'))
    .argument('<version>', 'its number, as `versions` lists it', parseVersion)
    .option(
      '--at-least <n>',
      'an activation no smaller than this: for a control plane that has lost its storage (health tells what isolates have)',
    )
    .action(async (version: number, { atLeast, ...options }: Options & { readonly atLeast?: string }) => {
      const client = await changeClient(options);
      const domain = await domainOf(client, options.domain);
      const path = rulesetsPath(domain, version, 'activate');
      const query = { ...(atLeast !== undefined && { atLeast: parseWhole(atLeast, '--at-least', 1) }) };
      const done = await client.ask(activated, { method: 'POST', path, query });
      if (options.json) printJson(done);
      else console.log(activatedText(done, domain));
    });
}

export function rollbackCommand(): Command {
  return withDomain(
    changeCommand('rollback', 'Puts the version in force that was in force before the present one.'),
  )
    .addHelpText(
      'after',
      '\nA second rollback goes back one version more; `activate N` puts any version in force.',
    )
    .action(async (options: Options) => {
      const client = await changeClient(options);
      const domain = await domainOf(client, options.domain);
      const done = await client.ask(activated, { method: 'POST', path: rulesetsPath(domain, 'rollback') });
      if (options.json) printJson(done);
      else console.log(activatedText(done, domain));
    });
}

function parseVersion(text: string): number {
  if (!/^[1-9]\d{0,14}$/.test(text)) throw new InvalidArgumentError('a version is a whole number from 1.');
  return Number(text);
}

function activatedText({ version, activation }: z.output<typeof activated>, domain: string): string {
  return `version ${version} of ${JSON.stringify(domain)} is in force (activation ${activation})`;
}

function listText({ active, versions }: z.output<typeof versionList>, domain: string): string {
  const name = JSON.stringify(domain);
  if (active === null && versions.length === 0)
    return `nothing was published for ${name}: the bundled rules are in force`;
  const force =
    active === null
      ? `the bundled rules of ${name} are in force`
      : `version ${active.version} of ${name} is in force since ${timeText(active.activatedAt)} (${active.cause} by ${plainText(active.author)})`;
  const rows = versions.map(({ version, createdAt, author, message }) => [
    String(version),
    version === active?.version ? 'in force' : '',
    timeText(createdAt),
    author,
    message,
  ]);
  return `${force}\n\n${table(['VERSION', '', 'CREATED', 'AUTHOR', 'MESSAGE'], rows)}`;
}
