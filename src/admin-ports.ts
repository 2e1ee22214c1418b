/**
 * The admin API's view of the isolate: the same rules, limiter and directory that requests meet.
 */
import type { AdminPorts } from './admin/ports.ts';
import type { OwnerCall, OwnerReply } from './engine/messages.ts';
import { CONTROL_NAME, type Isolate, type IsolateBindings, METRICS_NAME, within } from './gateway/isolate.ts';
import type { ControlApi } from './policy/control.ts';

export interface AdminBindings extends IsolateBindings {
  /** Opens the admin API; a secret. Without it there is none. */
  readonly ADMIN_TOKEN?: string;
}

/** As long as any request waits for an owner. */
const OWNER_MS_MAX = 1_000;

export function adminPorts(isolate: Isolate, bindings: AdminBindings): AdminPorts {
  const { ADMIN_TOKEN, CONTROL, METRICS, OWNER } = bindings;
  return {
    token: ADMIN_TOKEN,
    ownDomain: isolate.snapshot.ruleset.domain,
    nowMs: () => Date.now(),
    async domain(name) {
      const domain = await isolate.domain(name);
      if (domain === undefined) return undefined;
      const { limiter, source } = domain;
      const { snapshot } = source;
      return {
        ruleset: snapshot.ruleset,
        namedKeys: snapshot.namedKeys,
        matcher: snapshot.matcher,
        match: (facts) => snapshot.matcher.match(facts, { table: snapshot.clamps, nowMs: Date.now() }),
        decide: async (facts, cost, background) => limiter.decide(facts, snapshot, { cost }, background),
        forget: (counterIds) => limiter.forget(counterIds),
      };
    },
    lookUp(hash, address, background) {
      const caller = isolate.lookUp(background)?.(hash, () => address);
      return caller && Promise.resolve(caller);
    },
    forgetKey: (hash) => isolate.forgetKey(hash),
    callOwner: (owner, call) => {
      const stub = OWNER.getByName(owner) as unknown as { call(call: OwnerCall): Promise<OwnerReply> };
      return within(stub.call(call), OWNER_MS_MAX);
    },
    control: CONTROL && (CONTROL.getByName(CONTROL_NAME) as unknown as ControlApi),
    metrics:
      METRICS &&
      (async () => {
        // What this isolate has counted is part of the answer.
        await isolate.flush();
        return (METRICS.getByName(METRICS_NAME) as unknown as { text(): Promise<string> }).text();
      }),
    changed: (change, background) => isolate.changed(change, background),
  };
}
