/** What the middleware needs of the Worker that mounts it, and what it leaves in a request's context. */
export interface LimiterBindings {
  readonly OWNER: DurableObjectNamespace;
  /** `"true"`: responses carry `Server-Timing` with what decided and how long that was waited for. */
  readonly SERVER_TIMING?: string;
}

export interface LimiterVariables {
  /** Domains whose limits this request has passed already. */
  limitedDomains?: readonly string[];
  /**
   * On routes whose cost is an estimate (`reserve`): says what the request has cost so far, in whole units from 0 to 1,000,000. The last
   * word before the response has ended counts; with `cost_header`, the last before it has begun.
   */
  settle?: (units: number) => void;
}

export interface LimiterEnv {
  Bindings: LimiterBindings;
  Variables: LimiterVariables;
}
