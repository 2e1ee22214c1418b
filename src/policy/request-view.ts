/**
 * A request as rules see it: each attribute in its one spelling, worked out at most once, and only when a rule asks.
 *
 * An empty value is no value. The subject is the API key, else the user, else a key that nobody could look up, else the address; it is
 * always there.
 */
import { type Address, countedAddress, parseAddress, UNKNOWN_ADDRESS } from './address.ts';
import { canonicalMethod, canonicalValue, UNVERIFIED_KEY } from './attributes.ts';
import { normalisePath, type RouteTable } from './route-pattern.ts';
import type { Ruleset } from './ruleset.ts';

/** What is known about a request. */
export interface Facts {
  /** `api_key` is the key's SHA-256, never the key. `remote_address` is a whole address in any notation. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The normalised path. Where there is none, `attributes.route` is taken as the path. */
  readonly path?: string | undefined;
  /** SHA-256 of the key that was shown, whoever that turned out to be. */
  readonly key?: string | undefined;
  /** Where there is none, `attributes.method` is taken. */
  readonly method?: string | undefined;
}

export type Pair = readonly [attribute: string, value: string];

export class RequestView {
  /** The patterns that the request's path matches, the most specific first. */
  readonly routes: readonly string[];
  readonly method: string | undefined;
  /** SHA-256 of the key that was shown. */
  readonly key: string | undefined;
  readonly #ruleset: Ruleset;
  readonly #attributes: Readonly<Record<string, unknown>>;
  #address: Address | null | undefined;

  constructor(ruleset: Ruleset, table: RouteTable, facts: Facts) {
    this.#ruleset = ruleset;
    this.#attributes = facts.attributes;
    this.key = facts.key ?? this.#text('api_key');
    const path = facts.path ?? this.#text('route');
    this.routes = path === undefined ? [] : table.matching(facts.path ?? normalisePath(path));
    const method = facts.method ?? this.#text('method');
    this.method = method === undefined ? undefined : canonicalMethod(method);
  }

  /** The value that is compared with an exact value or a `*` pattern. An address is compared whole, by its canonical text. */
  compared(key: string): string | undefined {
    switch (key) {
      case 'remote_address':
        return this.#addressText((address) => address.text);
      case 'route':
        return this.routes[0];
      case 'method':
        return this.method;
      case 'subject':
        return this.subject()[1];
      default: {
        const value = this.#text(key);
        return value === undefined ? undefined : canonicalValue(key, value, this.#ruleset.attributes);
      }
    }
  }

  get address(): Address | undefined {
    if (this.#address === undefined) this.#address = parseAddress(this.#text('remote_address') ?? '') ?? null;
    return this.#address ?? undefined;
  }

  /** The value that is counted: as compared, but for an address, which counts by its network. */
  counted(key: string): string | undefined {
    if (key !== 'remote_address') return this.compared(key);
    return this.#addressText((address) => countedAddress(address, this.#ruleset.identity.ipv6Prefix));
  }

  subject(): Pair {
    for (const attribute of ['api_key', 'user', UNVERIFIED_KEY]) {
      const value = this.#text(attribute);
      if (value !== undefined) return [attribute, value];
    }
    return ['remote_address', this.counted('remote_address') ?? UNKNOWN_ADDRESS];
  }

  /** An address that cannot be read is an address all the same, or leaving it unreadable would pass every rule about addresses. */
  #addressText(spell: (address: Address) => string): string | undefined {
    if (this.#text('remote_address') === undefined) return undefined;
    return this.address === undefined ? UNKNOWN_ADDRESS : spell(this.address);
  }

  #text(key: string): string | undefined {
    const value = this.#attributes[key];
    return typeof value === 'string' && value !== '' ? value : undefined;
  }
}
