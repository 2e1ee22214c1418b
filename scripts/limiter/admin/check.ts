/** `limiter check`: what the server decides about a request, and charges for it, as if it had come. */
import type { Command } from 'commander';
import * as z from 'zod/mini';
import { durationText, plainText } from '../text.ts';
import { attributesOf, parseWhole, withAttributes } from './attributes.ts';
import {
  type ConnectionOptions,
  domainPart,
  lookupClient,
  lookupCommand,
  printJson,
  withDomain,
} from './connection.ts';

const EXAMPLES = `
Example:
  npm run limiter -- check --attr api_key=KEY --attr route=/v1/search --attr method=GET --peek

Ends with 0 whatever the decision.`;

interface Options extends ConnectionOptions {
  readonly attr: readonly string[];
  readonly domain?: string;
  readonly cost?: string;
  readonly peek?: boolean;
  readonly bound?: boolean;
  readonly region?: string;
}

const answer = z.looseObject({
  allowed: z.boolean(),
  reason: z.string(),
  retryAfterSeconds: z.nullable(z.number()),
  delayMs: z.number(),
  cost: z.number(),
  source: z.string(),
  shadowDenied: z.array(z.string()),
  policies: z.array(
    z.looseObject({
      policy: z.string(),
      outcome: z.string(),
      limit: z.number(),
      windowSeconds: z.nullable(z.number()),
      remaining: z.nullable(z.number()),
      resetSeconds: z.nullable(z.number()),
      retryAfterSeconds: z.nullable(z.number()),
      bound: z.nullish(z.looseObject({ sentences: z.array(z.string()) })),
    }),
  ),
  ignored: z.array(z.string()),
});

export function checkCommand(): Command {
  return withDomain(
    withAttributes(lookupCommand('check', 'Asks for a decision, which is charged like a request.')),
  )
    .option('--cost <n>', "what it costs, in place of the rules' costs")
    .option(
      '--region <region>',
      'where it comes from, for rules of regions (default: where this command runs)',
    )
    .option('--peek', 'only say what would be decided, and charge nothing')
    .option('--bound', 'also say what each policy can admit above its limit at worst, and when')
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      const { cost, peek, bound } = options;
      const client = lookupClient(options);
      const body = {
        ...domainPart(options.domain),
        attributes: attributesOf(options.attr),
        ...(cost !== undefined && { cost: parseWhole(cost, '--cost', 0) }),
        ...(options.region !== undefined && { region: options.region }),
        ...(peek && { peek }),
        ...(bound && { bound }),
      };
      const found = await client.ask(answer, { method: 'POST', path: '/check', body });
      if (options.json) printJson(found);
      else console.log(answerText(found));
    });
}

function answerText(found: z.output<typeof answer>): string {
  const { allowed, reason, cost, source, retryAfterSeconds, delayMs, policies, shadowDenied, ignored } =
    found;
  const why = allowed === (reason === 'allowed') && allowed ? '' : ` (${plainText(reason)})`;
  const wait = retryAfterSeconds === null ? '' : `, would fit in ${durationText(retryAfterSeconds * 1_000)}`;
  const delay = delayMs === 0 ? '' : `, to be held back for ${durationText(delayMs)}`;
  return [
    `${allowed ? 'allowed' : 'denied'}${why}, cost ${cost}, decided by ${plainText(source)}${wait}${delay}`,
    ...policies.flatMap((policy) => [policyLine(policy), ...boundLines(policy)]),
    ...(shadowDenied.length === 0 ? [] : [`  denied in shadow: ${plainText(shadowDenied.join(', '))}`]),
    ...(ignored.length === 0 ? [] : [`  known to no rule: ${plainText(ignored.join(', '))}`]),
  ].join('\n');
}

function policyLine(policy: z.output<typeof answer>['policies'][number]): string {
  const { outcome, limit, windowSeconds, remaining, resetSeconds } = policy;
  const per = windowSeconds === null ? 'at once' : `per ${durationText(windowSeconds * 1_000)}`;
  const left = remaining === null ? 'level unknown' : `${remaining} of ${limit} ${per} left`;
  const full = resetSeconds ? `, full again in ${durationText(resetSeconds * 1_000)}` : '';
  return `  policy ${JSON.stringify(policy.policy)}: ${plainText(outcome)}, ${left}${full}`;
}

function boundLines({ bound }: z.output<typeof answer>['policies'][number]): readonly string[] {
  return bound?.sentences.map((sentence) => `    ${plainText(sentence)}`) ?? [];
}
