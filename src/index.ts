/**
 * The Worker: what Cloudflare calls, and what other Workers may call or import.
 */

import { WorkerEntrypoint } from 'cloudflare:workers';
import { adminApi } from './admin/api.ts';
import { check } from './admin/check.ts';
import { parse } from './admin/input.ts';
import { ProblemError } from './admin/problems.ts';
import { type CheckAnswer, checkBody } from './admin/schemas.ts';
import { type AdminBindings, adminPorts } from './admin-ports.ts';
import { createGateway, type GatewayBindings } from './gateway/app.ts';
import { Isolate } from './gateway/isolate.ts';
import bundledRuleset from './generated/ruleset.json';
import { cfOf, REGION_UNKNOWN, type Region, regionOf } from './policy/region.ts';
import type { Ruleset } from './policy/ruleset.ts';

export { ControlPlane } from './objects/control-plane.ts';
export { LimiterOwner } from './objects/limiter-owner.ts';
export { MetricsHub } from './objects/metrics-hub.ts';

interface WorkerBindings extends GatewayBindings, AdminBindings {
  /** A compiled ruleset in place of the one that was bundled. */
  readonly BUNDLED_RULES?: Ruleset;
}

let isolate: Isolate | undefined;

/** Of the first request that came from outside. */
let region: Region | undefined;

/** The bindings do not change in the life of an isolate, so its first request makes it. */
function isolateOf(bindings: object): Isolate {
  const own = bindings as WorkerBindings;
  isolate ??= new Isolate(own, own.BUNDLED_RULES ?? (bundledRuleset as unknown as Ruleset), region);
  return isolate;
}

const gateway = createGateway({
  rules: (bindings) => isolateOf(bindings).snapshot,
  services: isolateOf,
  admin: adminApi<GatewayBindings>((bindings) => adminPorts(isolateOf(bindings), bindings as WorkerBindings)),
});

export default {
  fetch(request, bindings, context) {
    region ??= regionOf(cfOf(request));
    return gateway.fetch(request, bindings, context);
  },
} satisfies ExportedHandler<WorkerBindings>;

/** The check API for other Workers: `env.LIMITER.check({ domain, attributes, cost })`. */
export class Limiter extends WorkerEntrypoint<WorkerBindings> {
  /** Throws a TypeError for a question that makes no sense; whatever else happens, there is a decision. */
  async check(question: unknown): Promise<CheckAnswer> {
    const own = isolateOf(this.env);
    const ports = adminPorts(own, this.env);
    const background = (work: Promise<unknown>) => this.ctx.waitUntil(work);
    try {
      const body = parse(checkBody, question, 'question');
      const domain = await ports.domain(body.domain ?? ports.ownDomain);
      if (domain === undefined) throw new TypeError(`no rules are known for the domain ${body.domain}`);
      // Whoever calls from another Worker says where its own caller is.
      return await check(domain, body, { ports, background, region: REGION_UNKNOWN });
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      const { errors = [], message } = error.details;
      const mistakes = errors.map(({ path, message: what }) => `${path.join('.')}: ${what}`);
      throw new TypeError([message, ...mistakes].join(' '));
    } finally {
      own.attend(background);
    }
  }
}
