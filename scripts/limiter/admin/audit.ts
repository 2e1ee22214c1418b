/** `limiter audit`: who changed what, the newest first. */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { parseWhole } from './attributes.ts';
import { type ConnectionOptions, lookupClient, lookupCommand, printJson } from './connection.ts';
import { table, timeText } from './table.ts';

interface Options extends ConnectionOptions {
  readonly limit: string;
  readonly before?: string;
}

const LISTED = 20;

const entries = z.looseObject({
  entries: z.array(
    z.looseObject({
      id: z.int(),
      at: z.string(),
      author: z.string(),
      action: z.string(),
      detail: z.record(z.string(), z.unknown()),
    }),
  ),
});

export function auditCommand(): Command {
  return lookupCommand('audit', 'Lists who changed what, the newest first.')
    .option('--limit <n>', 'how many, up to 1,000', String(LISTED))
    .option('--before <id>', 'only entries before this one')
    .action(async ({ limit, before, ...options }: Options) => {
      const client = lookupClient(options);
      const query = {
        limit: parseWhole(limit, '--limit', 1),
        ...(before !== undefined && { before: parseWhole(before, '--before', 1) }),
      };
      const found = await client.ask(entries, { method: 'GET', path: '/audit', query });
      if (options.json) printJson(found);
      else console.log(listText(found));
    });
}

function listText({ entries: list }: z.output<typeof entries>): string {
  if (list.length === 0) return 'no changes yet';
  const rows = list.map(({ id, at, author, action, detail }) => [
    String(id),
    timeText(at),
    author,
    action,
    detailText(detail),
  ]);
  return table(['ID', 'AT', 'AUTHOR', 'ACTION', 'DETAIL'], rows);
}

function detailText(detail: Readonly<Record<string, unknown>>): string {
  return Object.entries(detail)
    .map(
      ([name, value]) =>
        `${name}=${typeof value === 'string' && /^[\w-]+$/.test(value) ? value : JSON.stringify(value)}`,
    )
    .join(' ');
}
