/**
 * The admin API's view of the isolate: the same rules, limiter and directory that requests meet.
 */
import type { AdminPorts } from './admin/ports.ts';
import type { OwnerCall, OwnerReply } from './engine/messages.ts';
import { CONTROL_NAME, type Isolate, type IsolateBindings, METRICS_NAME, within } from './gateway/isolate.ts';
import { stubOf } from './gateway/limiter.ts';
import type { ControlApi } from './policy/control.ts';
import { hintOf } from './policy/place.ts';

export interface AdminBindings extends IsolateBindings {
  /** Opens the admin API; a secret. Without it there is none. */
  readonly ADMIN_TOKEN?: string;
}

/** As long as any request waits for an owner. */
const OWNER_MS_MAX = 1_000;

/** One may be on the other side of the world, and have to be made first. */
const REGIONAL_OWNER_MS_MAX = 3_000;

interface OwnerStub {
  call(call: OwnerCall): Promise<OwnerReply>;
}

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
        decide: async (facts, { cost, region }, background) =>
          limiter.decide(facts, snapshot, { cost, region: () => region }, background),
        forget: (counterIds) => limiter.forget(counterIds),
      };
    },
    lookUp(hash, address, background) {
      const caller = isolate.lookUp(background)?.(hash, () => address);
      return caller && Promise.resolve(caller);
    },
    forgetKey: (hash) => isolate.forgetKey(hash),
    callOwner: (owner, call) => {
      const hint = hintOf(owner);
      const stub = stubOf<OwnerStub>(OWNER, { name: owner, ...(hint && { hint }) });
      return within(stub.call(call), hint === undefined ? OWNER_MS_MAX : REGIONAL_OWNER_MS_MAX);
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
