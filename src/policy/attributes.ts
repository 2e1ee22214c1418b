/**
 * The attributes that requests have without being told, who writes each of them, and the one spelling of a value.
 *
 * What a client can invent must never make an object each, so it matters who writes a value: the key directory, the platform and
 * the rule file are ours; an address, a host, a method and any declared header are the client's.
 */
import { isLabelAttribute } from './directory.ts';
import type { AttributeSource } from './ruleset.ts';

export const KNOWN_ATTRIBUTES = [
  'api_key',
  'user',
  'org',
  'tier',
  'route',
  'method',
  'host',
  'remote_address',
  'country',
  'asn',
  'subject',
] as const;

/**
 * Attributes whose values a client cannot make up: the directory's, the platform's, and the matched pattern. An API key is here
 * because an unknown one is either counted by address, or an object each by the operator's choice (`unknown_keys: subject`).
 */
const NOT_INVENTABLE: ReadonlySet<string> = new Set([
  'api_key',
  'user',
  'org',
  'tier',
  'route',
  'country',
  'asn',
]);

/**
 * The SHA-256 of a key that the directory was asked for and did not answer about. Anybody can invent one, so it is counted among the
 * shared owners; no rule can name it.
 */
export const UNVERIFIED_KEY = 'unverified_key';

/** An exact value of one of these names one caller. */
export const CALLER_ATTRIBUTES: ReadonlySet<string> = new Set(['api_key', 'user', 'remote_address']);

/** Whether a client can choose the value of this (resolved) attribute freely. Attributes that are not known count as such. */
export function isInventable(attribute: string): boolean {
  return !NOT_INVENTABLE.has(attribute) && !isLabelAttribute(attribute);
}

/** The one spelling of a value of this attribute, for rules and requests alike. `HEAD` shares what is set for `GET`. */
export function canonicalValue(
  attribute: string,
  value: string,
  declared: Readonly<Record<string, AttributeSource>>,
): string {
  switch (attribute) {
    case 'method':
      return canonicalMethod(value);
    case 'host':
      return value.toLowerCase().replace(/:\d*$/, '').replace(/\.+$/, '');
    case 'country':
      return value.toUpperCase();
    default:
      return declared[attribute]?.fold === true ? foldValue(value) : value;
  }
}

export function canonicalMethod(method: string): string {
  return isHead(method) ? 'GET' : method.toUpperCase();
}

export function isHead(method: string): boolean {
  return method.toUpperCase() === 'HEAD';
}

/** Said where a rule file names HEAD: it would be about GET as well, without saying so. */
export const HEAD_IS_GET = 'is HEAD, which shares what is set for GET: write GET';

/** Folds case, width and spaces, so that `Nick@x`, `nick@x` and `n ick@x ` are one value. Folding twice changes nothing. */
export function foldValue(value: string): string {
  return value.normalize('NFKC').replace(/\s+/gu, '').toLowerCase().normalize('NFKC');
}
