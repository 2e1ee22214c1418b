/**
 * What all commands that talk to a server share: where it is, who asks, and which domain is meant.
 */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { domainName } from '../../../src/admin/schemas.ts';
import { command, UsageError } from '../../command.ts';
import { AdminClient } from '../admin-client.ts';
import { authorOf } from './author.ts';

const DEFAULT_URL = 'http://127.0.0.1:8787';

export interface ConnectionOptions {
  readonly url?: string;
  readonly author?: string;
  readonly json?: boolean;
}

/** A command that asks a server. */
export function lookupCommand(name: string, description: string): Command {
  return withConnection(command(name, description));
}

/** A command that changes something there. */
export function changeCommand(name: string, description: string): Command {
  return lookupCommand(name, description).option(
    '--author <name>',
    'who makes the change, for the audit (default: LIMITER_AUTHOR, else the user.name of git, else USER)',
  );
}

export function withConnection(target: Command): Command {
  const withUrl = target.option(
    '--url <url>',
    `where the limiter is (default: LIMITER_URL, else ${DEFAULT_URL})`,
  );
  return hasOption(target, '--json') ? withUrl : withUrl.option('--json', 'print JSON');
}

/** For commands about one domain. */
export function withDomain(target: Command): Command {
  return target.option('--domain <name>', 'the domain (default: the one that the gateway itself applies)');
}

export function lookupClient({ url }: ConnectionOptions): AdminClient {
  return new AdminClient(parseUrl(url), { token: tokenOf() });
}

export async function changeClient({ url, author }: ConnectionOptions): Promise<AdminClient> {
  const identity = { token: tokenOf(), author: await authorOf(author) };
  return new AdminClient(parseUrl(url), identity);
}

const explained = z.object({ domain: z.string() });

/** Health does not tell the gateway's own domain; what explains a request to it does. */
export async function domainOf(client: AdminClient, given: string | undefined): Promise<string> {
  if (given !== undefined) return checkedDomain(given);
  const body = { attributes: {} };
  const { domain } = await client.ask(explained, { method: 'POST', path: '/explain', body });
  return domain;
}

/** As a part of a body: without it the server takes its own. */
export function domainPart(given: string | undefined): { readonly domain?: string } {
  return given === undefined ? {} : { domain: checkedDomain(given) };
}

export function rulesetsPath(domain: string, ...more: readonly (string | number)[]): string {
  return ['/rulesets', encodeURIComponent(domain), ...more].join('/');
}

export function printJson(value: unknown): void {
  console.log(JSON.stringify(value, undefined, 2));
}

function checkedDomain(given: string): string {
  const domain = domainName.safeParse(given);
  if (!domain.success) throw new UsageError('--domain wants 1 to 128 characters of printable ASCII.');
  return domain.data;
}

/** Read here and not by commander, which quotes what it refuses, and a URL may hold a password. */
function parseUrl(given: string | undefined): URL {
  const text = given ?? (process.env.LIMITER_URL || DEFAULT_URL);
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '')
    throw new UsageError(
      '--url (or LIMITER_URL) wants an http:// or https:// URL without a user name in it.',
    );
  return url;
}

function tokenOf(): string {
  const token = process.env.LIMITER_ADMIN_TOKEN;
  if (token === undefined || token === '')
    throw new UsageError('LIMITER_ADMIN_TOKEN is not set: put the admin token of the server there.');
  return token;
}

function hasOption(target: Command, flag: string): boolean {
  return target.options.some(({ long }) => long === flag);
}
