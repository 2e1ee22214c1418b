/** `limiter diff A B`, where either may be a version that was published. */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { compile } from '../../../src/policy/compile.ts';
import { RULESET_FORMAT, type Ruleset } from '../../../src/policy/ruleset.ts';
import { FailureError } from '../../command.ts';
import type { AdminClient } from '../admin-client.ts';
import { diffCommand, rulesetOfFile } from '../diff.ts';
import { sha256 } from '../load.ts';
import {
  type ConnectionOptions,
  domainOf,
  lookupClient,
  rulesetsPath,
  withConnection,
  withDomain,
} from './connection.ts';
import { versionList } from './versions.ts';

const EXAMPLES = `
A ruleset is a rule file, the number of a version on the server, or \`active\`: the version that is in force there. (A file that is called 7
is ./7.) Only with a version is a server asked.

  npm run limiter -- diff 3 4
  npm run limiter -- diff active rules/default.yaml`;

interface Options extends ConnectionOptions {
  readonly domain?: string;
}

const versionShown = z.looseObject({
  rules: z.unknown(),
  compiled: z.looseObject({ format: z.int(), builtAtMs: z.number() }),
});

export function publishedDiffCommand(finish: (exitCode: number) => void): Command {
  const target: Command = diffCommand(finish, async (name) => {
    if (name !== 'active' && !/^\d+$/.test(name)) return await rulesetOfFile(name);
    const options = target.opts<Options>();
    const client = lookupClient(options);
    const domain = await domainOf(client, options.domain);
    return await rulesetOf(
      client,
      domain,
      name === 'active' ? await activeVersion(client, domain) : Number(name),
    );
  });
  return withDomain(withConnection(target)).addHelpText('after', EXAMPLES);
}

async function activeVersion(client: AdminClient, domain: string): Promise<number> {
  const query = { limit: 1 };
  const { active } = await client.ask(versionList, { method: 'GET', path: rulesetsPath(domain), query });
  if (active !== null) return active.version;
  throw new FailureError(
    `No version of ${JSON.stringify(domain)} is in force at ${client.url.origin}: it has its bundled rules, so name their file instead.`,
  );
}

/** As it decides there; one that was compiled by other code is compiled again from its source. */
async function rulesetOf(client: AdminClient, domain: string, version: number): Promise<Ruleset> {
  const path = rulesetsPath(domain, version);
  const { rules, compiled } = await client.ask(versionShown, { method: 'GET', path });
  if (compiled.format === RULESET_FORMAT) return compiled as unknown as Ruleset;
  const again = compile(rules, { sha256, builtAtMs: compiled.builtAtMs });
  if (again.ok) return again.ruleset;
  throw new FailureError(
    `Version ${version} of ${JSON.stringify(domain)} does not compile here: this command and the server are of different versions.`,
  );
}
