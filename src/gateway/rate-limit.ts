/**
 * The middleware: limits what comes after it. The gateway mounts it in front of its origin, and any Hono app can mount it in front of
 * its own routes.
 *
 * An admitted request goes on and its response carries the limit fields; a refused one is answered here. A request that passes the
 * middleware twice under one domain is charged once.
 */
import type { Context, MiddlewareHandler } from 'hono';
import type { Background } from '../engine/ports.ts';
import type { Facts } from '../policy/match.ts';
import { cfOf, regionOf } from '../policy/region.ts';
import type { Ruleset } from '../policy/ruleset.ts';
import { logEvent } from '../telemetry/log.ts';
import { attend } from './attend.ts';
import { exposeFields, isPreflight, readableBy } from './cors.ts';
import { type Fields, limitFields, tellsTimeOfDay } from './fields.ts';
import { identify, type LookUp } from './identify.ts';
import { type Decided, Limiter, platformTimer } from './limiter.ts';
import type { LimiterEnv } from './limiter-env.ts';
import { reasonOf } from './reason.ts';
import { refusal } from './respond.ts';
import type { Snapshot } from './snapshot.ts';

export type { LimiterBindings, LimiterEnv, LimiterVariables } from './limiter-env.ts';

const NO_DOMAINS: readonly string[] = [];

export interface RateLimitOptions<E extends LimiterEnv = LimiterEnv> {
  /** The ruleset in force; see `bundledSnapshot`. */
  readonly rules: (context: Context<E>) => Snapshot;
  /** The request's facts, in place of what the rule file's `identity` finds. A raw key must be hashed first (`sha256`). */
  readonly identify?: (context: Context<E>, ruleset: Ruleset) => Facts | Promise<Facts>;
  /** The request's cost in whole units, in place of the ruleset's. If it throws or answers anything else, the ruleset's holds. */
  readonly cost?: (context: Context<E>) => number;
  /** Where there is a control plane: its part in the way of a request. */
  readonly services?: (context: Context<E>) => LimiterServices;
}

/** What a gateway with a control plane brings along. */
export interface LimiterServices {
  readonly limiter: Limiter;
  /** Who shows a key; `undefined` where there is nobody to ask. */
  lookUp(background: Background): LookUp | undefined;
  /** Called once a request has been decided. */
  attend(background: Background): void;
}

export function rateLimit<E extends LimiterEnv>(options: RateLimitOptions<E>): MiddlewareHandler<E> {
  return async function rateLimitMiddleware(context, next) {
    const snapshot = options.rules(context);
    const { domain } = snapshot.ruleset;
    const passed: readonly string[] = context.get('limitedDomains') ?? NO_DOMAINS;
    if (passed.includes(domain)) return next();
    context.set('limitedDomains', [...passed, domain]);
    const services = options.services?.(context);
    const background = (work: Promise<unknown>) => context.executionCtx.waitUntil(work);
    const decision = decide(context, { snapshot, services, background }, options);
    let decided: Decided;
    let decidedInMs = 0;
    if (decision instanceof Promise) {
      // The clock is dear to read, so it is asked only where there is something to wait for.
      const startedMs = performance.now();
      decided = await decision;
      decidedInMs = performance.now() - startedMs;
    } else decided = decision;
    services?.attend(background);
    // What is told as a time of day counts from here; the origin may take its time.
    const nowMs = tellsTimeOfDay(snapshot.ruleset.headers) ? Date.now() : 0;
    const description = { decided, snapshot, decidedInMs, nowMs };
    if (decided.verdict.outcome === 'allowed') {
      if (decided.verdict.delayMs > 0) await platformTimer(decided.verdict.delayMs).done;
      const { stay } = decided.verdict;
      if (stay === undefined) await next();
      else await attend(context, decided, stay, next);
      try {
        describe(context, description);
      } catch (error) {
        // The origin has answered; a fault here must not take that answer away.
        logEvent({ event: 'limiter_fault', reason: String(error) });
      }
      return undefined;
    }
    return refuse(context, description);
  };
}

interface Surroundings {
  readonly snapshot: Snapshot;
  readonly services: LimiterServices | undefined;
  readonly background: Background;
}

/** One limiter for all that an isolate mounts for a domain: two would be two holders to every owner. It is made by the first request. */
const limiters = new WeakMap<DurableObjectNamespace, Map<string, Limiter>>();

function limiterOf(owners: DurableObjectNamespace, domain: string): Limiter {
  const known = limiters.get(owners) ?? new Map<string, Limiter>();
  limiters.set(owners, known);
  const limiter = known.get(domain) ?? new Limiter(owners);
  known.set(domain, limiter);
  return limiter;
}

function decide<E extends LimiterEnv>(
  context: Context<E>,
  { snapshot, services, background }: Surroundings,
  options: RateLimitOptions<E>,
): Decided | Promise<Decided> {
  const request = context.req.raw;
  const cost = options.cost === undefined ? undefined : costOf(context, options.cost);
  const limiter = services?.limiter ?? limiterOf(context.env.OWNER, snapshot.ruleset.domain);
  // Each reading of it is a trip out of the script.
  const { method } = request;
  const region = snapshot.isRegional ? () => regionOf(cfOf(request)) : undefined;
  const decideOn = (facts: Facts) =>
    limiter.decide(facts, snapshot, { cost, isPreflight: isPreflight(request, method), region }, background);
  const facts =
    options.identify?.(context, snapshot.ruleset) ??
    identify(request, snapshot, method, services?.lookUp(background));
  return facts instanceof Promise ? facts.then(decideOn) : decideOn(facts);
}

function costOf<E extends LimiterEnv>(
  context: Context<E>,
  cost: (context: Context<E>) => number,
): number | undefined {
  try {
    const units = cost(context);
    if (Number.isSafeInteger(units) && units >= 0) return units;
    logEvent({ event: 'cost_invalid', reason: `the cost function answered ${String(units)}` });
  } catch (error) {
    logEvent({ event: 'cost_invalid', reason: String(error) });
  }
  return undefined;
}

/** What there is to say about a request that has been decided. */
interface Description {
  readonly decided: Decided;
  readonly snapshot: Snapshot;
  readonly decidedInMs: number;
  /** When it was decided; 0 where no field tells a time of day. */
  readonly nowMs: number;
}

/** The answer to a request that does not go on; made in one go, since a flood is made of these. */
function refuse<E extends LimiterEnv>(context: Context<E>, description: Description): Response {
  const { decided, snapshot } = description;
  const { headers: mode, corsOrigins: origins } = snapshot.ruleset;
  return refusal(decided.verdict, reasonOf(decided), [
    fieldsOf(description),
    readableBy(context.req.raw, { origins, mode }),
    { 'Server-Timing': timingOf(context, description) },
  ]);
}

/** Writes the limit fields on what the origin answered; an answer that came from `fetch` can only be written on in a copy. */
function describe<E extends LimiterEnv>(context: Context<E>, description: Description): void {
  const fields = fieldsOf(description);
  const timing = timingOf(context, description);
  const { headers: mode, corsOrigins: origins } = description.snapshot.ruleset;
  const write = (headers: Headers) => {
    for (const name in fields) {
      const value = fields[name];
      if (value === undefined) headers.delete(name);
      else headers.set(name, value);
    }
    exposeFields(headers, context.req.raw, { origins, mode });
    if (timing !== undefined) headers.append('Server-Timing', timing);
  };
  try {
    write(context.res.headers);
  } catch (error) {
    // What immutable headers throw, and at the first of them.
    if (!(error instanceof TypeError)) throw error;
    // The body goes on streaming. Hono would copy the headers of the response in place onto the new one, which has them already.
    const copy = new Response(context.res.body, context.res);
    context.res = undefined;
    context.res = copy;
    write(copy.headers);
  }
}

/** A preflight is nobody's request, so nobody is told what is left of its limit. */
function fieldsOf({ decided, snapshot, nowMs }: Description): Fields {
  const { headers: mode, costs } = snapshot.ruleset;
  const cost = costs.length > 0 ? decided.cost : undefined;
  return decided.isPreflight ? {} : limitFields(decided.verdict.policies, { mode, cost, nowMs });
}

function timingOf<E extends LimiterEnv>(
  context: Context<E>,
  { decided, decidedInMs }: Description,
): string | undefined {
  if (context.env.SERVER_TIMING !== 'true') return undefined;
  return `limiter;desc="${decided.verdict.source}";dur=${decidedInMs.toFixed(2)}`;
}
