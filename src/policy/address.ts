/**
 * Addresses by their bits, not by their spelling.
 *
 * Equal addresses are one caller however they are written. An IPv4 address inside IPv6 (`::ffff:0:0/96`, and NAT64's
 * `64:ff9b::/96`, RFC 6052) is that IPv4 address. Any other IPv6 address is counted by its network, since one household or
 * machine owns a whole /64. Zone ids are dropped. Every function is total: text that is no address is `undefined`.
 */
import ipaddr from 'ipaddr.js';

export interface Address {
  /** 4 bytes or 16. */
  readonly bytes: readonly number[];
  /** The one canonical spelling of the whole address. */
  readonly text: string;
}

export interface Network {
  readonly bytes: readonly number[];
  readonly prefixBits: number;
  /** `address/prefix`, with the bits beyond the prefix cleared. */
  readonly text: string;
}

/** Stands for a caller whose address is missing or unreadable: all of them share one counter rather than having none. */
export const UNKNOWN_ADDRESS = 'unknown';

/** What an address counts by, in whatever notation it comes; one that cannot be read counts with all of its kind. */
export function countedBy(text: string | undefined, ipv6Prefix: number): string {
  const address = parseAddress(text ?? '');
  return address === undefined ? UNKNOWN_ADDRESS : countedAddress(address, ipv6Prefix);
}

/** Four numbers up to 255 without leading zeros, which some readers take for octal. */
const DOTTED_DECIMAL = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
const NAT64_PREFIX = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];
const EMBEDDING_BITS = 96;

export function parseAddress(text: string): Address | undefined {
  const trimmed = text.trim();
  if (!trimmed.includes(':'))
    return DOTTED_DECIMAL.test(trimmed) ? addressOf(trimmed.split('.').map(Number)) : undefined;
  const bytes = ipv6Bytes(trimmed.split('%', 1)[0] as string);
  if (bytes === undefined) return undefined;
  return addressOf(embedsIpv4(bytes) ? bytes.slice(EMBEDDING_BITS / 8) : bytes);
}

function ipv6Bytes(text: string): number[] | undefined {
  try {
    return ipaddr.IPv6.parse(text).toByteArray();
  } catch {
    return undefined;
  }
}

/** What an address is counted as: IPv4 whole, IPv6 by its first `ipv6PrefixBits` bits. */
export function countedAddress(address: Address, ipv6PrefixBits: number): string {
  const isIpv4 = address.bytes.length === 4;
  return isIpv4 || ipv6PrefixBits >= 128 ? address.text : networkOf(address.bytes, ipv6PrefixBits).text;
}

/** Reads `address/prefix`. A network of IPv4 written inside IPv6 becomes that IPv4 network. */
export function parseNetwork(text: string): Network | undefined {
  const parts = /^([^/]+)\/(\d{1,3})$/.exec(text.trim());
  if (parts === null) return undefined;
  const address = parseAddress(parts[1] as string);
  if (address === undefined) return undefined;
  const writtenBits = Number(parts[2]);
  const isEmbedded = address.bytes.length === 4 && parts[1]?.includes(':');
  if (isEmbedded && writtenBits < EMBEDDING_BITS) return undefined;
  const prefixBits = isEmbedded ? writtenBits - EMBEDDING_BITS : writtenBits;
  return prefixBits <= address.bytes.length * 8 ? networkOf(address.bytes, prefixBits) : undefined;
}

export function isInNetwork(address: Address, network: Network): boolean {
  if (address.bytes.length !== network.bytes.length) return false;
  return network.bytes.every(
    (byte, index) => (byteAt(address, index) & maskOf(network.prefixBits, index)) === byte,
  );
}

/** The address of a network whose bits beyond the prefix repeat those of `byte`. */
export function fillNetwork({ bytes, prefixBits }: Network, byte: number): string {
  return textOf(bytes.map((fixed, index) => fixed | (byte & ~maskOf(prefixBits, index) & 0xff)));
}

function networkOf(bytes: readonly number[], prefixBits: number): Network {
  const masked = bytes.map((byte, index) => byte & maskOf(prefixBits, index));
  return { bytes: masked, prefixBits, text: `${textOf(masked)}/${prefixBits}` };
}

function addressOf(bytes: readonly number[]): Address {
  return { bytes, text: textOf(bytes) };
}

/** Dotted decimal, or eight groups of hexadecimal; without `::`, since shortening has rules that cost time and tell nothing. */
function textOf(bytes: readonly number[]): string {
  if (bytes.length === 4) return bytes.join('.');
  let text = '';
  for (let index = 0; index < bytes.length; index += 2) {
    const group = ((bytes[index] as number) << 8) | (bytes[index + 1] as number);
    text += index === 0 ? group.toString(16) : `:${group.toString(16)}`;
  }
  return text;
}

function byteAt(address: Address, index: number): number {
  return address.bytes[index] as number;
}

/** The mask of byte `index` under a prefix of that many bits. */
function maskOf(prefixBits: number, index: number): number {
  const bitsHere = Math.min(8, Math.max(0, prefixBits - index * 8));
  return (0xff << (8 - bitsHere)) & 0xff;
}

function embedsIpv4(bytes: readonly number[]): boolean {
  return [MAPPED_PREFIX, NAT64_PREFIX].some((prefix) => prefix.every((byte, index) => bytes[index] === byte));
}
