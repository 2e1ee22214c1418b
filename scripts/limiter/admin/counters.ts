/** `limiter inspect` and `reset`: a caller's counters as their owners hold them. */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { durationText, plainText, plural } from '../text.ts';
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
import { pairsText } from './table.ts';

const EXAMPLES = `
Which counters there are follows from the rules that the attributes meet, so a counter of a route wants the route too:
  --attr api_key=KEY --attr route=/v1/search --attr method=GET`;

interface Options extends ConnectionOptions {
  readonly attr: readonly string[];
  readonly domain?: string;
}

const inspected = z.looseObject({
  counters: z.array(
    z.looseObject({
      policy: z.string(),
      rule: z.string(),
      shadow: z.boolean(),
      caller: z.record(z.string(), z.string()),
      owner: z.string(),
      region: z.nullish(z.string()),
      algorithm: z.string(),
      limit: z.number(),
      windowSeconds: z.number(),
      burst: z.number(),
      remaining: z.nullable(z.number()),
      resetSeconds: z.nullable(z.number()),
      activeHolders: z.number(),
    }),
  ),
  local: z.array(z.string()),
});

const setBack = z.looseObject({ reset: z.array(z.string()), local: z.array(z.string()) });

export function inspectCommand(): Command {
  return withDomain(
    withAttributes(lookupCommand('inspect', "Shows a caller's counters as their owners hold them.")),
  )
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const client = lookupClient(options);
      const found = await client.ask(inspected, {
        method: 'POST',
        path: '/counters/inspect',
        body: bodyOf(options),
      });
      if (options.json) printJson(found);
      else console.log(inspectedText(found));
    });
}

export function resetCommand(): Command {
  return withDomain(withAttributes(changeCommand('reset', "Sets a caller's counters back to full.")))
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const client = await changeClient(options);
      const done = await client.ask(setBack, {
        method: 'POST',
        path: '/counters/reset',
        body: bodyOf(options),
      });
      if (options.json) printJson(done);
      else console.log([`set back ${plural(done.reset.length, 'counter')}`, ...localLines(done)].join('\n'));
    });
}

function bodyOf({ attr, domain }: Options) {
  return { ...domainPart(domain), attributes: attributesOf(attr) };
}

function inspectedText({ counters, local }: z.output<typeof inspected>): string {
  const lines =
    counters.length === 0 ? ['no rule counts this caller at an owner'] : counters.flatMap(counterLines);
  return [...lines, ...localLines({ local })].join('\n');
}

type Counter = z.output<typeof inspected>['counters'][number];

function counterLines(counter: Counter): readonly string[] {
  const { policy, rule, shadow, caller, limit, burst, remaining, resetSeconds, activeHolders } = counter;
  const region = counter.region ? `, in ${plainText(counter.region)}` : '';
  const isSlots = counter.algorithm === 'concurrency';
  const left = remaining === null ? 'unread' : `${remaining} left`;
  const numbers = isSlots
    ? `${limit} at once`
    : `${limit} per ${durationText(counter.windowSeconds * 1_000)}, burst ${burst}`;
  const full = isSlots || !resetSeconds ? '' : `, full again in ${durationText(resetSeconds * 1_000)}`;
  return [
    `policy ${JSON.stringify(policy)}${shadow ? ', shadow' : ''}${region}, ${plainText(rule)}: ${left}${full}`,
    `  ${counter.algorithm}, ${numbers}; asked for lately by ${plural(activeHolders, 'isolate')}`,
    `  counts per: ${pairsText(caller) || '(one counter for all)'}`,
    `  held by: ${plainText(counter.owner)}`,
  ];
}

/** Nobody can look into these, nor set them back. */
function localLines({ local }: { readonly local: readonly string[] }): readonly string[] {
  return local.length === 0
    ? []
    : [`counted in each isolate by itself, out of reach: ${plainText(local.join(', '))}`];
}
