/**
 * What differs between two rulesets outside of their rules: settings, under the names that a rule file gives them, and the key directory.
 */
import { titleOf } from './explain.ts';
import { regionsOf } from './place.ts';
import type { AttributeSource, CostRule, Identity, KeyLocation, Rule, Ruleset } from './ruleset.ts';

/** Without `before` it is new; without `after` it is gone. */
export interface SettingChange {
  readonly setting: string;
  readonly before?: string;
  readonly after?: string;
}

type KeyAttributes = Readonly<Record<string, string>>;

/** Without `before` the key is new; without `after` it is gone. */
export interface KeyChange {
  /** The first eight digits of its SHA-256. */
  readonly key: string;
  readonly before?: KeyAttributes;
  readonly after?: KeyAttributes;
}

export interface KeyChanges {
  readonly added: readonly KeyChange[];
  readonly removed: readonly KeyChange[];
  readonly changed: readonly KeyChange[];
}

/** Enough to find a key by, and too little to stand for it. */
const KEY_DIGITS = 8;

export function shortKey(hash: string): string {
  return hash.slice(0, KEY_DIGITS);
}

/** `titleOf`, with the keys that the rule names cut short. */
export function titleWithoutKeys(rule: Rule): string {
  const path = rule.path.map((node) =>
    node.key === 'api_key' && node.match === 'exact' ? { ...node, value: shortKey(node.value) } : node,
  );
  return titleOf({ ...rule, path });
}

export function diffSettings(before: Ruleset, after: Ruleset): readonly SettingChange[] {
  const [old, young] = [settingsOf(before), settingsOf(after)];
  return [...new Set([...old.keys(), ...young.keys()])].flatMap((id): SettingChange[] => {
    const [was, is] = [old.get(id), young.get(id)];
    if (was?.value === is?.value) return [];
    const setting = (was ?? is)!.setting;
    return [{ setting, ...(was && { before: was.value }), ...(is && { after: is.value }) }];
  });
}

export function diffKeys(before: Identity['keys'], after: Identity['keys']): KeyChanges {
  const added: KeyChange[] = [];
  const removed: KeyChange[] = [];
  const changed: KeyChange[] = [];
  for (const [hash, was] of Object.entries(before)) {
    const is = Object.hasOwn(after, hash) ? after[hash] : undefined;
    const key = shortKey(hash);
    if (is === undefined) removed.push({ key, before: was });
    else if (!haveSameEntries(was, is)) changed.push({ key, before: was, after: is });
  }
  for (const [hash, is] of Object.entries(after))
    if (!Object.hasOwn(before, hash)) added.push({ key: shortKey(hash), after: is });
  return { added, removed, changed };
}

export function haveSameEntries(one: KeyAttributes, other: KeyAttributes): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => one[name] === other[name]);
}

interface Setting {
  readonly setting: string;
  readonly value: string;
}

/** By an id of its own: members of a list share the name of the list. */
function settingsOf(ruleset: Ruleset): ReadonlyMap<string, Setting> {
  const { identity } = ruleset;
  const settings = [
    single('headers', ruleset.headers),
    single('deadline', `${ruleset.deadlineMs}ms`),
    single('regions', regionsOf(ruleset).toSorted().join(', ')),
    single('identity.api_key', identity.apiKey.map(placeText).join(', ')),
    single('identity.unknown_keys', identity.unknownKeys),
    single('identity.trusted_hops', String(identity.trustedHops)),
    single('identity.ipv6_prefix', String(identity.ipv6Prefix)),
    ...Object.entries(identity.defaults).map(([name, value]) => single(`identity.default.${name}`, value)),
    ...Object.entries(ruleset.attributes).map(([name, source]) =>
      single(`attributes.${name}`, sourceText(source)),
    ),
    ...ruleset.corsOrigins.map((origin) => member('cors.allow_origins', origin)),
    ...ruleset.routes.map((route) => member('routes', route)),
    ...ruleset.costs.map((cost) => single(`costs ${scopeText(cost)}`, costText(cost))),
  ];
  return new Map(settings);
}

function single(setting: string, value: string): [string, Setting] {
  return [setting, { setting, value }];
}

function member(setting: string, value: string): [string, Setting] {
  return [`${setting} ${value}`, { setting, value }];
}

function placeText(place: KeyLocation): string {
  if (place.in === 'authorization') return place.in;
  return place.in === 'query' ? `query:${place.name}` : place.name;
}

function sourceText({ header, fold }: AttributeSource): string {
  return fold ? `${header}, folded` : header;
}

function scopeText({ method, route }: CostRule): string {
  return [method, route].filter((part) => part !== undefined).join(' ') || 'of all requests';
}

function costText({ cost, estimate }: CostRule): string {
  if (estimate === undefined) return String(cost);
  const told = estimate.header === undefined ? '' : `${estimate.header}, else `;
  return `reserve ${cost}, then ${told}${estimate.defaultCost}`;
}
