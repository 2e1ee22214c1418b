/** `limiter clamp`, `unclamp` and `clamps`: one caller is overridden for a while, whatever the rules say. */
import { type Command, InvalidArgumentError } from 'commander';
import * as z from 'zod/mini';
import { UsageError } from '../../command.ts';
import { plainText } from '../text.ts';
import { attributesOf, withAttributes } from './attributes.ts';
import {
  type ConnectionOptions,
  changeClient,
  changeCommand,
  domainPart,
  lookupClient,
  lookupCommand,
  printJson,
  withDomain,
} from './connection.ts';
import { pairsText, table, timeText } from './table.ts';

const EXAMPLES = `
One caller has one clamp: a second takes the place of the first. Of several clamps that are about one request --deny wins.

Examples:
  npm run limiter -- clamp --attr api_key=KEY --deny --for 1h
  npm run limiter -- clamp --attr remote_address=192.0.2.1 --rpm 10 --for 30m
  npm run limiter -- clamp --attr org=acme --unlimited --for 2d`;

interface CallerOptions extends ConnectionOptions {
  readonly attr: readonly string[];
  readonly domain?: string;
}

interface ClampOptions extends CallerOptions {
  readonly rpm?: number;
  readonly deny?: boolean;
  readonly unlimited?: boolean;
  readonly for: number;
}

const clamp = z.looseObject({
  attributes: z.record(z.string(), z.string()),
  action: z.string(),
  rpm: z.optional(z.int()),
  until: z.string(),
  author: z.string(),
  at: z.string(),
});

const told = { told: z.boolean(), untold: z.optional(z.string()) };
const clamped = z.looseObject({ clamp, ...told });
const lifted = z.looseObject({ lifted: clamp, ...told });
const clampList = z.looseObject({ clamps: z.array(clamp) });

export function clampCommand(): Command {
  return withDomain(withAttributes(changeCommand('clamp', 'Overrides one caller for a while.')))
    .option('--rpm <n>', 'at most so many requests a minute, beside what the rules say', parseRpm)
    .option('--deny', 'no request at all')
    .option('--unlimited', 'as many as it likes: the rules are set aside')
    .requiredOption(
      '--for <duration>',
      'it ends by itself after this: 30s, 5m, 2h, 7d (30d at most)',
      parseSeconds,
    )
    .addHelpText('after', EXAMPLES)
    .action(async (options: ClampOptions) => {
      const client = await changeClient(options);
      const body = {
        ...domainPart(options.domain),
        attributes: attributesOf(options.attr),
        ...actionOf(options),
        forSeconds: options.for,
      };
      const made = await client.ask(clamped, { method: 'PUT', path: '/clamps', body });
      tellUntold(made);
      if (options.json) printJson(made);
      else console.log(`${clampText(made.clamp)} until ${timeText(made.clamp.until)}`);
    });
}

export function unclampCommand(): Command {
  return withDomain(withAttributes(changeCommand('unclamp', 'Lifts the clamp on a caller.'))).action(
    async (options: CallerOptions) => {
      const client = await changeClient(options);
      const body = { ...domainPart(options.domain), attributes: attributesOf(options.attr) };
      const done = await client.ask(lifted, { method: 'DELETE', path: '/clamps', body });
      tellUntold(done);
      if (options.json) printJson(done);
      else console.log(`lifted: ${clampText(done.lifted)}`);
    },
  );
}

export function clampsCommand(): Command {
  return withDomain(lookupCommand('clamps', 'Lists the clamps in force.')).action(
    async ({ domain, ...options }: Omit<CallerOptions, 'attr'>) => {
      const client = lookupClient(options);
      const found = await client.ask(clampList, {
        method: 'GET',
        path: '/clamps',
        query: domainPart(domain),
      });
      if (options.json) printJson(found);
      else console.log(listText(found));
    },
  );
}

function actionOf({ rpm, deny, unlimited }: ClampOptions): Readonly<Record<string, unknown>> {
  const actions = [
    ...(rpm === undefined ? [] : [{ action: 'limit', rpm }]),
    ...(deny ? [{ action: 'deny' }] : []),
    ...(unlimited ? [{ action: 'unlimited' }] : []),
  ];
  const [action] = actions;
  if (action === undefined || actions.length > 1)
    throw new UsageError('clamp wants one of --rpm N, --deny and --unlimited.');
  return action;
}

function parseRpm(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError('wants a whole number from 1.');
  return Number(text);
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

function parseSeconds(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,8})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined)
    throw new InvalidArgumentError('wants a number and a unit: 30s, 5m, 2h or 7d.');
  return Number(count) * UNIT_SECONDS[unit]!;
}

/** It is in force all the same; who was not told learns of it a little later. */
function tellUntold({ untold }: { readonly untold?: string | undefined }): void {
  if (untold === undefined) return;
  console.error(
    `Not everybody has been told yet (${plainText(untold)}): it takes hold with the next refresh.`,
  );
}

function clampText({ attributes, action, rpm }: z.output<typeof clamp>): string {
  return `${pairsText(attributes)}: ${actionText({ action, rpm })}`;
}

function actionText({ action, rpm }: { readonly action: string; readonly rpm: number | undefined }): string {
  return rpm === undefined ? action : `at most ${rpm} a minute`;
}

function listText({ clamps }: z.output<typeof clampList>): string {
  if (clamps.length === 0) return 'no clamps';
  const rows = clamps.map(({ attributes, action, rpm, until, author }) => [
    pairsText(attributes),
    actionText({ action, rpm }),
    timeText(until),
    author,
  ]);
  return table(['CALLER', 'ACTION', 'UNTIL', 'AUTHOR'], rows);
}
