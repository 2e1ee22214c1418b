/**
 * Where published rules are read from: KV, which is near and may be a minute behind, and the control plane, which knows.
 */
import { activationKey, headKey } from '../policy/activation.ts';
import type { RulesStore } from './rules-source.ts';

/** What the control plane answers isolates. */
export interface ControlStub {
  head(domain: string): Promise<string | null>;
  activation(domain: string, activation: number): Promise<string | null>;
  key(hash: string): Promise<string | null>;
}

export function kvStore(namespace: KVNamespace, cacheTtl: number): RulesStore {
  return {
    head: (domain) => namespace.get(headKey(domain), { cacheTtl }),
    activation: (domain, activation) => namespace.get(activationKey(domain, activation), { cacheTtl }),
  };
}

export function controlStore(stub: () => ControlStub): RulesStore {
  return {
    head: (domain) => stub().head(domain),
    activation: (domain, activation) => stub().activation(domain, activation),
  };
}
